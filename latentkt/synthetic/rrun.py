"""Run the R-test: check the design, train on both corpora over seeds, ask, fit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.progress import progress
from latentkt.results import create_run, library_versions, load_run
from latentkt.synthetic.keeping import train_and_keep
from latentkt.synthetic.rstream import PathStream
from latentkt.synthetic.rtest import check_design, check_exact, fit_r, path_answers, path_items
from latentkt.synthetic.rworld import CORPORA, make_path_world
from latentkt.synthetic.training import TrainingConfig

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.progress import Bar
    from latentkt.results import Run

__all__ = ["RTestConfig", "run_r_test"]


@dataclass(frozen=True)
class RTestConfig:
    """Size of the R-test.

    Attributes:
        keys: K.
        tasks: T, at least 3.
        ambiguous_share: Share of ambiguous documents.
        key_ratio: Commonest key over the rarest.
        task_spread: Spread of log π(·|k) before rows are refused, nats.
        held_shifts: Distances of keys held out for each pair of tasks.
        steps: Steps between checkpoints.
        training: `epochs` of `steps` steps with `batch` documents each.
    """

    keys: int = 24
    tasks: int = 4
    ambiguous_share: float = 0.5
    key_ratio: float = 20.0
    task_spread: float = 1.5
    held_shifts: int = 2
    steps: int = 300
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=20, batch=128))

    def with_settings(self, settings: Mapping[str, Any]) -> RTestConfig:
        """Some of the numbers changed; a name that is no field of this is one of the training.

        Raises:
            InputError: If a name is unknown.

        Example:
            >>> RTestConfig().with_settings({"epochs": 2, "keys": 12}).training.epochs
            2
        """
        own = {f.name for f in fields(self)} - {"training"}
        training = {f.name for f in fields(self.training)}
        unknown = set(settings) - own - training
        if unknown:
            raise InputError("no such setting", expected=", ".join(sorted(own | training)), found=sorted(unknown))
        inner = replace(self.training, **{name: value for name, value in settings.items() if name in training - own})
        return replace(self, **{name: value for name, value in settings.items() if name in own}, training=inner)

    def stream(self, corpus: str, seed: int) -> PathStream:
        """The documents of a corpus at a seed."""
        world = make_path_world(
            corpus, seed=seed, keys=self.keys, tasks=self.tasks, ambiguous_share=self.ambiguous_share,
            key_ratio=self.key_ratio, task_spread=self.task_spread, held_shifts=self.held_shifts,
        )  # fmt: skip
        return PathStream(world, batch=self.training.batch, steps=self.steps)


def run_r_test(
    *,
    seeds: Sequence[int],
    out: Path,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    command: Sequence[str] | None = None,
    show: bool | None = None,
) -> Run:
    """Train a network on each corpus for every seed and fit the coefficients of log ρ_k, log ρ_t and log R.

    World and network of a seed change together; the two corpora of a seed share prior, prompts and answers.

    Args:
        seeds: Of worlds and networks.
        out: Run directory.
        settings: Changes to `RTestConfig`.
        resume: Go on with it.
        command: The command line, for the record.
        show: Whether to draw a progress bar.

    Returns:
        The run. Tables: `r_design` (correlations and condition number), `r_exact` (the exact predictor's
        coefficients), `r_answers`, `training`, `networks`, `r_fits`.

    Raises:
        InputError: If the regressors cannot be told apart, or the exact predictor misses a corpus' own prediction:
            before anything is trained.
    """
    import pandas as pd

    config = RTestConfig().with_settings(settings or {})
    cells = [(corpus, seed) for seed in seeds for corpus in CORPORA]
    streams = [config.stream(corpus, seed) for corpus, seed in cells]
    designs, exacts = [], []
    for (corpus, seed), stream in zip(cells, streams, strict=True):
        items = path_items(stream.world)
        designs.append({"corpus": corpus, "seed": seed, **check_design(items)})
        exacts.append(check_exact(stream.world, items).assign(corpus=corpus, seed=seed))
    metadata = {
        "kind": "r-test", "preset": "r-test", "seeds": {"networks": list(seeds)},
        "options": json.loads(json.dumps(asdict(config))), "versions": library_versions(),
    }  # fmt: skip
    with create_run(out, metadata=metadata, resume=resume, command=command) as run, progress(show=show) as bar:
        run.save("r_design", pd.DataFrame(designs))
        run.save("r_exact", pd.concat(exacts, ignore_index=True))
        for batch in run.batches(("r_answers", "training", "networks"), len(cells)):
            corpus, seed = cells[batch]
            folder = out / "networks" / f"{corpus}-{seed}"
            for name, table in _one(config, streams[batch], corpus, seed, folder, bar).items():
                run.write(name, batch, table)
        run.save("r_fits", fit_r(run.read("r_answers")))
        run.finish()
    return load_run(out)


def _one(
    config: RTestConfig, stream: PathStream, corpus: str, seed: int, folder: Path, bar: Bar
) -> dict[str, pd.DataFrame]:
    network, kept = train_and_keep(stream, config.training, seed=seed, folder=folder, bar=bar)
    tables = {"r_answers": path_answers(network, stream, path_items(stream.world)), **kept}
    return {name: table.assign(corpus=corpus, seed=seed) for name, table in tables.items()}
