"""Which token of one prompt stands for which token of its minimal pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from latentkt.errors import InputError
from latentkt.models.tokens import COVERING, Encoded, Span

__all__ = ["Alignment", "align"]


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """A map of tokens from base to source, under one tokenizer.

    Attributes:
        base_to_source: `[len(base)]`; the source position of each base position, -1 where it has none.
        shifted: Some token after the first difference stands at another absolute position in the source. Such a pair
            is left out of position-level sweeps and mean effects unless it is asked for.
        shift: Source position minus base position of the last token.
        unequal_roles: Roles with a span of another length in the source; only its last token is mapped.
        unmapped: Number of base positions without a partner; cells there are NaN.
        first_difference: The first position at which the ids differ; the shorter length where none does.
    """

    base_to_source: Int[np.ndarray, " base_pos"]
    shifted: bool
    shift: int
    unequal_roles: tuple[str, ...]
    unmapped: int
    first_difference: int


def align(base: Encoded, source: Encoded, *, name: str = "pair") -> Alignment:
    """Align two prompts: spans by role, tokens outside spans one to one.

    The k-th span of a role maps to the k-th span of that role; spans of unequal length map by their last token only.
    The runs of tokens before, between and after spans map one to one; where such a run has another length in the
    source, its equal head and tail do, and what is between has no partner.

    Args:
        base: The prompt of the base run.
        source: The prompt of the source run.
        name: What to call the pair in errors.

    Raises:
        InputError: A role has another number of spans in the source.
    """
    _check_roles(base, source, name)
    mapping = np.full(len(base), -1, dtype=np.int64)
    unequal = set()
    for role in _named(base):
        for (first, stop), (start, end) in zip(base.spans[role], source.spans[role], strict=True):
            if stop - first == end - start:
                mapping[first:stop] = np.arange(start, end)
            else:
                mapping[stop - 1] = end - 1
                unequal.add(role)
    for run, partner in zip(_outside(base), _outside(source), strict=True):
        _map_run(mapping, base, source, run, partner)
    mapped = np.flatnonzero(mapping >= 0)
    moved = mapping[mapped] != mapped
    pairs = zip(base.ids, source.ids, strict=False)
    difference = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(base), len(source)))
    return Alignment(
        base_to_source=mapping,
        shifted=bool(moved.any()),
        shift=len(source) - len(base),
        unequal_roles=tuple(role for role in _named(base) if role in unequal),
        unmapped=int((mapping < 0).sum()),
        first_difference=difference,
    )


def _named(encoded: Encoded) -> list[str]:
    return [role for role in encoded.spans if role not in COVERING]


def _check_roles(base: Encoded, source: Encoded, name: str) -> None:
    for role in dict.fromkeys([*_named(base), *_named(source)]):
        counts = [len(encoded.spans.get(role, ())) for encoded in (base, source)]
        if counts[0] != counts[1]:
            raise InputError(
                f"role {role!r} of {name} does not have the same spans on both sides",
                expected=f"{counts[0]} in the source, as in the base",
                found=counts[1],
                fix="mark the role in both texts, in the same number of pieces",
            )


def _outside(encoded: Encoded) -> list[Span]:
    """The runs between named spans: always one more than there are spans, some of them empty."""
    spans = sorted(span for role in _named(encoded) for span in encoded.spans[role])
    edges = [0, *(edge for span in spans for edge in span), len(encoded)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _map_run(mapping: Int[np.ndarray, " n"], base: Encoded, source: Encoded, run: Span, partner: Span) -> None:
    (first, stop), (start, end) = run, partner
    if stop - first == end - start:
        mapping[first:stop] = np.arange(start, end)
        return
    shorter = min(stop - first, end - start)
    head = 0
    while head < shorter and base.ids[first + head] == source.ids[start + head]:
        mapping[first + head] = start + head
        head += 1
    tail = 0
    while tail < shorter - head and base.ids[stop - 1 - tail] == source.ids[end - 1 - tail]:
        mapping[stop - 1 - tail] = end - 1 - tail
        tail += 1
