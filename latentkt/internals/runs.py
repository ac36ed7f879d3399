"""Lens, attribution and patching of trap items, written to a run directory: what the commands of these names call.

A batch is one item in one option order, so a run that was killed goes on with the next. What a model refuses is listed
with the reason in the table's `…_skipped`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError, LatentKTError
from latentkt.internals.attribution import attribute, head_table
from latentkt.internals.engines import engine_of
from latentkt.internals.lens import LensRun, answer_lens, token_lens
from latentkt.internals.pairs import PAIR_COLUMNS, RUN_COLUMNS, item_run, pairs_of_item
from latentkt.internals.patching import COLUMNS, ROLES, patch
from latentkt.internals.placebo import placebo_roles

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.engines.base import Engine
    from latentkt.models import ModelHandle, Pair
    from latentkt.trapqa import TrapItem

__all__ = ["attribute_items", "lens_items", "patch_items", "with_columns"]

ORDERS = ("correct_first", "shortcut_first")
Tables = dict[str, "pd.DataFrame"]
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
_COLUMNS: dict[str, tuple[str, ...]] = {
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


@dataclass(frozen=True)
class _Job:
    """What one command does.

    Attributes:
        model: `smollm2`, a folder, a hub id, or an opened model.
        out: The run directory.
        items: A JSONL file; None for the built-in set.
        orders: Option orders.
        template: `chat` or `plain`; None for chat where the tokenizer has a template.
        system: None keeps the template's own system prompt.
        limit: The first so many items only.
        engine: Which engine runs the model.
        device: Where the model runs.
        dtype: The weights' dtype.
        memory_mb: Working memory of a sweep (engine `fast`); None for its default.
        resume: Go on with the run in `out`.
        command: The words of the command line, for the record.
    """

    model: str | ModelHandle
    out: str | os.PathLike[str]
    items: str | None = None
    orders: Sequence[str] = ORDERS
    template: str | None = None
    system: str | None = None
    limit: int | None = None
    engine: str = "fast"
    device: str = "cpu"
    dtype: str = "float32"
    memory_mb: float | None = None
    resume: bool = False
    command: Sequence[str] | None = None


@dataclass
class _Bench:
    """An engine and the items that it measures."""

    engine: Engine
    items: list[TrapItem]
    options: dict[str, Any]
    skipped: list[dict[str, Any]] = field(default_factory=list)

    def runs(self, item: TrapItem, order: str, whiches: Sequence[str] = ("item", "control")) -> Iterator[LensRun]:
        """The prompts of an item; those that the model refuses are listed."""
        for which in whiches:
            try:
                yield item_run(self.engine.handle, item, which=which, order=order, **self.options)
            except LatentKTError as error:
                self.skip(item, which, order, error.what)

    def pairs(self, item: TrapItem, order: str) -> list[Pair]:
        """The pairs of an item, none where they cannot be patched."""
        try:
            pairs = pairs_of_item(self.engine.handle, item, order=order, **self.options)
        except LatentKTError as error:
            self.skip(item, "pair", order, error.what)
            return []
        kept = [pair for pair in pairs if not pair.alignment.shifted]
        if len(kept) < len(pairs):
            self.skip(item, "pair", order, "item and control are of unequal length after their first difference")
        return kept

    def skip(self, item: TrapItem, which: str, order: str, reason: str) -> None:
        """List what was left out."""
        self.skipped.append({"item": item.id, "which": which, "order": order, "reason": reason})


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

    def measure(bench: _Bench, item: TrapItem, order: str) -> Tables:
        runs = list(bench.runs(item, order))
        tables = {"lens": answer_lens(bench.engine, runs)[0]}
        return {**tables, "lens_tokens": token_lens(bench.engine, runs)} if tokens else tables

    return _work(_Job(model, out, **options), ("lens", "lens_tokens") if tokens else ("lens",), measure)


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

    def measure(bench: _Bench, item: TrapItem, order: str) -> Tables:
        runs = list(bench.runs(item, order))
        return {"attribution": attribute(bench.engine, runs, norm=norm), "heads": head_table(bench.engine, runs)}

    return _work(_Job(model, out, **options), ("attribution", "heads"), measure)


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

    def measure(bench: _Bench, item: TrapItem, order: str) -> Tables:
        pairs = bench.pairs(item, order)
        tables = {"patch": patch(bench.engine, pairs, where="positions" if positions else tuple(roles), **fixed)}
        if with_placebo:
            if order not in pools:
                known = _Bench(bench.engine, bench.items, bench.options)  # its refusals are listed with their own items
                pools[order] = [run for one in bench.items for run in known.runs(one, order)]
            tables["placebo"] = placebo_roles(bench.engine, pairs, pools[order], roles=tuple(roles), **fixed)
        return tables

    names = ("patch", "placebo") if with_placebo else ("patch",)
    return _work(_Job(model, out, **options), names, measure, closing=_effects if with_placebo else None)


def _effects(run: Any) -> None:
    from latentkt.internals.effects import effects_against_placebo

    effects, placebo = run.read("patch"), run.read("placebo")
    if len(effects) and len(placebo):
        run.save("effects", effects_against_placebo(effects, placebo))


def with_columns(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table without rows has the columns of its kind, too."""
    import pandas as pd

    return table if len(table) else pd.DataFrame(columns=list(_COLUMNS[name]))


def _work(
    job: _Job,
    names: tuple[str, ...],
    measure: Callable[[_Bench, TrapItem, str], Tables],
    *,
    closing: Callable[[Any], None] | None = None,
) -> Path:
    """Plan the batches, work them off, write the tables."""
    import pandas as pd

    from latentkt.models import open_model
    from latentkt.progress import progress
    from latentkt.results import create_run
    from latentkt.trapqa import builtin_items, load_items

    if not set(job.orders) <= set(ORDERS) or not job.orders:
        raise InputError("option orders", expected=" and/or ".join(ORDERS), found=list(job.orders))
    items = builtin_items() if job.items is None else load_items(job.items)
    chosen = list(items)[: job.limit]
    handle = open_model(job.model, device=job.device, dtype=job.dtype) if isinstance(job.model, str) else job.model
    template = job.template or ("chat" if handle.has_chat_template else "plain")
    limit = {} if job.memory_mb is None else {"memory_mb": job.memory_mb}
    bench = _Bench(engine_of(handle, job.engine, **limit), chosen, {"template": template, "system": job.system})
    cells = [(item, order) for item in chosen for order in job.orders]
    metadata = {
        "model": handle.metadata(),
        "items": {"path": job.items or "built-in", "sha256": items.sha256, "n": len(chosen)},
        "options": {"measurement": names[0], "engine": job.engine, "template": template, "orders": list(job.orders)},
    }
    skipped_name = f"{names[0]}_skipped"
    with create_run(job.out, metadata=metadata, resume=job.resume, command=job.command) as run, progress() as bar:
        stage = bar.stage(names[0], total=len(cells))
        for batch in run.batches((*names, skipped_name), len(cells)):
            bench.skipped.clear()
            tables = measure(bench, *cells[batch])
            for name in names:
                run.write(name, batch, with_columns(tables[name], name))
            columns = ["item", "which", "order", "reason"]
            run.write(skipped_name, batch, pd.DataFrame(bench.skipped, columns=columns).astype("str"))
            stage.advance()
        if closing is not None:
            closing(run)
        run.finish()
    return Path(job.out)
