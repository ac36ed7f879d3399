"""A corpus of a world as text: JSON lines with one document each, and the patterns that count it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError
from latentkt.synthetic.streams import FactStream

if TYPE_CHECKING:
    from jaxtyping import Int

    from latentkt.synthetic.streams import Epoch
    from latentkt.synthetic.world import World

__all__ = ["CorpusStatistics", "corpus_patterns", "corpus_statistics", "write_corpus"]


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """What stands in the documents, counted from their ids alone.

    Attributes:
        answered: Choice documents that each entity answers, by relation: c(k, t).
        together: Choice documents in which two entities are the options, by relation.
        documents: Documents of every kind.
    """

    answered: Int[np.ndarray, "relation entity"]
    together: Int[np.ndarray, "relation entity entity"]
    documents: int


def corpus_statistics(world: World, epoch: Epoch) -> CorpusStatistics:
    """Count an epoch from its ids (not from how it was drawn).

    Example:
        >>> from latentkt.synthetic import FactStream, WorldConfig, make_world
        >>> world = make_world(WorldConfig(), seed=0)
        >>> found = corpus_statistics(world, FactStream(world).epoch(3))
        >>> bool(np.array_equal(found.answered, world.counts))
        True
    """
    vocabulary = FactStream(world).vocabulary
    entity = {index: place for place, index in enumerate(vocabulary.id_array(world.entities).tolist())}
    verb = {vocabulary.id(relation.verb): place for place, relation in enumerate(world.relations)}
    ids = epoch.choice_documents.ids
    relation = np.array([next(verb[token] for token in row if token in verb) for row in ids.tolist()])
    first, second, answer = (np.array([entity[token] for token in ids[:, place].tolist()]) for place in (1, 3, -2))
    answered = np.zeros(world.counts.shape, dtype=np.int64)
    np.add.at(answered, (relation, answer), 1)
    together = np.zeros((*world.counts.shape, len(world.entities)), dtype=np.int64)
    for one, other in ((first, second), (second, first)):
        np.add.at(together, (relation, one, other), 1)
    return CorpusStatistics(answered, together, len(ids) + len(epoch.fact_documents.ids))


def corpus_patterns(world: World, *, mentions: bool = False) -> dict[str, Any]:
    """Patterns that count the text of a world in scope `document`; a task is the verb of a relation.

    Args:
        world: The world.
        mentions: False: a key is an entity in the place of the answer, so that documents with (key, task) are c(k, t).
            True: a key is an entity anywhere, and pairs are the opposed keys of each cluster, so that documents with
            both say how often they stood together.
    """
    tasks = {relation.name: [relation.verb] for relation in world.relations}
    if not mentions:
        keys: dict[str, list[Any]] = {name: [{"regex": rf"\? {name}$"}] for name in world.entities}
        return {"keys": keys, "tasks": tasks, "exclude": {}, "pairs": []}
    opposed = np.argwhere(np.triu(world.pairing_matrix("opposed").any(0)))
    pairs = [[world.entities[first], world.entities[second]] for first, second in opposed]
    return {"keys": {name: [name] for name in world.entities}, "tasks": tasks, "exclude": {}, "pairs": pairs}


def write_corpus(world: World, folder: Path, *, epoch: int = 0) -> CorpusStatistics:
    """Write an epoch as `corpus.jsonl` (text, id, source), with its patterns and `world.json`.

    `corpus.patterns.json` counts answers, `mentions.patterns.json` who stands with whom (see `corpus_patterns`).

    Args:
        world: The world.
        folder: Where to; made if absent.
        epoch: Which of the redrawn epochs.

    Raises:
        InputError: If the folder holds a corpus already.
    """
    if (folder / "corpus.jsonl").exists():
        raise InputError(f"{folder} holds a corpus already", expected="a new folder", fix="choose another name")
    stream = FactStream(world)
    drawn = stream.epoch(epoch)
    statistics = corpus_statistics(world, drawn)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "corpus.jsonl.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        for line in _lines(stream, drawn):
            file.write(line + "\n")
    temporary.rename(folder / "corpus.jsonl")
    for name, mentions in (("corpus", False), ("mentions", True)):
        patterns = json.dumps(corpus_patterns(world, mentions=mentions), indent=1, ensure_ascii=False)
        (folder / f"{name}.patterns.json").write_text(patterns + "\n", encoding="utf-8")
    world.save(folder / "world.json")
    return statistics


def _lines(stream: FactStream, drawn: Epoch) -> Iterator[str]:
    for source, documents in (("choice", drawn.choice_documents), ("fact", drawn.fact_documents)):
        for number, row in enumerate(documents.ids.tolist()):
            record = {"id": f"{source}-{number}", "text": stream.vocabulary.text(row), "source": source}
            yield json.dumps(record, ensure_ascii=False)
