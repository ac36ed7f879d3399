"""How models abstain: the five kinds, and whether they are the same on made, rare and common concepts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from latentkt.phantom.analysis.frame import percent
from latentkt.phantom.answers import ABSTENTIONS

__all__ = ["distances", "kinds"]


def kinds(frame: pd.DataFrame) -> pd.DataFrame:
    """Share of each kind among the abstentions of a setting, by existence of the concept.

    Returns:
        One row a setting, existence and kind: `count`, `n` (abstentions whose kind was read), `share_pct` with its
        interval, `unread` (abstentions whose kind the judge did not give or could not be read).
    """
    rows = []
    abstained = frame[frame["judgement"] == "abstained"]
    for (setting, existence), mine in abstained.groupby(["setting", "existence"], sort=False):
        read = mine[mine["kind"].isin(ABSTENTIONS)]
        for kind in ABSTENTIONS:
            is_it = (read["kind"] == kind).to_numpy(float)
            about = {"setting": setting, "existence": existence, "kind": kind, "count": int(is_it.sum())}
            found = percent(is_it, read["group"].tolist(), "share")
            rows.append({**about, "n": len(read), "unread": len(mine) - len(read), **found})
    columns = ["setting", "existence", "kind", "count", "n", "unread", "share_pct", "share_pct_low", "share_pct_high"]
    return pd.DataFrame(rows, columns=columns)


def distances(frame: pd.DataFrame, *, seed: int = 0, n_permutations: int = 1999) -> pd.DataFrame:
    """How far the kinds of abstention on non-existent concepts lie from those on rare and on common ones.

    Args:
        frame: See `judged_frame`.
        seed: Of the permutations.
        n_permutations: Times that whole groups of concepts change sides at random.

    Returns:
        One row a setting and pair: `with`, total variation `distance` (0: the same mixture, 1: nothing in common), `p`
        of the permutation test that both are the same, `n_phantom`, `n_other`. NaN where one side has no abstention.
    """
    rng = np.random.default_rng(seed)
    abstained = frame[(frame["judgement"] == "abstained") & frame["kind"].isin(ABSTENTIONS)]
    rows = []
    for setting in dict.fromkeys(frame["setting"]):
        for other in ("rare", "common", "unattested"):
            mine = abstained[(abstained["setting"] == setting) & abstained["existence"].isin(["phantom", other])]
            if not (frame.loc[frame["setting"] == setting, "existence"] == other).any():
                continue
            first = (mine["existence"] == "phantom").to_numpy()
            distance, p = np.nan, np.nan
            if first.any() and not first.all():
                distance, p = _test(mine, first, rng, n_permutations)
            sides = {"n_phantom": int(first.sum()), "n_other": int((~first).sum())}
            rows.append({"setting": setting, "with": other, "distance": distance, "p": p, **sides})
    return pd.DataFrame(rows, columns=["setting", "with", "distance", "p", "n_phantom", "n_other"])


def _test(mine: pd.DataFrame, first: np.ndarray, rng: np.random.Generator, times: int) -> tuple[float, float]:
    """The distance, and how often groups dealt to the two sides at random lie as far apart."""
    codes = pd.Categorical(mine["kind"], categories=list(ABSTENTIONS)).codes
    groups, sides = pd.factorize(mine["group"])[0], first
    counts = np.zeros((groups.max() + 1, len(ABSTENTIONS)))
    np.add.at(counts, (groups, codes), 1)
    side = np.zeros(len(counts), dtype=bool)
    np.logical_or.at(side, groups, sides)  # a group with both sides goes with the made ones
    observed = _distance(counts[side].sum(0), counts[~side].sum(0)) if not side.all() else np.nan
    exact = _distance(np.bincount(codes[first], minlength=5), np.bincount(codes[~first], minlength=5))
    if np.isnan(observed):
        return exact, np.nan
    beyond = 0
    for _ in range(times):
        drawn = rng.permutation(side)
        beyond += _distance(counts[drawn].sum(0), counts[~drawn].sum(0)) >= observed - 1e-12
    return exact, (beyond + 1) / (times + 1)


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.abs(first / first.sum() - second / second.sum()).sum() / 2)
