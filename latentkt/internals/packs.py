"""Patched runs of a recorded run, sorted into packs: variants that can be run on the same suffixes of the tokens.

A variant has to be run from its first changed token on, and from the layer that it enters. Variants of one first token
make a segment. Short segments stand side by side in one sequence, so that matrix products stay large: a pack.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from latentkt.internals.budget import Budget
from latentkt.internals.metrics import AnswerScore, Scorer
from latentkt.internals.recording import Recording, stretch
from latentkt.internals.replay import Replay, Suffix

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["Pack", "Variant", "packs_of"]


@dataclass(frozen=True, eq=False)
class Variant:
    """One patched run, as what stands in the residual stream that enters a layer.

    Attributes:
        index: Which cell it belongs to.
        join: The layer that it enters; n_layers where it goes straight to the final norm.
        tokens: Packed tokens whose vectors differ from the run's.
        vectors: Gives what stands there; asked for when the layer is reached.
        lender: A recorded run that the tokens follow for ever, having only its tokens before them; None where they
            have to be run themselves.
    """

    index: int
    join: int
    tokens: tuple[int, ...]
    vectors: Callable[[], Float[Tensor, "token d_model"]]
    lender: Recording | None = None

    @property
    def start(self) -> int:
        """The first token that has to be run."""
        return min(self.tokens) if self.lender is None else self.tokens[-1] + 1


@dataclass(eq=False)
class _Segment:
    """A suffix of the run, and the variants that have to be run on just that."""

    suffix: Suffix
    variants: dict[int, list[Variant]] = field(default_factory=lambda: defaultdict(list))

    def __len__(self) -> int:
        return len(self.suffix.tokens)

    @property
    def steps(self) -> int:
        return sum(map(len, self.variants.values()))

    @property
    def shape(self) -> list[tuple[int, int]]:
        return sorted((join, len(found)) for join, found in self.variants.items())


def packs_of(handle: ModelHandle, base: Recording, variants: Sequence[Variant], budget: Budget) -> list[Pack]:
    """All variants in packs, from the shortest suffixes to the longest.

    Args:
        handle: The model.
        base: The recorded run that is patched.
        variants: What is patched.
        budget: How much is held at once.
    """
    return [Pack(handle, base, segments, budget) for segments in _packs(_segments(base, variants, budget), budget)]


def _segments(base: Recording, variants: Sequence[Variant], budget: Budget) -> list[_Segment]:
    """Variants by the first token that has to be run, cut where too many would be held at once."""
    by_start: dict[tuple[int, int, Recording | None], list[Variant]] = defaultdict(list)
    for variant in variants:
        n_lent = 0 if variant.lender is None else len(variant.tokens)
        by_start[variant.start, n_lent, variant.lender].append(variant)
    n_tokens = base.resid.shape[1]
    segments = []
    for (start, n_lent, lender), alike in sorted(by_start.items(), key=lambda item: item[0][:2], reverse=True):
        suffix = Suffix(torch.arange(start, n_tokens), lender, n_lent)
        most = max(1, budget.stacked_tokens // len(suffix.tokens))
        ordered = sorted(alike, key=lambda variant: variant.join)
        for first in range(0, len(ordered), most):
            segment = _Segment(suffix)
            for variant in ordered[first : first + most]:
                segment.variants[variant.join].append(variant)
            segments.append(segment)
    return segments


def _packs(segments: list[_Segment], budget: Budget) -> Iterator[list[_Segment]]:
    """Segments of like shape side by side, as long as they are short."""
    pack: list[_Segment] = []
    for segment in segments:  # from the shortest suffix to the longest
        length = sum(map(len, pack)) + len(segment)
        rows = max([segment.steps, *(one.steps for one in pack)])
        unlike = pack and pack[0].shape != segment.shape
        if pack and (unlike or length > budget.pack_tokens or rows * length > budget.stacked_tokens):
            yield pack
            pack = []
        pack.append(segment)
    if pack:
        yield pack


class Pack:
    """Segments side by side in one sequence, and how far their variants have come."""

    def __init__(self, handle: ModelHandle, base: Recording, segments: list[_Segment], budget: Budget) -> None:
        self._base, self._segments, self._handle = base, segments, handle
        self.replay = Replay(handle, base, [one.suffix for one in segments], chunk_tokens=budget.chunk_tokens)
        self._offsets = [0, *itertools.accumulate(map(len, segments))]
        self._starts = [int(one.suffix.tokens[0]) for one in segments]
        self._readers = torch.as_tensor(base.branches.readers)
        self._behind = [self._readers >= start for start in self._starts]  # other readers are as before
        self._at = torch.cat(
            [
                self._readers[behind] - start + offset
                for start, behind, offset in zip(self._starts, self._behind, self._offsets, strict=False)
            ]
        )
        self._order: list[list[Variant]] = [[] for _ in segments]
        self._read: list[Tensor] = []

    @property
    def size(self) -> int:
        """Rows of the whole staircase."""
        return len(self) * max(one.steps for one in self._segments)

    def __len__(self) -> int:
        return self._offsets[-1]

    def joined(self, layer: int) -> Float[Tensor, "variant token d_model"]:
        """The rows that enter `layer`: the run's own vectors, but for each segment's variant of that row."""
        rows = len(self._segments[0].variants.get(layer, ()))  # the segments of a pack are of one shape
        if not rows:
            return self._base.resid.new_empty(0, len(self), self._base.resid.shape[-1])
        block = self._base.resid[layer].index_select(0, self.replay.tokens)[None]
        block = block.repeat(rows, 1, 1) if rows > 1 else block
        for segment, offset, start, seen in zip(self._segments, self._offsets, self._starts, self._order, strict=False):
            here = segment.variants.get(layer, [])
            for row, variant in enumerate(here):
                if variant.lender is None:
                    at = stretch([offset + token - start for token in variant.tokens])
                    block[row, at] = variant.vectors().to(block)
            seen.extend(here)
        return block

    def read(self, steps: Float[Tensor, "variant token d_model"]) -> None:
        """Keep the readers' vectors of variants that leave the last layer."""
        self._read.append(steps[:, self._at])

    def read_through(self, layer: int, steps: Float[Tensor, "variant token d_model"]) -> None:
        """Take variants through the last layer, and keep the readers' vectors."""
        self._read.append(self.replay.layer_at(layer, steps, self._at))

    def scores(self, scorer: Scorer) -> dict[int, AnswerScore]:
        """The scores of all variants, by index."""
        h = torch.cat(self._read)
        indices: list[int] = []
        rows: list[Tensor] = []
        first = 0
        for variants, behind in zip(self._order, self._behind, strict=True):
            n_behind = int(behind.sum())
            read = self._base.resid[-1, self._readers][None].repeat(len(h), 1, 1)
            read[:, behind] = h[:, first : first + n_behind]
            first += n_behind
            indices.extend(variant.index for variant in variants)
            rows.append(read)
        return dict(zip(indices, scorer.from_resid(self._handle, torch.cat(rows)), strict=True))
