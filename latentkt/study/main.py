"""`study`: plan, run, resume, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import LatentKTError
from latentkt.progress import progress
from latentkt.study.checks import check_options, check_prompts
from latentkt.study.context import Context, ContextMaker, read_items
from latentkt.study.corpus import join_corpus, refuse_without_patterns
from latentkt.study.estimate import SAMPLE, Estimate, estimate
from latentkt.study.presets import preset_named, select_items
from latentkt.study.reading import verdicts
from latentkt.study.stages import Stage, plan
from latentkt.study.workers import Pool

if TYPE_CHECKING:
    from latentkt.models import ModelHandle
    from latentkt.progress import Bar
    from latentkt.results import RunWriter
    from latentkt.trapqa import ItemSet, TrapItem

__all__ = ["StudyOptions", "study"]


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a study measures, and how; all that its tables depend on but the model's weights and the items' text.

    Attributes:
        model: `smollm2`, a folder, or a hub id.
        items: A JSONL file of items; None for the built-in set.
        preset: `quick` or `full` (see `latentkt.study.presets`).
        limit: At most this many items of each kind, drawn like the preset's; None for all.
        device: Where the model runs.
        dtype: The weights' dtype; metrics are float32 or better whatever it is.
        template: `chat` or `plain`; None for chat where the tokenizer has a template.
        system: None keeps the template's own system prompt, "none" removes it, other text replaces it.
        seed: Seed of every draw.
        corpus: Files, folders, globs or URLs of a corpus in which the items' paths are counted; none by default.
        window: Word tokens on either side of a key within which a task counts as co-occurring.
        training_corpus: Whether that corpus is what the model was trained on; the report's words depend on it.
    """

    model: str
    items: str | None = None
    preset: str = "quick"
    limit: int | None = None
    device: str = "cpu"
    dtype: str = "float32"
    template: str | None = None
    system: str | None = None
    seed: int = 0
    corpus: tuple[str, ...] = ()
    window: int = 50
    training_corpus: bool = False


def study(
    options: StudyOptions,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    workers: int | None = None,
    command: Sequence[str] | None = None,
    log: Callable[[str], None] | None = None,
) -> Path:
    """Ask a model the items and their controls, measure inside it, and write tables and one report.

    Args:
        options: What to measure.
        out: The run's folder; by default `runs/<UTC stamp>-<preset>`.
        resume: Go on with the run in `out`.
        workers: Single-thread processes; default two on a CPU (one where there is one core, or on another device).
        command: The words of the command line, for the record.
        log: Called with a sentence before the work starts: how long it will take, and from what that follows.

    Returns:
        The run's folder; `report.html` stands in it.

    Raises:
        LatentKTError: Before work starts where it can be known: unknown model, wrong items, an existing folder, a
            prompt longer than the context, answers that a tokenizer cannot tell apart.
    """
    from latentkt.models import open_model
    from latentkt.results import create_run

    preset_named(options.preset)
    check_options(options, out=out, resume=resume, workers=workers)
    items = read_items(options)
    if options.corpus:
        refuse_without_patterns(items)
    chosen = select_items(tuple(items), per_kind=options.limit, seed=options.seed)
    stages = plan(tuple(items), options)
    handle = open_model(options.model, device=options.device, dtype=options.dtype)
    check_prompts(Context(handle, {}, options), chosen)
    folder = Path(out) if out is not None else _default_folder(options.preset)
    n_workers = _workers(options, workers)
    metadata = _identity(options, handle, items)
    with create_run(folder, metadata=metadata, resume=resume, command=command) as run, progress() as bar:
        _keep_items(run, items)
        if log is not None:
            log(f"run folder: {folder}")
            log(str(_estimate(handle, chosen, stages, options, n_workers)))
        try:
            with Pool(ContextMaker(options), workers=n_workers) as pool:
                for stage in stages:
                    _run_stage(run, stage, pool, bar)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"go on with --out {folder} --resume") from None
        if options.corpus:
            join_corpus(run, items, chosen, options, n_workers)
        _gather_skipped(run, stages)
        _gather_effects(run)
        _gather_verdicts(run, items)
        run.finish()
    return _report(folder)


def _workers(options: StudyOptions, workers: int | None) -> int:
    if workers is not None:
        return workers
    return min(2, os.cpu_count() or 1) if options.device == "cpu" else 1


def _default_folder(preset: str) -> Path:
    return Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{preset}"


def _identity(options: StudyOptions, handle: ModelHandle, items: ItemSet) -> dict[str, Any]:
    from dataclasses import asdict

    from latentkt.results import library_versions

    shown = asdict(options)
    return {
        "model": handle.metadata(),
        "items": {"path": shown.pop("items") or "built-in", "sha256": items.sha256, "n": len(items)},
        "preset": shown.pop("preset"),
        "seeds": {"study": shown.pop("seed")},
        "options": shown,
        "versions": library_versions(),
    }


def _estimate(
    handle: ModelHandle, items: Sequence[TrapItem], stages: Sequence[Stage], options: StudyOptions, workers: int
) -> Estimate:
    from latentkt.internals import item_run

    context = Context(handle, {}, options)
    runs = []
    for item in items[:: max(1, len(items) // SAMPLE)]:
        with suppress(LatentKTError):  # an item that this model refuses is listed by the stages
            runs.append(item_run(handle, item, template=context.template, system=options.system))
    return estimate(handle, stages, [run.prompt for run in runs], workers=workers)


def _keep_items(run: RunWriter, items: ItemSet) -> None:
    """The items stand beside the tables, and how they were made, so that a run can be read without their file."""
    import json

    lines = [json.dumps(item.to_dict(), ensure_ascii=False) for item in items]
    run.write_file("items.jsonl", "\n".join(lines) + "\n")
    if items.path is not None:
        from latentkt.trapqa.build import construction_tables

        for name, table in construction_tables(items.path, items.sha256).items():
            run.save(name, table)


def _run_stage(run: RunWriter, stage: Stage, pool: Pool, bar: Bar) -> None:
    shown = bar.stage(stage.name, total=len(stage.batches))
    left = list(run.batches(stage.tables, len(stage.batches)))
    shown.advance(len(stage.batches) - len(left))
    given = {name: run.read(name) for name in stage.needs} if left else {}
    work = [(index, (stage.batches[index], given) if given else stage.batches[index]) for index in left]
    for index, tables in pool.run(stage.work, work):
        for name in stage.tables:
            run.write(name, index, tables[name])
        shown.advance()


def _gather_skipped(run: RunWriter, stages: Sequence[Stage]) -> None:
    """One table of everything that was left out, whatever stage left it out."""
    import pandas as pd

    parts = [run.read(name) for stage in stages for name in stage.tables if name.endswith("_skipped")]
    run.save("skipped", pd.concat(parts, ignore_index=True))


def _gather_effects(run: RunWriter) -> None:
    """Effects of patching held against those of placebo donors, over families."""
    from latentkt.internals import effects_against_placebo

    patched, placebo = run.read("patch"), run.read("placebo")
    if len(patched) and len(placebo):
        measured = patched[patched["pair"].isin(set(placebo["pair"]))].reset_index(drop=True)
        run.save("effects", effects_against_placebo(measured, placebo))


def _gather_verdicts(run: RunWriter, items: ItemSet) -> None:
    """A verdict for every item that was asked, from what the stages have measured."""
    names = ("answers", "lens", "patch", "constraint_patch", "placebo_draws", "donors_skipped")
    for name, table in verdicts({name: run.read(name) for name in names}, list(items)).items():
        run.save(name, table)


def _report(folder: Path) -> Path:
    from latentkt.report import build
    from latentkt.results import load_run

    build(load_run(folder))
    return folder
