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
        growing: The recorded runs, where they have not gone through the layers yet: they do so here.

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
        if growing is not None:
            _climb(handle, [], budget, growing)
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

    def __init__(self, packs: list[Pack], like: Tensor) -> None:
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


def _heap(stairs: list[_Part], packs: list[Pack], layer: int, most: int, taken: int) -> None:
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
