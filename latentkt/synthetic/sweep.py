"""One preset over values of one setting: co-occurrence ρ, noise δ, depth, or any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.results import create_run, library_versions, load_run
from latentkt.synthetic.presets import preset
from latentkt.synthetic.run import run_preset

if TYPE_CHECKING:
    from latentkt.results import Run

__all__ = ["run_sweep"]


def run_sweep(
    name: str,
    *,
    over: str,
    values: Sequence[Any],
    seeds: Sequence[int],
    out: Path,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    command: Sequence[str] | None = None,
) -> Run:
    """Run a preset for every value of a setting, each into `out/runs/OVER-VALUE`.

    Args:
        name: The preset.
        over: "rho", "noise", "depth", "epochs" or a dotted name (see `preset`).
        values: Its values.
        seeds: The same worlds' seeds at every value.
        out: Run directory.
        settings: Other settings, the same at every value.
        resume: Go on with it.
        command: The command line, for the record.

    Returns:
        The run; table `sweep` holds the fits of all values, with columns `setting` and `level`.

    Raises:
        InputError: If a value is given twice, none is given, or the setting is unknown.
    """
    if not values or len(set(map(str, values))) != len(values):
        raise InputError("values of a sweep", expected="one or more, each once", found=list(values))
    presets = [preset(name, {**(settings or {}), over: value}) for value in values]
    metadata = {
        "kind": "synthetic-sweep", "preset": name, "seeds": {"networks": list(seeds)},
        "options": {"over": over, "values": list(values), "settings": dict(settings or {})},
        "versions": library_versions(),
    }  # fmt: skip
    with create_run(out, metadata=metadata, resume=resume, command=command) as run:
        for batch in run.batches("sweep", len(values)):
            folder = out / "runs" / f"{over}-{values[batch]}"
            one = run_preset(presets[batch], seeds=seeds, out=folder, resume=resume or folder.exists())
            run.write("sweep", batch, one.tables["fits"].assign(setting=over, level=float(values[batch])))
        run.finish()
    return load_run(out)
