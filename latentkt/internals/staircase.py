"""Exact patched runs in about half a forward pass a cell: the staircase.

A patch of the residual stream after layer l at some prompt positions changes nothing before the first of them and
nothing below layer l + 1. So the patched run is resumed there, on the suffix of the tokens only, with the unpatched
run's keys and values in front. The variants of layer l join those of layers below when layer l + 1 is applied: each
layer's weights are read once for a batch that grows like a staircase. Short suffixes are packed into one sequence, so
that matrix products stay large. In the last layer the tokens that nobody reads lend their keys and values only.
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
from latentkt.internals.recording import Recording
from latentkt.internals.replay import Replay, Suffix, replayed

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.internals.growing import Growing
    from latentkt.models import ModelHandle

__all__ = ["Variant", "climb"]


@dataclass(frozen=True, eq=False)
class Variant:
    """One patched run, as what stands in the residual stream that enters a layer.

    Attributes:
        index: Which cell it belongs to.
        join: The layer that it enters; n_layers where it goes straight to the final norm.
        tokens: Packed tokens whose vectors differ from the run's, ascending.
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
        return self.tokens[0] if self.lender is None else self.tokens[-1] + 1


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


def climb(
    handle: ModelHandle,
    base: Recording,
    variants: Sequence[Variant],
    scorer: Scorer,
    *,
    budget: Budget,
    growing: Growing | None = None,
) -> dict[int, AnswerScore]:
    """Score both answers in every variant of a recorded run.

    Args:
        handle: The model.
        base: The recorded run that is patched.
        variants: What is patched.
        scorer: How answers are scored; its branches are those of `base`.
        budget: How much is held at once.
        growing: The recorded runs, where they have not gone through the layers yet: they do so here.

    Returns:
        The score of each variant, by its index.
    """
    scores: dict[int, AnswerScore] = {}
    with torch.inference_mode():
        packs = [_Pack(handle, base, segments, budget) for segments in _packs(_segments(base, variants, budget), budget)]
        for together in _groups(packs, budget):
            _climb(handle, together, budget, growing)
            growing = None
            for pack in together:
                scores.update(pack.scores(scorer))
        if growing is not None:
            _climb(handle, [], budget, growing)
    return scores


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


class _Pack:
    """Segments side by side in one sequence, and how far their variants have come."""

    def __init__(self, handle: ModelHandle, base: Recording, segments: list[_Segment], budget: Budget) -> None:
        self._base, self._segments, self._handle = base, segments, handle
        self.replay = Replay(handle, base, [one.suffix for one in segments], chunk_tokens=budget.chunk_tokens)
        self._offsets = [0, *itertools.accumulate(map(len, segments))]
        self._readers = torch.as_tensor(base.branches.readers)
        self._behind = [self._readers >= one.suffix.tokens[0] for one in segments]  # other readers are as before
        self._at = torch.cat(
            [
                self._readers[behind] - one.suffix.tokens[0] + offset
                for one, behind, offset in zip(segments, self._behind, self._offsets, strict=False)
            ]
        )
        self._order: list[list[Variant | None]] = [[] for _ in segments]
        self._read: list[Tensor] = []

    @property
    def size(self) -> int:
        """Rows of the whole staircase."""
        return len(self) * max(one.steps for one in self._segments)

    def __len__(self) -> int:
        return self._offsets[-1]

    def joined(self, layer: int) -> Float[Tensor, "variant token d_model"]:
        """The rows that enter `layer`: the run's own vectors, but for each segment's variant of that row."""
        rows = max(len(one.variants.get(layer, ())) for one in self._segments)
        block = self._base.resid[layer, self.replay.tokens].repeat(rows, 1, 1)
        for segment, offset, seen in zip(self._segments, self._offsets, self._order, strict=False):
            start = int(segment.suffix.tokens[0])
            here = segment.variants.get(layer, [])
            for row, variant in enumerate(here):
                if variant.lender is None:
                    block[row, [offset + token - start for token in variant.tokens]] = variant.vectors().to(block)
            seen.extend([*here, *[None] * (rows - len(here))])
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
        scores: dict[int, AnswerScore] = {}
        first = 0
        for segment, variants, behind in zip(self._segments, self._order, self._behind, strict=True):
            n_behind = int(behind.sum())
            rows = self._base.resid[-1, self._readers][None].repeat(len(h), 1, 1)
            rows[:, behind] = h[:, first : first + n_behind]
            first += n_behind
            kept = [row for row, variant in enumerate(variants) if variant is not None]
            found = scorer.from_resid(self._handle, rows[kept])
            scores.update({v.index: score for v, score in zip((variants[r] for r in kept), found, strict=True) if v})
        return scores


def _groups(packs: list[_Pack], budget: Budget) -> Iterator[list[_Pack]]:
    """Packs that climb together: where blocks are lean their rows share matrix products, which small packs need."""
    group: list[_Pack] = []
    for pack in packs:
        length, size = sum(map(len, group)) + len(pack), sum(one.size for one in group) + pack.size
        if group and (length > budget.chunk_tokens // 4 or size > budget.stacked_tokens or not pack.replay.is_lean(0)):
            yield group
            group = []
        group.append(pack)
    if group:
        yield group


def _climb(handle: ModelHandle, packs: list[_Pack], budget: Budget, growing: Growing | None) -> None:
    """Take all variants of some packs through the layers, up to their readers."""
    last, most = handle.n_layers - 1, budget.chunk_tokens
    taken = 0 if growing is None or 2 * len(growing) > most else len(growing)  # rows of the first part
    stairs: list[_Part] = []
    for layer in range(last):
        _heap(stairs, packs, layer, most, taken)
        if growing is not None and not (stairs and taken):
            growing.rise(layer)
        for number, part in enumerate(stairs):
            part.rise(layer, growing if number == 0 and taken else None)
    if growing is not None:
        growing.rise(last)
    _heap(stairs, packs, last, most, taken)
    for part in stairs:
        for pack, block in zip(packs, part.blocks, strict=True):
            if len(block):
                pack.read_through(last, block)
    for pack in packs:
        pack.read(pack.joined(last + 1))


class _Part:
    """Part of the staircase, as large as a matrix product: some variants of each pack, row by row."""

    def __init__(self, packs: list[_Pack], like: Tensor) -> None:
        self._packs, self._counts = packs, [0] * len(packs)
        self._rows = like.new_empty(0, like.shape[-1])

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def blocks(self) -> list[Float[Tensor, "variant token d_model"]]:
        """The variants of each pack."""
        shapes = [(count, len(pack)) for count, pack in zip(self._counts, self._packs, strict=True)]
        parts = self._rows.split([variants * tokens for variants, tokens in shapes])
        return [part.view(*shape, part.shape[-1]) for part, shape in zip(parts, shapes, strict=True)]

    def add(self, blocks: list[Float[Tensor, "variant token d_model"]]) -> None:
        """More variants of each pack."""
        both = itertools.chain.from_iterable(zip(self.blocks, blocks, strict=True))
        self._rows = torch.cat([block.flatten(0, 1) for block in both])
        self._counts = [count + len(block) for count, block in zip(self._counts, blocks, strict=True)]

    def rise(self, layer: int, growing: Growing | None) -> None:
        """Through one layer, with plain runs that have to go there, too."""
        here = [(pack.replay, count) for pack, count in zip(self._packs, self._counts, strict=True) if count]
        self._rows = replayed(layer, self._rows, here, growing)


def _heap(stairs: list[_Part], packs: list[_Pack], layer: int, most: int, taken: int) -> None:
    """Put the variants that enter a layer on the staircase.

    Its parts have at most `most` rows where they can be cut; of the first one's, others have taken some.
    """
    steps = [pack.joined(layer) for pack in packs]
    done = 0
    while left := [len(block) - done for block in steps if len(block) > done]:
        across = sum(len(pack) for pack, block in zip(packs, steps, strict=True) if len(block) > done)
        room = most - taken * (len(stairs) == 1) - len(stairs[-1]) if stairs else 0
        if room < across:
            stairs.append(_Part(packs, steps[0]))
            room = most - taken * (len(stairs) == 1)
        count = max(1, min(min(left), room // across))
        stairs[-1].add([block[done : done + count] for block in steps])
        done += count
