"""An experiment: a stated prediction, a world in which it should hold, and one in which it is false by construction."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import DataError
from latentkt.synthetic.presets import preset
from latentkt.synthetic.run import run_preset

if TYPE_CHECKING:
    from latentkt.results import Run
    from latentkt.synthetic.checks import Check

    Judge = Callable[[Run], Sequence[Check]]

__all__ = ["Outcome", "experiment_main", "load_config", "run_experiment", "verdict_of"]

CONFIRMED, REFUTED = "confirmed", "refuted"
FIELDS = {"preset", "seeds", "settings", "false_settings", "false_seeds"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment found in one world.

    Attributes:
        world: "stated" or "false by construction".
        verdict: "confirmed" if every expectation was met, else "refuted".
        checks: The expectations, in words, with figures.
    """

    world: str
    verdict: str
    checks: tuple[str, ...]


def verdict_of(checks: Sequence[Check]) -> str:
    """Confirmed only if every expectation was met (and there was one).

    Example:
        >>> verdict_of([])
        'refuted'
    """
    return CONFIRMED if checks and all(check.passed for check in checks) else REFUTED


def load_config(path: Path) -> dict[str, Any]:
    """Read the configuration of an experiment.

    Raises:
        DataError: If a field is missing or unknown.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if set(content) != FIELDS:
        raise DataError(f"{path} is no configuration", expected=sorted(FIELDS), found=sorted(content))
    return dict(content)


def experiment_main(judge: Judge, *, prediction: str, config: Path, argv: Sequence[str] | None = None) -> int:
    """The command line of an experiment: run both worlds, print the verdicts.

    Returns:
        0, or 1 if the world that is false by construction was not refuted: then the test tells nothing.
    """
    parser = argparse.ArgumentParser(description=prediction)
    parser.add_argument("--config", type=Path, default=config)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args(argv)
    outcomes = run_experiment(load_config(args.config), judge, prediction=prediction, out=args.out, resume=args.resume)
    for outcome in outcomes:
        print(f"{outcome.verdict} in the world {outcome.world}", *outcome.checks, sep="\n  ")  # noqa: T201
    return 0 if outcomes[1].verdict == REFUTED else 1


def run_experiment(
    config: Mapping[str, Any], judge: Judge, *, prediction: str, out: Path, resume: bool = False
) -> list[Outcome]:
    """Run both worlds, judge each, write `verdict.json`.

    Args:
        config: From `load_config`: preset, seeds and settings; and what is changed for the world in which the
            prediction is false.
        judge: The expectations, from a run's tables.
        prediction: In words.
        out: Folder; the two runs lie in it.
        resume: Go on with them.
    """
    worlds = (
        ("stated", config["settings"], config["seeds"]),
        ("false by construction", {**config["settings"], **config["false_settings"]}, config["false_seeds"]),
    )
    outcomes = []
    for name, settings, seeds in worlds:
        folder = out / name.split()[0]
        run = run_preset(preset(config["preset"], settings), seeds=seeds, out=folder, resume=resume)
        checks = judge(run)
        outcomes.append(Outcome(name, verdict_of(checks), tuple(map(str, checks))))
    content = {"prediction": prediction, "config": dict(config), "outcomes": [asdict(outcome) for outcome in outcomes]}
    (out / "verdict.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return outcomes
