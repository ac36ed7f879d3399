"""What a preset is expected to show, each expectation held against the data of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latentkt.synthetic.make import COOCCURRING, INDEPENDENT
from latentkt.synthetic.summary import pick

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

    from latentkt.results import Run

__all__ = ["Check", "check_run", "expect", "patch_ratios"]


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation.

    Attributes:
        name: What is looked at, and where.
        value: The figure.
        interval: Its 95 % interval; NaN where it has none.
        at_least: Lower bound that is expected.
        at_most: Upper bound that is expected.
    """

    name: str
    value: float
    interval: tuple[float, float]
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def passed(self) -> bool:
        """Whether the figure lies within the bounds; a figure that does not exist does not."""
        return self.at_least <= self.value <= self.at_most

    @property
    def expected(self) -> str:
        """The bounds in words.

        Example:
            >>> Check("slope", 1.2, (1.1, 1.3), at_least=0.9, at_most=1.6).expected
            '0.9 to 1.6'
        """
        if math.isinf(self.at_most):
            return f"at least {self.at_least:.3g}"
        if math.isinf(self.at_least):
            return f"at most {self.at_most:.3g}"
        return f"{self.at_least:.3g} to {self.at_most:.3g}"

    def __str__(self) -> str:
        low, high = self.interval
        ends = "" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]"
        return (
            f"{'reached' if self.passed else 'MISSED '}  {self.name}: {self.value:.3f}{ends}, expected {self.expected}"
        )


def check_run(run: Run) -> list[Check]:
    """The expectations of the run's preset; none for presets that promise nothing.

    Figures are pooled over both relations and all seeds, and stand for pairs that were never shown together, unless the
    name says otherwise. Bounds are the presets' stated ones; they are not fitted to any seed.
    """
    name = str(run.identity["preset"])
    expectations: Mapping[str, Callable[[Run], list[Check]]] = {
        "small": _small, "uninformative": _uninformative, "long": _long,
    }  # fmt: skip
    # A sweep has a preset too, but worlds that the preset's promises are not about.
    return expectations[name](run) if name in expectations and run.has("fits") else []


def _figure(
    run: Run, statistic: str, *, cluster: str, pairing: str = "opposed", pairs: str = "unseen", seed: str = "pooled"
) -> Mapping[str, float]:
    fits: pd.DataFrame = run.tables["fits"]
    chosen = fits[
        (fits["seed"] == seed) & (fits["relation"] == "both") & (fits["cluster"] == cluster)
        & (fits["pairing"] == pairing) & (fits["pairs"] == pairs)
    ]  # fmt: skip
    return pick(chosen, statistic)


def expect(
    run: Run,
    name: str,
    statistic: str,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    *,
    cluster: str,
    pairing: str = "opposed",
    pairs: str = "unseen",
) -> Check:
    """Hold a pooled figure of a run against bounds.

    Args:
        run: A synthetic run.
        name: What the check is called.
        statistic: One of table `fits`.
        at_least: Lower bound.
        at_most: Upper bound.
        cluster: Name of a cluster, or "all".
        pairing: "same" or "opposed".
        pairs: "unseen" or "seen", and with `pairing="same"` also "all".
    """
    row = _figure(run, statistic, cluster=cluster, pairing=pairing, pairs=pairs)
    return Check(name, float(row["value"]), (float(row["low"]), float(row["high"])), at_least, at_most)


def _small(run: Run) -> list[Check]:
    error = "trap_error_given_both_probes"
    return [
        expect(run, "trap error, r > 6, both probes right, independent", error, 0.5, cluster=INDEPENDENT),
        expect(run, "trap error, r > 6, both probes right, co-occurring", error, at_most=0.1, cluster=COOCCURRING),
        *patch_ratios(run),
        expect(run, "same-polarity slope, held out", "slope", 0.9, 1.6, cluster="all", pairing="same"),
        expect(
            run,
            "same-polarity slope in probability space, held out",
            "slope_probability",
            0.9,
            1.15,
            cluster="all",
            pairing="same",
        ),
        *_loss_gaps(run),
    ]


def patch_ratios(run: Run) -> list[Check]:
    """How much farther the constraint word moves the log-odds where opposed keys co-occur: over 2 in every network."""
    checks = []
    for seed in run.identity["seeds"]["networks"]:
        patch = {
            name: float(_figure(run, "constraint_patch_nats", cluster=name, seed=str(seed))["value"])
            for name in (INDEPENDENT, COOCCURRING)
        }
        ratio = patch[COOCCURRING] / patch[INDEPENDENT]
        checks.append(
            Check(f"constraint patch, co-occurring over independent, seed {seed}", ratio, (math.nan, math.nan), 2.0)
        )
    return checks


def _loss_gaps(run: Run) -> list[Check]:
    """Answer loss over Bayes on fresh documents: never below 0 by more than sampling error."""
    losses: pd.DataFrame = run.tables["losses"]
    checks = []
    for seed, part in losses.groupby("seed", sort=True):
        gap = part["nll"] - part["bayes_nll"]
        error = gap.std() / math.sqrt(len(gap))
        interval = (gap.mean() - 1.96 * error, gap.mean() + 1.96 * error)
        checks.append(Check(f"answer loss over Bayes, nats, seed {seed}", gap.mean(), interval, -2 * error, 0.06))
    return checks


def _uninformative(run: Run) -> list[Check]:
    return [
        expect(run, "own-relation coefficient, opposed pairs", "own_relation", 0.9, 1.35, cluster=INDEPENDENT),
        expect(run, "other-relation coefficient, opposed pairs", "other_relation", at_most=0.25, cluster=INDEPENDENT),
        expect(run, "lambda, opposed pairs", "lambda", -0.5, 0.5, cluster=INDEPENDENT),
        expect(run, "trap error, r > 6", "trap_error", 0.9, cluster=INDEPENDENT),
    ]


def _long(run: Run) -> list[Check]:
    same = {"cluster": "all", "pairing": "same"}
    return [expect(run, "same-polarity slope, all pairs", "slope", 0.95, 1.15, pairs="all", **same)]
