"""Lens, attribution and patching of trap items, written to a run directory: what the commands of these names call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.internals.attribution import attribute, head_table
from latentkt.internals.lens import answer_lens, token_lens
from latentkt.internals.pairs import PAIR_COLUMNS, RUN_COLUMNS
from latentkt.internals.patching import COLUMNS, ROLES, patch
from latentkt.internals.placebo import placebo_roles
from latentkt.internals.working import Bench, Job, Tables, layers_of, work_items

if TYPE_CHECKING:
    from latentkt.internals.lens import LensRun
    from latentkt.models import ModelHandle
    from latentkt.results import RunWriter
    from latentkt.trapqa import TrapItem

__all__ = ["COLUMNS_OF", "attribute_items", "lens_items", "patch_items"]

_LENS = (
    "lens",
    "dtype",
    "position",
    "layer",
    "logp_correct",
    "logp_shortcut",
    "log_odds",
    "first_token_log_odds",
    "p_correct",
)
_TOKENS = ("lens", "dtype", "layer", "position", "token", "role", "first_token_log_odds", "p_correct", "p_shortcut")
COLUMNS_OF: dict[str, tuple[str, ...]] = {
    "lens": (*RUN_COLUMNS, *_LENS, "p_shortcut", "rank_correct", "rank_shortcut", "kl_to_final"),
    "lens_tokens": (*RUN_COLUMNS, *_TOKENS, "rank_correct", "rank_shortcut", "top_token", "p_top", "kl_to_final"),
    "attribution": (
        *RUN_COLUMNS, "component", "layer", "head", "contribution", "norm", "dtype", "difference", "completeness_error",
    ),
    "heads": (
        *RUN_COLUMNS, "layer", "head", "role", "attention", "ov_effect", "contribution", "direct_effect", "difference",
        "dtype",
    ),
    "patch": ("pair", *PAIR_COLUMNS, *COLUMNS),
    "placebo": ("pair", *PAIR_COLUMNS, *COLUMNS, "donor"),
}  # fmt: skip


def lens_items(model: str | ModelHandle, out: str | os.PathLike[str], *, tokens: bool = False, **options: Any) -> Path:
    """Logit lens of items and controls.

    Args:
        model: `smollm2`, a folder, a hub id, or an opened model.
        out: Run directory to write; refused where it exists, unless `resume`.
        tokens: Also read every prompt token (table `lens_tokens`).
        **options: `items` (JSONL file; default the built-in set), `orders`, `template`, `system`, `limit`, `engine`,
            `device`, `dtype`, `memory_mb`, `resume`.

    Returns:
        The run directory with the tables `lens` (see `answer_lens`), `lens_tokens` (see `token_lens`) and
        `lens_skipped`. Log-odds are log P(y*) − log P(y_s) in nats.

    Raises:
        LatentKTError: Unknown model or items, an existing directory.

    Example:
        >>> import tempfile
        >>> from latentkt.internals import lens_items
        >>> from latentkt.models import open_model
        >>> from latentkt.results import load_run
        >>> handle = open_model("smollm2", check=False)
        >>> folder = lens_items(handle, tempfile.mkdtemp() + "/lens", limit=1, orders=["correct_first"])
        >>> load_run(folder).tables["lens"].groupby("which")["layer"].agg(["min", "max"]).to_numpy().tolist()
        [[-1, 29], [-1, 29]]
    """

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        runs = list(bench.runs(item, order))
        tables = {"lens": answer_lens(bench.engine, runs)[0]}
        return {**tables, "lens_tokens": token_lens(bench.engine, runs)} if tokens else tables

    columns = _columns("lens", *(["lens_tokens"] if tokens else []))
    return work_items(Job(model, out, **options), columns, measure, tokens=tokens)


def attribute_items(
    model: str | ModelHandle, out: str | os.PathLike[str], *, norm: str = "frozen", **options: Any
) -> Path:
    """Direct logit attribution of items and controls, with the head table.

    Args:
        model: As in `lens_items`.
        out: As in `lens_items`.
        norm: `frozen` or `recomputed`; see `attribute`.
        **options: As in `lens_items`.

    Returns:
        The run directory with the tables `attribution` (see `attribute`), `heads` (see `head_table`) and
        `attribution_skipped`. Contributions are nats of logit(y*) − logit(y_s).

    Raises:
        LatentKTError: As in `lens_items`; a run whose rows do not add up.

    Example:
        >>> import tempfile
        >>> from latentkt.internals import attribute_items
        >>> from latentkt.models import open_model
        >>> from latentkt.results import load_run
        >>> handle = open_model("smollm2", check=False)
        >>> folder = attribute_items(handle, tempfile.mkdtemp() + "/dla", limit=1, orders=["correct_first"])
        >>> rows = load_run(folder).tables["attribution"]
        >>> bool(rows["completeness_error"].abs().max() < 1e-4)
        True
    """

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        runs = list(bench.runs(item, order))
        return {"attribution": attribute(bench.engine, runs, norm=norm), "heads": head_table(bench.engine, runs)}

    return work_items(Job(model, out, **options), _columns("attribution", "heads"), measure, norm=norm)


def patch_items(
    model: str | ModelHandle,
    out: str | os.PathLike[str],
    *,
    sites: Sequence[str] = ("resid_post",),
    roles: Sequence[str] = ROLES,
    positions: bool = False,
    heads: bool = False,
    layers: Sequence[int] | None = None,
    window: int = 1,
    placebo: bool = True,
    **options: Any,
) -> Path:
    """Patch items with their controls and controls with their items, and both with placebo donors.

    Args:
        model: As in `lens_items`.
        out: As in `lens_items`.
        sites: Sites that are patched.
        roles: Roles whose tokens are patched together.
        positions: Patch every prompt token on its own instead; no placebo is defined for these.
        heads: Patch head by head (sites z, q, k, v, pattern).
        layers: Layers; default all.
        window: So many consecutive layers at once.
        placebo: Also patch from matched donors among the items, and hold effects against them.
        **options: As in `lens_items`.

    Returns:
        The run directory with the tables `patch` (see `patch`), `placebo` (see `placebo_roles`), `effects` (see
        `effects_against_placebo`) and `patch_skipped`. Effects are nats of log P(y*) − log P(y_s), patched − base.

    Raises:
        LatentKTError: As in `lens_items`; an unknown site, layer or engine.

    Example:
        >>> import tempfile
        >>> from latentkt.internals import patch_items
        >>> from latentkt.models import open_model
        >>> from latentkt.results import load_run
        >>> handle = open_model("smollm2", check=False)
        >>> options = {"limit": 1, "orders": ["correct_first"], "layers": [15], "roles": ["constraint"]}
        >>> run = load_run(patch_items(handle, tempfile.mkdtemp() + "/patch", **options))
        >>> run.tables["patch"][["item", "direction", "frame"]].shape == (2, 3), sorted(run.tables)
        (True, ['effects', 'patch', 'patch_skipped', 'placebo'])
    """
    fixed: dict[str, Any] = {"sites": tuple(sites), "heads": heads, "layers": layers, "window": window}
    with_placebo = placebo and not positions
    pools: dict[str, list[LensRun]] = {}

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        pairs = bench.pairs(item, order)
        tables = {"patch": patch(bench.engine, pairs, where="positions" if positions else tuple(roles), **fixed)}
        if with_placebo:
            if order not in pools:
                known = Bench(bench.engine, bench.items, bench.options)  # its refusals are listed with their own items
                pools[order] = [run for one in bench.items for run in known.runs(one, order)]
            tables["placebo"] = placebo_roles(bench.engine, pairs, pools[order], roles=tuple(roles), **fixed)
        return tables

    names = ("patch", "placebo") if with_placebo else ("patch",)
    said = {**fixed, "layers": layers_of(layers), "positions": positions, "placebo": with_placebo}
    said["roles"] = () if positions else tuple(roles)
    closing = _effects if with_placebo else None
    return work_items(Job(model, out, **options), _columns(*names), measure, closing=closing, **said)


def _columns(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: COLUMNS_OF[name] for name in names}


def _effects(run: RunWriter, bench: Bench) -> None:
    from latentkt.internals.effects import effects_against_placebo

    effects, placebo = run.read("patch"), run.read("placebo")
    if len(effects) and len(placebo):
        run.save("effects", effects_against_placebo(effects, placebo))
