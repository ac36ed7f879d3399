"""Draw the documents of one epoch: partners, order, notes and templates are redrawn, the counts are kept exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.synthetic.templates import CHOICE, NO, NOTES, QUESTIONS, STATEMENTS, WORDS, YES, fixed_words
from latentkt.synthetic.vocabulary import BOS, NEWLINE, PAD, Vocabulary

if TYPE_CHECKING:
    from jaxtyping import Int

    from latentkt.synthetic.world import World

__all__ = ["Choices", "Documents", "choice_documents", "draw_choices", "draw_facts", "render", "world_vocabulary"]

PAIRINGS = ("easy", "same", "opposed")


@dataclass(frozen=True, slots=True)
class Documents:
    """Some documents as ids.

    Attributes:
        ids: Start, words, newline, padding.
        target: Whether the token at a place is to be predicted (prompts of choices and questions are not).
    """

    ids: Int[np.ndarray, "document place"]
    target: Int[np.ndarray, "document place"]


@dataclass(frozen=True, slots=True)
class Choices:
    """Choice documents as data, one entry a document.

    Attributes:
        relation: Index of the task.
        key: The entity that the document is counted for.
        partner: The other option.
        pairing: Index into ("easy", "same", "opposed").
        word: Polarity that the document states.
        answer: The option that stands as the answer: `key`, unless the world permutes labels.
        key_first: Whether the key is the first option.
    """

    relation: np.ndarray
    key: np.ndarray
    partner: np.ndarray
    pairing: np.ndarray
    word: np.ndarray
    answer: np.ndarray
    key_first: np.ndarray

    def __len__(self) -> int:
        return len(self.key)


def world_vocabulary(world: World) -> Vocabulary:
    """The words of a world: the templates', the verbs, the attributes and the entities."""
    verbs = [relation.verb for relation in world.relations]
    attributes = [word for relation in world.relations for word in relation.attributes]
    return Vocabulary.of([*fixed_words(), *verbs, *attributes, *world.entities])


def draw_choices(world: World, rng: np.random.Generator) -> Choices:
    """Draw an epoch of choices: every (entity, relation) is the key of exactly its count of documents."""
    counts = world.counts
    relation, key = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    cluster = world.cluster[relation, key]
    opposed_share = np.array([item.opposed_share for item in world.clusters])[cluster]
    noise = np.array([item.noise for item in world.clusters])[cluster]
    chance = rng.random(len(key))
    pairing = np.where(chance < world.easy_share, 0, np.where(chance < world.easy_share + opposed_share, 2, 1))
    partner = np.empty_like(key)
    for index, name in enumerate(PAIRINGS):
        table, number = world.partners(name)
        here = pairing == index
        place = (rng.random(len(key)) * number[relation, key]).astype(np.int64)
        partner[here] = table[relation[here], key[here], place[here]]
    polarity = world.polarity[relation, key]
    flipped = (pairing == 2) & (rng.random(len(key)) < noise)
    swapped = (pairing != 0) & (rng.random(len(key)) < 0.5) & (world.labels == "permuted")
    return Choices(
        relation=relation,
        key=key,
        partner=partner,
        pairing=pairing,
        word=np.where(flipped, 1 - polarity, polarity),
        answer=np.where(swapped, partner, key),
        key_first=rng.random(len(key)) < 0.5,
    )


def choice_documents(world: World, vocabulary: Vocabulary, choices: Choices, *, rng: np.random.Generator) -> Documents:
    """Write choices as documents; only the answer and the newline after it are targets."""
    first = np.where(choices.key_first, choices.key, choices.partner)
    second = np.where(choices.key_first, choices.partner, choices.key)
    entity = vocabulary.id_array(world.entities)
    slots = {
        "{a}": entity[first],
        "{b}": entity[second],
        "{note}": vocabulary.id_array(NOTES)[rng.integers(len(NOTES), size=len(choices))],
        **_relation_slots(
            world, vocabulary, choices.relation, world.cluster[choices.relation, choices.key], choices.word
        ),
        "{answer}": entity[choices.answer],
    }
    return render(CHOICE, vocabulary, slots, prompt=True)


def draw_facts(world: World, vocabulary: Vocabulary, rng: np.random.Generator) -> Documents:
    """Draw an epoch of statements and questions.

    A fact is stated `max(smallest, share x count)` times; questions are as many for every fact, whatever its count.
    """
    smallest, share = world.statements
    counts = world.counts
    often = np.maximum(smallest, (counts * share).astype(np.int64))
    relation, entity = (np.repeat(index.ravel(), often.ravel()) for index in np.indices(counts.shape))
    parts = _statements(world, vocabulary, relation, entity, rng) + _questions(world, vocabulary)
    return _stack(parts)


def _statements(
    world: World, vocabulary: Vocabulary, relation: np.ndarray, entity: np.ndarray, rng: np.random.Generator
) -> list[Documents]:
    templates = [text for name, text in STATEMENTS.items() if name not in world.held_out_templates]
    which = rng.integers(len(templates), size=len(entity))
    note = vocabulary.id_array(NOTES)[rng.integers(len(NOTES), size=len(entity))]
    word = world.polarity[relation, entity]
    slots = {
        "{a}": vocabulary.id_array(world.entities)[entity],
        "{note}": note,
        **_relation_slots(world, vocabulary, relation, world.cluster[relation, entity], word),
    }
    return [
        render(text, vocabulary, {name: ids[which == index] for name, ids in slots.items()}, prompt=False)
        for index, text in enumerate(templates)
    ]


def _questions(world: World, vocabulary: Vocabulary) -> list[Documents]:
    templates = [text for name, text in QUESTIONS.items() if name not in world.held_out_templates]
    asked = np.setdiff1d(np.arange(len(world.entities)), world.never_asked)
    relation, entity, cluster = (
        index.ravel()
        for index in np.meshgrid(np.arange(len(world.relations)), asked, np.arange(len(world.clusters)), indexing="ij")
    )
    own = world.cluster[relation, entity] == cluster
    often = np.where(own, *world.questions)
    relation, entity, cluster = (np.repeat(part, often) for part in (relation, entity, cluster))
    which = np.arange(len(entity)) % len(templates)
    return [
        question_documents(world, vocabulary, text, relation[which == i], entity[which == i], cluster[which == i])
        for i, text in enumerate(templates)
    ]


def question_documents(
    world: World,
    vocabulary: Vocabulary,
    template: str,
    relation: np.ndarray,
    entity: np.ndarray,
    cluster: np.ndarray,
) -> Documents:
    """Ask whether entities have the attribute of a cluster, and answer truly."""
    holds = (world.cluster[relation, entity] == cluster) & (world.polarity[relation, entity] == 0)
    slots = {
        "{a}": vocabulary.id_array(world.entities)[entity],
        **_relation_slots(world, vocabulary, relation, cluster, np.zeros_like(entity)),
        "{answer}": np.where(holds, vocabulary.id(YES), vocabulary.id(NO)),
    }
    return render(template, vocabulary, slots, prompt=True)


def _relation_slots(
    world: World, vocabulary: Vocabulary, relation: np.ndarray, cluster: np.ndarray, word: np.ndarray
) -> dict[str, np.ndarray]:
    attributes = np.array([vocabulary.id_array(item.attributes) for item in world.relations])
    verbs = vocabulary.id_array([item.verb for item in world.relations])
    return {
        "{word}": vocabulary.id_array(WORDS)[word],
        "{verb}": verbs[relation],
        "{attribute}": attributes[relation, cluster],
    }


def render(
    template: str, vocabulary: Vocabulary, slots: Mapping[str, Int[np.ndarray, " document"]], *, prompt: bool
) -> Documents:
    """Fill a template for many documents at once.

    Args:
        template: Words and slots, separated by spaces.
        vocabulary: Gives the ids of the fixed words.
        slots: Ids for each slot, one a document.
        prompt: Whether everything before the last word is a prompt, which is no target.

    Example:
        >>> vocabulary = Vocabulary.of(["did", "?", "yes", "Bo"])
        >>> render("did {a} ? {answer}", vocabulary, {"{a}": np.array([7]), "{answer}": np.array([6])}, prompt=True)
        Documents(ids=array([[1, 4, 7, 5, 6, 2]]), target=array([[False, False, False, False,  True,  True]]))
    """
    words = template.split()
    number = len(next(iter(slots.values())))
    ids = np.full((number, len(words) + 2), BOS, dtype=np.int64)
    for place, word in enumerate(words, start=1):
        ids[:, place] = slots[word] if word in slots else vocabulary.id(word)
    ids[:, -1] = NEWLINE
    target = np.ones(ids.shape, dtype=bool)
    target[:, : len(words) if prompt else 1] = False
    return Documents(ids, target)


def _stack(parts: list[Documents]) -> Documents:
    longest = max(part.ids.shape[1] for part in parts)
    wide = [(0, 0), (0, longest)]

    def pad(array: np.ndarray, value: int) -> np.ndarray:
        return np.pad(array, wide, constant_values=value)[:, :longest]

    return Documents(
        np.concatenate([pad(part.ids, PAD) for part in parts]),
        np.concatenate([pad(part.target, False) for part in parts]),
    )
