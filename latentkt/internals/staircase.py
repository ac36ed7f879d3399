"""Exact patched runs in about half a forward pass a cell: the staircase.

A patch of the residual stream after layer l at some prompt positions changes nothing before the first of them and
nothing below layer l + 1. So the patched run is resumed there, on the suffix of the tokens only, with the unpatched
run's keys and values in front. The variants of layer l join those of layers below when layer l + 1 is applied: each
layer's weights are read once for a batch that grows like a staircase. Short suffixes are packed into one sequence, so
that matrix products stay large. In the last layer the tokens that nobody reads lend their keys and values only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from latentkt.internals.budget import Budget
from latentkt.internals.metrics import AnswerScore, Scorer
from latentkt.internals.packs import Pack, Variant, packs_of
from latentkt.internals.recording import Recording
from latentkt.internals.replay import replayed

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.growing import Growing
    from latentkt.models import ModelHandle

__all__ = ["climb"]


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
        growing: The recorded runs, where they have not gone through the layers yet: they do so here, with at least one
            variant.

    Returns:
        The score of each variant, by its index.
    """
    scores: dict[int, AnswerScore] = {}
    with torch.inference_mode():
        for together in _groups(packs_of(handle, base, variants, budget), budget):
            _climb(handle, together, budget, growing)
            growing = None
            for pack in together:
                scores.update(pack.scores(scorer))
    return scores


def _groups(packs: list[Pack], budget: Budget) -> Iterator[list[Pack]]:
    """Packs that climb together: where blocks are lean their rows share matrix products, which small packs need."""
    group: list[Pack] = []
    for pack in packs:
        length, size = sum(map(len, group)) + len(pack), sum(one.size for one in group) + pack.size
        if group and (length > budget.chunk_tokens // 4 or size > budget.stacked_tokens or not pack.replay.is_lean(0)):
            yield group
            group = []
        group.append(pack)
    if group:
        yield group


def _climb(handle: ModelHandle, packs: list[Pack], budget: Budget, growing: Growing | None) -> None:
    """Take all variants of some packs through the layers, up to their readers."""
    last, most = handle.n_layers - 1, budget.chunk_tokens
    fits = growing is not None and len(growing) + sum(map(len, packs)) <= most
    head = growing if fits else None
    stairs: list[_Part] = []
    for layer in range(last):
        _heap(stairs, packs, layer, most, head)
        if growing is not None and (head is None or not stairs):
            growing.rise()
        for part in stairs:
            part.rise(layer)
    if growing is not None:
        growing.rise()
    _heap(stairs, packs, last, most, head)
    for part in stairs:
        for pack, block in zip(packs, part.blocks, strict=True):
            if len(block):
                pack.read_through(last, block)
    for pack in packs:
        pack.read(pack.joined(last + 1))


class _Part:
    """Part of the staircase, as large as a matrix product: some variants of each pack, row by row.

    At its head may be the rows of plain runs that have to go through the layers, too.
    """

    def __init__(self, packs: list[Pack], like: Tensor, head: Growing | None) -> None:
        self._packs, self._counts, self._head = packs, [0] * len(packs), head
        self._rows = like.new_empty(0, like.shape[-1]) if head is None else head.rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def _parts(self) -> list[Tensor]:
        """The rows of the head, then those of each pack."""
        sizes = [count * len(pack) for count, pack in zip(self._counts, self._packs, strict=True)]
        return list(self._rows.split_with_sizes([len(self._rows) - sum(sizes), *sizes]))

    @property
    def blocks(self) -> list[Float[Tensor, "variant token d_model"]]:
        """The variants of each pack."""
        parts = zip(self._packs, self._counts, self._parts[1:], strict=True)
        return [part.view(count, len(pack), part.shape[-1]) for pack, count, part in parts]

    def add(self, blocks: list[Float[Tensor, "variant token d_model"]]) -> None:
        """More variants of each pack."""
        head, *packs = self._parts
        both = zip(packs, (block.flatten(0, 1) for block in blocks), strict=True)
        self._rows = torch.cat([head, *itertools.chain.from_iterable(both)])
        self._counts = [count + len(block) for count, block in zip(self._counts, blocks, strict=True)]

    def rise(self, layer: int) -> None:
        """Through one layer."""
        here = [(pack.replay, count) for pack, count in zip(self._packs, self._counts, strict=True) if count]
        head = None if self._head is None else self._head.span()
        self._rows = replayed(layer, self._rows, here, head)
        if self._head is not None:
            self._head.rose(self._parts[0])


def _heap(stairs: list[_Part], packs: list[Pack], layer: int, most: int, head: Growing | None) -> None:
    """Put the variants that enter a layer on the staircase, in parts of at most `most` rows where they can be cut."""
    steps = [pack.joined(layer) for pack in packs]
    done = 0
    while left := [len(block) - done for block in steps if len(block) > done]:
        across = sum(len(pack) for pack, block in zip(packs, steps, strict=True) if len(block) > done)
        if not stairs or len(stairs[-1]) + across > most:
            stairs.append(_Part(packs, steps[0], None if stairs else head))
        count = max(1, min(min(left), (most - len(stairs[-1])) // across))
        stairs[-1].add([block[done : done + count] for block in steps])
        done += count
