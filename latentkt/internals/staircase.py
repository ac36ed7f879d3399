"""Exact patched runs in about half a forward pass a cell: the staircase.

A patch of the residual stream after layer l at some prompt positions changes nothing before the first of them and
nothing below layer l + 1. So the patched run is resumed there, on the suffix of the tokens only, with the unpatched
run's keys and values in front. The variants of layer l join those of layers below when layer l + 1 is applied: each
layer's weights are read once for a batch that grows like a staircase. Short suffixes are packed into one sequence, so
that matrix products stay large. In the last layer the tokens that nobody reads lend their keys and values only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from latentkt.internals.budget import Budget
from latentkt.internals.metrics import AnswerScore, Scorer
from latentkt.internals.recording import Recording
from latentkt.internals.replay import Replay

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["Variant", "climb"]


@dataclass(frozen=True, eq=False)
class Variant:
    """One patched run, as what stands in the residual stream that enters a layer.

    Attributes:
        index: Which cell it belongs to.
        join: The layer that it enters; n_layers where it goes straight to the final norm.
        tokens: Packed tokens whose vectors differ from the run's, ascending.
        vectors: What stands there.
    """

    index: int
    join: int
    tokens: tuple[int, ...]
    vectors: Float[Tensor, "token d_model"]


@dataclass(eq=False)
class _Segment:
    """A suffix of the run, and the variants whose first changed token is its first."""

    tokens: Int[Tensor, "token"]
    variants: dict[int, list[Variant]] = field(default_factory=lambda: defaultdict(list))

    @property
    def steps(self) -> int:
        return sum(map(len, self.variants.values()))


def climb(
    handle: ModelHandle, base: Recording, variants: Sequence[Variant], scorer: Scorer, *, budget: Budget
) -> dict[int, AnswerScore]:
    """Score both answers in every variant of a recorded run.

    Args:
        handle: The model.
        base: The recorded run that is patched.
        variants: What is patched.
        scorer: How answers are scored; its branches are those of `base`.
        budget: How much is held at once.

    Returns:
        The score of each variant, by its index.
    """
    scores: dict[int, AnswerScore] = {}
    with torch.inference_mode():
        for pack in _packs(_segments(base, variants, budget), budget):
            scores.update(_climb_pack(handle, base, pack, scorer, budget))
    return scores


def _segments(base: Recording, variants: Sequence[Variant], budget: Budget) -> list[_Segment]:
    """Variants by their first changed token, cut where too many would be held at once."""
    by_start: dict[int, list[Variant]] = defaultdict(list)
    for variant in variants:
        by_start[variant.tokens[0]].append(variant)
    n_tokens = base.resid.shape[1]
    segments = []
    for start in sorted(by_start, reverse=True):
        tokens = torch.arange(start, n_tokens)
        most = max(1, budget.stacked_tokens // len(tokens))
        ordered = sorted(by_start[start], key=lambda variant: variant.join)
        for first in range(0, len(ordered), most):
            segment = _Segment(tokens)
            for variant in ordered[first : first + most]:
                segment.variants[variant.join].append(variant)
            segments.append(segment)
    return segments


def _packs(segments: list[_Segment], budget: Budget) -> Iterator[list[_Segment]]:
    """Segments of like shape side by side, as long as they are short."""
    pack: list[_Segment] = []
    for segment in segments:  # from the shortest suffix to the longest
        length = sum(len(one.tokens) for one in pack) + len(segment.tokens)
        unlike = pack and _shape(pack[0]) != _shape(segment)
        rows = max([segment.steps, *(one.steps for one in pack)])
        if pack and (unlike or length > budget.pack_tokens or rows * length > budget.stacked_tokens):
            yield pack
            pack = []
        pack.append(segment)
    if pack:
        yield pack


def _shape(segment: _Segment) -> list[tuple[int, int]]:
    return sorted((join, len(found)) for join, found in segment.variants.items())


def _climb_pack(
    handle: ModelHandle, base: Recording, pack: list[_Segment], scorer: Scorer, budget: Budget
) -> dict[int, AnswerScore]:
    replay = Replay(handle, base, [segment.tokens for segment in pack], chunk_tokens=budget.chunk_tokens)
    offsets = [0]
    for segment in pack:
        offsets.append(offsets[-1] + len(segment.tokens))
    readers = torch.as_tensor(base.branches.readers)
    at = torch.cat(  # the readers behind a segment's start; others are as in the run
        [readers[readers >= one.tokens[0]] - one.tokens[0] + first for one, first in zip(pack, offsets, strict=False)]
    )
    last = handle.n_layers
    order: list[list[Variant | None]] = [[] for _ in pack]
    stairs: list[Tensor] = []
    read = base.resid.new_empty(0, len(at), handle.d_model)
    for layer in range(last + 1):
        steps = _joined(base, pack, offsets, replay.tokens, layer, order)
        if layer == last:
            read = torch.cat([read, steps[:, at]])
        else:
            _heap(stairs, steps, replay.at_once)
            if layer + 1 < last:
                for number, part in enumerate(stairs):  # one by one: what went in is let go
                    stairs[number] = replay.layer(layer, part)
            elif stairs:
                read = torch.cat([replay.layer_at(layer, part, at) for part in stairs])
    return _read(handle, base, pack, order, read, scorer)


def _heap(stairs: list[Tensor], steps: Float[Tensor, "variant token d_model"], at_once: int) -> None:
    """Put new steps on the staircase, in parts of `at_once` rows; a part that is full is not copied again."""
    room = at_once - len(stairs[-1]) if stairs else 0
    if room:
        stairs[-1] = torch.cat([stairs[-1], steps[:room]])
    stairs.extend(part for part in steps[room:].split(at_once) if len(part))


def _joined(
    base: Recording,
    pack: list[_Segment],
    offsets: list[int],
    tokens: Tensor,
    layer: int,
    order: list[list[Variant | None]],
) -> Float[Tensor, "variant token d_model"]:
    """The rows that enter `layer`: the run's own vectors, but for each segment's variant of that row."""
    rows = max(len(segment.variants.get(layer, ())) for segment in pack)
    block = base.resid[layer, tokens].repeat(rows, 1, 1)
    for segment, offset, seen in zip(pack, offsets, order, strict=False):
        start = int(segment.tokens[0])
        here = segment.variants.get(layer, [])
        for row, variant in enumerate(here):
            block[row, [offset + token - start for token in variant.tokens]] = variant.vectors.to(block)
        seen.extend([*here, *[None] * (rows - len(here))])
    return block


def _read(
    handle: ModelHandle,
    base: Recording,
    pack: list[_Segment],
    order: list[list[Variant | None]],
    h: Float[Tensor, "variant reader d_model"],
    scorer: Scorer,
) -> dict[int, AnswerScore]:
    readers = torch.as_tensor(base.branches.readers)
    scores: dict[int, AnswerScore] = {}
    first = 0
    for segment, variants in zip(pack, order, strict=True):
        behind = readers >= segment.tokens[0]
        n_behind = int(behind.sum())
        rows = base.resid[-1, readers][None].repeat(len(h), 1, 1)
        rows[:, behind] = h[:, first : first + n_behind]
        first += n_behind
        kept = [row for row, variant in enumerate(variants) if variant is not None]
        found = scorer.from_resid(handle, rows[kept])
        scores.update({v.index: score for v, score in zip((variants[r] for r in kept), found, strict=True) if v})
    return scores
