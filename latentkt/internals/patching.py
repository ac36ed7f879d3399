"""Exact residual patching by layer and role, between an item and its control, in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.internals.branches import Branches
from latentkt.internals.recording import Recording, record
from latentkt.internals.reference import patched_score, residual_stream
from latentkt.internals.staircase import patch_residual

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.metrics import AnswerScore
    from latentkt.models import ModelHandle, Pair

__all__ = ["MIN_GAP", "patch_roles", "role_positions"]

MIN_GAP = 0.5
"""Nats between the two runs below which a recovery would divide by noise and is NaN."""


@dataclass(frozen=True)
class _Cells:
    """Aligned prompt positions of one role: where to patch, and where the values come from."""

    base: tuple[int, ...]
    source: tuple[int, ...]


def role_positions(pair: Pair, role: str) -> _Cells:
    """Aligned positions of a role in the base and the source run; empty where the role does not exist or align.

    Args:
        pair: Base run, source run and their alignment.
        role: A span role of the base run, or `last` (the last prompt token).
    """
    if role == "last":
        return _Cells((len(pair.base.ids) - 1,), (len(pair.source.ids) - 1,))
    inside = [p for first, stop in pair.base.spans.get(role, ()) for p in range(first, stop)]
    partners = [int(pair.alignment.base_to_source[p]) for p in inside]
    kept = [(p, q) for p, q in zip(inside, partners, strict=True) if q >= 0]
    return _Cells(tuple(p for p, _ in kept), tuple(q for _, q in kept))


def patch_roles(
    handle: ModelHandle,
    pairs: Iterable[Pair],
    *,
    roles: Sequence[str] = ("shortcut", "constraint", "last"),
    layers: Sequence[int] | None = None,
    engine: str = "fast",
) -> pd.DataFrame:
    """Patch `resid_post` of a role's tokens from the source run into the base run, layer by layer.

    Effect = log-odds of y* over y_s in the patched run − in the base run, nats, y* and y_s being the item's own strings
    in every run. Recovery = effect / (source − base), NaN where that gap is under 0.5 nat. Only prompt positions are
    patched, never the answers'.

    Args:
        handle: The model.
        pairs: Base and source runs of equal answers; shifted pairs are refused (leave them out and count them).
        roles: Span roles of the base run, and `last` for the last prompt token.
        layers: Layers after which the residual stream is replaced; default all.
        engine: `fast` (staircase) or `reference` (one plain forward a cell); the numbers are the same to 1e-4 nat.

    Returns:
        One row a pair, layer and role: `pair` and the pair's `meta`, `site`, `layer`, `role`, `n_positions`,
        `base_value`, `source_value`, `patched_value`, `effect`, `recovery`, `first_token_effect` (the effect on the
        log-odds of the first differing tokens). A role that does not align gives NaN.
    """
    import pandas as pd

    chosen = list(range(handle.n_layers)) if layers is None else list(layers)
    if not set(chosen) <= set(range(handle.n_layers)):
        raise InputError("unknown layer", expected=f"0 to {handle.n_layers - 1}", found=chosen)
    run = {"fast": _FastRun, "reference": _ReferenceRun}.get(engine)
    if run is None:
        raise InputError("unknown engine", expected="fast or reference", found=engine)
    rows: list[dict[str, object]] = []
    for pair in pairs:
        if pair.alignment.shifted:
            raise InputError(
                f"pair {pair.name!r} is shifted: after the first difference its runs stand at other positions",
                fix="leave it out and count it, or write item and control of equal token length",
            )
        base, source = run(handle, pair, pair.base.ids), run(handle, pair, pair.source.ids)
        for role in roles:
            rows.extend(_role_rows(pair, role, base, source, chosen))
    return pd.DataFrame(rows)


def _role_rows(pair: Pair, role: str, base: _Run, source: _Run, layers: list[int]) -> list[dict[str, object]]:
    cells = role_positions(pair, role)
    patched = base.patched(cells, source, layers) if cells.base else {}
    base_value, source_value = base.score.log_odds, source.score.log_odds
    gap = source_value - base_value
    rows: list[dict[str, object]] = []
    for layer in layers:
        value = patched[layer].log_odds if patched else np.nan
        first = patched[layer].first_token_log_odds if patched else np.nan
        effect = value - base_value
        rows.append(
            {
                "pair": pair.name,
                **pair.meta,
                "site": "resid_post",
                "layer": layer,
                "role": role,
                "metric": "log_odds",
                "n_positions": len(cells.base),
                "base_value": base_value,
                "source_value": source_value,
                "patched_value": value,
                "effect": effect,
                "recovery": effect / gap if abs(gap) >= MIN_GAP else np.nan,
                "first_token_effect": first - base.score.first_token_log_odds,
            }
        )
    return rows


class _Run:
    """One run of a pair: its score, and its score when patched from another run."""

    score: AnswerScore

    def patched(self, cells: _Cells, source: _Run, layers: list[int]) -> dict[int, AnswerScore]:
        raise NotImplementedError


class _FastRun(_Run):
    def __init__(self, handle: ModelHandle, pair: Pair, ids: Sequence[int]) -> None:
        from latentkt.internals.metrics import score_branches

        self.handle = handle
        answers = (tuple(pair.answers.correct_ids), tuple(pair.answers.shortcut_ids))
        self.recording: Recording = record(handle, Branches(tuple(ids), answers))
        last = self.recording.resid[-1:, self.recording.branches.readers]
        self.score = score_branches(handle, self.recording.branches, last)[0]

    def patched(self, cells: _Cells, source: _Run, layers: list[int]) -> dict[int, AnswerScore]:
        assert isinstance(source, _FastRun)
        live = _first_live(self.recording, source.recording, cells)
        if not live.base:  # nothing differs there at any layer: an exact no-op, not worth a forward
            return dict.fromkeys(layers, self.score)
        values = {layer: source.recording.resid[layer + 1, list(live.source)] for layer in layers}
        return patch_residual(self.handle, self.recording, positions=live.base, values=values)


def _first_live(base: Recording, source: Recording, cells: _Cells) -> _Cells:
    """Drop positions before the first token at which the runs differ: there both runs are the same, exactly."""
    a, b = base.branches.prompt, source.branches.prompt
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    kept = [(p, q) for p, q in zip(cells.base, cells.source, strict=True) if p >= first]
    return _Cells(tuple(p for p, _ in kept), tuple(q for _, q in kept))


class _ReferenceRun(_Run):
    def __init__(self, handle: ModelHandle, pair: Pair, ids: Sequence[int]) -> None:
        self.handle, self.ids = handle, ids
        self.answers = (pair.answers.correct_ids, pair.answers.shortcut_ids)
        self.score = patched_score(handle, ids, self.answers)

    def patched(self, cells: _Cells, source: _Run, layers: list[int]) -> dict[int, AnswerScore]:
        assert isinstance(source, _ReferenceRun)
        stream = residual_stream(self.handle, source.ids)
        return {
            layer: patched_score(
                self.handle,
                self.ids,
                self.answers,
                layer=layer,
                positions=cells.base,
                values=stream[layer][list(cells.source)],
            )
            for layer in layers
        }
