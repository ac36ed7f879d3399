"""Activations at the last token of a concept, all concepts in one and the same question.

What follows the concept cannot act on them, so the prompt is read up to that token and no further.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError, LatentKTError
from latentkt.phantom.asking.rendering import render_question, template_of
from latentkt.phantom.prompts import Prompt
from latentkt.progress import progress

if TYPE_CHECKING:
    from jaxtyping import Float

    from latentkt.models import Encoded, ModelHandle
    from latentkt.phantom.concepts import Concept

__all__ = [
    "FRAME",
    "ConceptActivations",
    "Frame",
    "encode_concepts",
    "mean_log_frequency",
    "read_concepts",
    "subword_frequencies",
    "tokens_of",
]

FRAME = 'What is meant by "{concept}"?'
"""The one question in which concepts are read, so that nothing but the concept differs."""


@dataclass(frozen=True, eq=False)
class ConceptActivations:
    """What was read.

    Attributes:
        concepts: The concepts, in the order of the rows.
        features: Residual stream at the concept's last token, [concept, layer, d_model]; entry 0 is the embedding.
        embedding: Mean of the embeddings of the concept's tokens, [concept, d_model]: the words without their order.
        tokens: The concept's token ids, as they stand in the question.
        skipped: Concept id -> why it was not read.
    """

    concepts: tuple[Concept, ...]
    features: Float[np.ndarray, "concept layer d_model"]
    embedding: Float[np.ndarray, "concept d_model"]
    tokens: tuple[tuple[int, ...], ...]
    skipped: dict[str, str]

    def rows(self, ids: Sequence[str]) -> list[int]:
        """Rows of concepts by their ids."""
        place = {concept.id: row for row, concept in enumerate(self.concepts)}
        return [place[name] for name in ids]


@dataclass(frozen=True, slots=True)
class Frame:
    """A question with a place for the concept, as the model reads it.

    Attributes:
        before: What stands before the concept: template, system prompt, the question's beginning.
        after: What stands behind it.
        chat: Whether it is a rendered conversation.
    """

    before: str
    after: str
    chat: bool

    @classmethod
    def of(
        cls, handle: ModelHandle, question: str = FRAME, *, template: str | None = None, system: str | None = None
    ) -> Frame:
        """Render a question once, for all concepts.

        Args:
            handle: The model, for its chat template.
            question: The question, with `{concept}` once.
            template: `chat` or `plain`; None: chat where the tokenizer has a template.
            system: As in `render_question`.

        Raises:
            InputError: The question does not hold `{concept}` once, or there is no such template.
        """
        if question.count("{concept}") != 1:
            raise InputError("a question with a place for the concept", expected="{concept} once", found=repr(question))
        start, word = question.index("{concept}"), "concept"
        text = question.replace("{concept}", word)
        prompt = Prompt("frame", "frame", word, "term", "meaning", 0, text, (start, start + len(word)))
        chosen = template_of(handle, template)
        rendered = render_question(prompt, template=chosen, system=system, tokenizer=handle.tokenizer)
        first, stop = rendered.span
        return cls(rendered.text[:first], rendered.text[stop:], rendered.chat)

    def encode(self, handle: ModelHandle, concept: Concept) -> Encoded:
        """The question about a concept, with the span `concept`.

        Raises:
            InputError: It is too long for the model, or the concept covers no token of its own.
        """
        from latentkt.models import encode

        span = (len(self.before), len(self.before) + len(concept.concept))
        text = self.before + concept.concept + self.after
        return encode(handle, text, chat=self.chat, spans={"concept": [span]}, name=repr(concept.concept))


def encode_concepts(
    handle: ModelHandle, concepts: Sequence[Concept], frame: Frame
) -> tuple[list[tuple[Concept, Encoded]], dict[str, str]]:
    """Concepts as the model reads them, and of each that it refuses the id with the reason."""
    ready: list[tuple[Concept, Encoded]] = []
    skipped: dict[str, str] = {}
    for concept in concepts:
        try:
            ready.append((concept, frame.encode(handle, concept)))
        except LatentKTError as error:
            skipped[concept.id] = error.what
    return ready, skipped


def tokens_of(encoded: Encoded) -> tuple[int, ...]:
    """The tokens of the concept in a question."""
    return tuple(encoded.ids[at] for at in encoded.positions("concept"))


def read_concepts(
    handle: ModelHandle, concepts: Sequence[Concept], frame: Frame | None = None, *, batch_size: int = 32
) -> ConceptActivations:
    """Read the residual stream at each concept's last token, after every layer.

    Args:
        handle: The model.
        concepts: The concepts.
        frame: The question that they stand in; None: `FRAME` in the model's own template.
        batch_size: Concepts that are read at once.

    Raises:
        InputError: No concept can be read.
    """
    ready, skipped = encode_concepts(handle, concepts, frame or Frame.of(handle))
    if not ready:
        raise InputError("no concept can be read", expected="at least one", found=f"{len(skipped)} refused")
    features, embedding = [], []
    prefix = _Prefix.of(handle, [encoded for _, encoded in ready])
    with progress() as bar:
        stage = bar.stage("reading concepts", total=len(ready))
        for first in range(0, len(ready), batch_size):
            batch = [encoded for _, encoded in ready[first : first + batch_size]]
            states, means = _read(handle, prefix, batch)
            features.append(states)
            embedding.append(means)
            stage.advance(len(batch))
    kept = tuple(concept for concept, _ in ready)
    tokens = tuple(tokens_of(encoded) for _, encoded in ready)
    return ConceptActivations(kept, np.concatenate(features), np.concatenate(embedding), tokens, skipped)


class _Prefix:
    """What all questions begin with, run once: its keys and values are shared by every concept."""

    def __init__(self, handle: ModelHandle, ids: tuple[int, ...]) -> None:
        self.ids, self._handle = ids, handle
        self._cache: Any = None

    @classmethod
    def of(cls, handle: ModelHandle, encoded: Sequence[Encoded]) -> _Prefix:
        """The longest beginning that all questions share before their concept."""
        end = min(each.positions("concept")[0] for each in encoded)
        first = encoded[0].ids
        same = next((at for at in range(end) if any(each.ids[at] != first[at] for each in encoded)), end)
        return cls(handle, first[:same] if handle.arch.cache_keyword else ())

    def cache(self, rows: int) -> Any:
        """A cache of its own for some rows; None where nothing is shared."""
        import copy

        import torch
        from transformers import DynamicCache

        if not self.ids:
            return None
        if self._cache is None:
            self._cache = DynamicCache()  # without the config: a sliding window's cache would forget
            with torch.no_grad():
                self._handle.run_blocks(torch.tensor([self.ids]), cache=self._cache)
        shared = copy.deepcopy(self._cache)
        shared.batch_repeat_interleave(rows)
        return shared


def _read(handle: ModelHandle, prefix: _Prefix, batch: Sequence[Encoded]) -> tuple[np.ndarray, np.ndarray]:
    """States [concept, layer + 1, d] at the last token of each concept, and mean embeddings [concept, d]."""
    import torch

    from latentkt.models.sites import record

    start = len(prefix.ids)
    places = [[at - start for at in each.positions("concept")] for each in batch]
    width = max(place[-1] for place in places) + 1
    ids = torch.zeros((len(batch), width), dtype=torch.long)
    mask = torch.zeros((len(batch), start + width), dtype=torch.long)
    for row, (each, place) in enumerate(zip(batch, places, strict=True)):
        length = place[-1] + 1
        ids[row, :length] = torch.tensor(each.ids[start : start + length])
        mask[row, : start + length] = 1
    sites = [("resid_pre", 0), *(("resid_post", layer) for layer in range(handle.n_layers))]
    with torch.no_grad(), record([handle.arch.site(name, layer) for name, layer in sites]) as values:
        handle.run_blocks(ids, mask, cache=prefix.cache(len(batch)))
    rows, last = torch.arange(len(batch)), torch.tensor([place[-1] for place in places])
    states = torch.stack([values[site].cpu()[rows, last].float() for site in sites], dim=1)
    embedded = values["resid_pre", 0].float().cpu()
    means = torch.stack([embedded[row, place].mean(0) for row, place in enumerate(places)])
    return states.numpy(), means.numpy()


def subword_frequencies(handle: ModelHandle, texts: Iterable[str], *, max_characters: int = 8_000_000) -> Counter[int]:
    """How often each token of the model's vocabulary stands in some text.

    Args:
        handle: The model, for its tokenizer.
        texts: Documents of a corpus.
        max_characters: Read so much of it.

    Raises:
        InputError: The corpus is empty.
    """
    counts: Counter[int] = Counter()
    read = 0
    for text in texts:
        if read >= max_characters:
            break
        read += len(text)
        counts.update(handle.tokenizer(text, add_special_tokens=False)["input_ids"])
    if not counts:
        raise InputError("the corpus for the frequencies of subwords is empty", expected="at least one document")
    return counts


def mean_log_frequency(tokens: Sequence[int], counts: Mapping[int, int]) -> float:
    """Mean natural logarithm of the tokens' frequency, a token that was not seen counting as half an occurrence.

    Example:
        >>> round(mean_log_frequency([1, 2], {1: 3, 2: 1}), 3) == round((math.log(3 / 4) + math.log(1 / 4)) / 2, 3)
        True
    """
    total = sum(counts.values())
    return sum(math.log(max(counts.get(token, 0), 0.5) / total) for token in tokens) / len(tokens)
