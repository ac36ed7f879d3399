"""Patches of any site, turned into what they make of the residual stream.

A patch of resid_mid, attn_out, mlp_out, z or q changes the layer's output at the patched positions only. So one replay
of the layer, with many cells' values in place at once, gives the outputs of all cells whose positions do not meet. A
patch of k or v changes later positions of the same layer, too: there each cell is replayed on its own suffix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch

from latentkt.errors import InputError
from latentkt.internals.engines.base import STREAM, FromRun, Patch
from latentkt.internals.packs import Variant
from latentkt.internals.recording import Recording, is_stretch, stretch
from latentkt.internals.replay import Replay, Suffix
from latentkt.models.sites import attached

if TYPE_CHECKING:
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["variants_of"]

_LOCAL = ("resid_mid", "attn_out", "mlp_out", "z", "q")
_SPREADING = ("k", "v")


def variants_of(
    handle: ModelHandle,
    base: Recording,
    patches: Mapping[int, Patch],
    *,
    chunk_tokens: int,
    others: Sequence[Recording] = (),
) -> list[Variant]:
    """What each patch makes of the residual stream.

    Args:
        handle: The model.
        base: The recorded run that is patched.
        patches: By the number of their cell.
        chunk_tokens: Rows of a matrix product inside a layer.
        others: The recorded runs that patches name.

    Raises:
        InputError: A site that cannot be patched.
    """
    found: list[Variant] = []
    inside: dict[tuple[str, int], dict[int, Patch]] = defaultdict(dict)
    for number, patch in patches.items():
        if patch.site in STREAM:
            found.append(_of_stream(number, patch, base, others))
        elif patch.site in _LOCAL + _SPREADING:
            inside[patch.site, patch.layer][number] = patch
        else:
            raise InputError(f"site {patch.site!r} cannot be patched", expected=", ".join(_LOCAL + _SPREADING))
    with torch.inference_mode():
        for (site, _), group in inside.items():
            make = _local if site in _LOCAL else _spreading
            found.extend(make(handle, base, group, chunk_tokens))
    return found


def _itself(vectors: Tensor) -> Tensor:
    return vectors


def _of_stream(number: int, patch: Patch, base: Recording, others: Sequence[Recording]) -> Variant:
    join = patch.layer + (patch.site == "resid_post")
    values = patch.values
    if not isinstance(values, FromRun):
        return Variant(number, join, patch.positions, partial(_itself, values))
    run = next(one for one in (base, *others) if one.branches.prompt == values.prompt)
    lender = run if values.positions == patch.positions and _goes_on_as(run, base, patch.positions) else None
    return Variant(number, join, patch.positions, partial(_entering, run, join, values.positions), lender)


def _entering(run: Recording, layer: int, positions: Sequence[int]) -> Tensor:
    return run.resid[layer, stretch(positions)]


def _goes_on_as(run: Recording, base: Recording, positions: Sequence[int]) -> bool:
    """Whether tokens that are patched from `run` follow it for ever: the runs do not differ before them, nor between.

    Causal attention shows them nothing else, so their keys and values are that run's. The last prompt token is always
    run itself: a patch of all tokens is to reproduce the other run, not to be it.
    """
    first, stop = positions[0], positions[-1] + 1
    ours, theirs = base.branches.prompt, run.branches.prompt
    return is_stretch(positions) and stop < len(ours) and theirs[:first] == ours[:first]


def _local(handle: ModelHandle, base: Recording, group: dict[int, Patch], chunk_tokens: int) -> Iterator[Variant]:
    first = min(patch.positions[0] for patch in group.values())
    stop = max(patch.positions[-1] for patch in group.values()) + 1
    tokens = torch.arange(first, stop)
    for rows in _rows(group, max(1, chunk_tokens // len(tokens))):
        placed = [(row, patch) for row, numbers in enumerate(rows) for patch in (group[n] for n in numbers)]
        out = _replay(handle, base, tokens, len(rows), placed, chunk_tokens)
        for row, numbers in enumerate(rows):
            for number in numbers:
                patch = group[number]
                vectors = out[row, [position - first for position in patch.positions]]
                yield Variant(number, patch.layer + 1, patch.positions, partial(_itself, vectors))


def _rows(group: dict[int, Patch], at_once: int) -> Iterator[list[list[int]]]:
    """Cells side by side in one row as long as their positions do not meet; `at_once` rows together."""
    rows: list[tuple[set[int], list[int]]] = []
    for number, patch in group.items():
        taken = set(patch.positions)
        row = next((row for row in rows if not row[0] & taken), None)
        if row is None:
            rows.append(row := (set(), []))
        row[0].update(taken)
        row[1].append(number)
    for start in range(0, len(rows), at_once):
        yield [numbers for _, numbers in rows[start : start + at_once]]


def _spreading(handle: ModelHandle, base: Recording, group: dict[int, Patch], chunk_tokens: int) -> Iterator[Variant]:
    by_start: dict[int, list[int]] = defaultdict(list)
    for number, patch in group.items():
        by_start[patch.positions[0]].append(number)
    n_tokens = base.resid.shape[1]
    for start, numbers in by_start.items():
        tokens = torch.arange(start, n_tokens)
        at_once = max(1, chunk_tokens // len(tokens))
        for first in range(0, len(numbers), at_once):
            chosen = numbers[first : first + at_once]
            placed = [(row, group[number]) for row, number in enumerate(chosen)]
            out = _replay(handle, base, tokens, len(chosen), placed, chunk_tokens)
            for row, number in enumerate(chosen):
                yield Variant(number, group[number].layer + 1, tuple(tokens.tolist()), partial(_itself, out[row]))


def _replay(
    handle: ModelHandle,
    base: Recording,
    tokens: Tensor,
    n_rows: int,
    placed: list[tuple[int, Patch]],
    chunk_tokens: int,
) -> Tensor:
    """The layer's output on `tokens`, each row with its patches in place."""
    patch = placed[0][1]
    start = int(tokens[0])

    def put(value: Tensor) -> Tensor:
        value = value.clone()
        for row, one in placed:
            at = [position - start for position in one.positions]
            if one.head is None:
                value[row, at] = one.given.to(value)
            else:
                value[row, at, one.head] = one.given.to(value)
        return value

    replay = Replay(handle, base, [Suffix(tokens)], chunk_tokens=max(chunk_tokens, n_rows * len(tokens)))
    h = base.resid[patch.layer, tokens][None].repeat(n_rows, 1, 1)
    with attached([(handle.arch.site(patch.site, patch.layer), put)]):
        return replay.layer(patch.layer, h)
