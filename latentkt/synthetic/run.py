"""Train and measure a preset over seeds, into a run directory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.progress import progress
from latentkt.results import create_run, library_versions, load_run
from latentkt.synthetic.action_measure import action_answers, action_gap, action_probes
from latentkt.synthetic.actions import ActionConfig, ActionStream, make_action_world
from latentkt.synthetic.keeping import train_and_keep
from latentkt.synthetic.make import make_world
from latentkt.synthetic.measure import answer_gap, answers, probes
from latentkt.synthetic.streams import FactStream
from latentkt.synthetic.summary import fit_table, item_table, summarise
from latentkt.synthetic.training import check_device

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.progress import Bar
    from latentkt.results import Run
    from latentkt.synthetic.presets import Preset

__all__ = ["network_folder", "open_stream", "run_preset", "run_summary"]

TABLES = ("choices", "questions", "losses", "training", "networks")


def open_stream(preset: Preset, seed: int) -> FactStream | ActionStream:
    """The documents of a preset's world at a seed."""
    if isinstance(preset.world, ActionConfig):
        return ActionStream(make_action_world(preset.world, seed=seed), batch=preset.training.batch)
    return FactStream(make_world(preset.world, seed=seed), batch=preset.training.batch)


def network_folder(out: Path, seed: int) -> Path:
    """Where the network of a seed lies: an ordinary Hugging Face folder, with `world.json` and the checkpoint."""
    return out / "networks" / f"seed-{seed}"


def run_preset(
    preset: Preset,
    *,
    seeds: Sequence[int],
    out: Path,
    resume: bool = False,
    command: Sequence[str] | None = None,
    show: bool | None = None,
) -> Run:
    """Train one network a seed, measure it, fit, and write tables, `summary.json` and the networks.

    Args:
        preset: World and training.
        seeds: One world and one network each.
        out: Run directory; refused if it exists, unless `resume`.
        resume: Go on with it: finished seeds are kept, a training goes on at its last checkpoint.
        command: The command line, for the record.
        show: Whether to draw a progress bar; by default, on a terminal.

    Returns:
        The run. Tables: `choices` (every pair in both orders), `questions`, `losses` (fresh documents beside the exact
        predictor), `training` (by epoch), `networks` (size and hashes), `pairs` (both orders averaged), `fits` (every
        figure with its interval). `summary.json` holds the figures of `summary`; times are in it and in no table.

    Raises:
        InputError: If no seed, or one twice, is given, or the world cannot be.
        RunError: If the device does not exist, the folder is taken, or training stops.
    """
    if not seeds or len(set(seeds)) != len(seeds):
        raise InputError("seeds", expected="one or more, each once", found=list(seeds))
    check_device(preset.training.device)
    streams = [open_stream(preset, seed) for seed in seeds]  # refuses impossible worlds before anything is written
    metadata = {"kind": "synthetic", "preset": preset.name, "options": _plain(preset),
                "seeds": {"networks": list(seeds)}, "model": _model(preset),
                "versions": library_versions()}  # fmt: skip
    with create_run(out, metadata=metadata, resume=resume, command=command) as run, progress(show=show) as bar:
        for batch in run.batches(TABLES, len(seeds)):
            seed, stream = seeds[batch], streams[batch]
            for name, table in _one_seed(preset, stream, seed, network_folder(out, seed), bar).items():
                run.write(name, batch, table)
        if not run.done("fits", 0):
            items = item_table(run.read("choices"))
            run.save("pairs", items)
            run.save("fits", fit_table(items))
        found = summarise(run.read("fits"), _networks(run.read("questions"), run.read("losses"), out, seeds))
        run.write_file("summary.json", json.dumps(found, indent=1) + "\n")
        run.finish()
    return load_run(out)


def run_summary(run: Run) -> dict[str, Any]:
    """The `summary.json` of a run."""
    return json.loads((run.path / "summary.json").read_text(encoding="utf-8"))


def _model(preset: Preset) -> dict[str, Any]:
    size = preset.training.network
    name = f"GPT-2 architecture, {size.layers} layers, width {size.width}, trained from scratch"
    return {"model": name, "dtype": "float32", "device": preset.training.device}


def _plain(preset: Preset) -> Any:
    """A preset as JSON values."""
    return json.loads(json.dumps({"world": asdict(preset.world), "training": asdict(preset.training)}))


def _one_seed(
    preset: Preset, stream: FactStream | ActionStream, seed: int, folder: Path, bar: Bar
) -> dict[str, pd.DataFrame]:
    network, kept = train_and_keep(stream, preset.training, seed=seed, folder=folder, bar=bar)
    if isinstance(stream, ActionStream):
        known = action_probes(network, stream)
        found = {"choices": action_answers(network, stream, known=known), "losses": action_gap(network, stream)}
    else:
        known = probes(network, stream)
        found = {"choices": answers(network, stream, known=own_facts(known)), "losses": answer_gap(network, stream)}
    tables = {**found, **kept, "questions": known}
    for table in tables.values():
        table.insert(0, "seed", seed)
    return tables


def own_facts(known: pd.DataFrame) -> pd.DataFrame:
    """The questions that count as knowing a fact: about the entity's own attribute, in a trained template."""
    templates = known.loc[known["trained"], "template"].unique()
    return known[known["own"] & (known["template"] == templates[0])]


def _networks(known: pd.DataFrame, losses: pd.DataFrame, out: Path, seeds: Sequence[int]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for seed in seeds:
        own, loss = own_facts(known[known["seed"] == seed]), losses[losses["seed"] == seed]
        times: Mapping[str, float] = json.loads((network_folder(out, seed) / "times.json").read_text(encoding="utf-8"))
        rows.append(
            {
                "seed": seed,
                "probe_accuracy": own["is_right"].mean(),
                "answer_nll": loss["nll"].mean(),
                "bayes_nll": loss["bayes_nll"].mean(),
                "tokens_per_second": times["tokens_per_second"],
                "wall_s": times["wall_s"],
            }
        )
    return pd.DataFrame(rows)
