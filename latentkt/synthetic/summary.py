"""From the answers of trained networks to fits and summary: every figure with its interval, by seed and pooled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError
from latentkt.synthetic.fits import Estimate, KeyBootstrap, least_squares, logistic_slope, share, weighted_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BANDS", "TRAP_RATIO", "fit_table", "item_table", "summarise"]

# A trap: the shortcut is more than six times as frequent as the correct key.
TRAP_RATIO = 6.0
# Bands of log r, in nats.
BANDS = (-9.0, -2.5, -0.7, 0.7, 2.5, 9.0)
TV = ("tv_ideal", "tv_bayes", "tv_bayes_ideal", "tv_floor")


def item_table(answers: pd.DataFrame) -> pd.DataFrame:
    """Both orders of each item as one row.

    Log-odds and probabilities are averaged; `error` is the share of orders in which the shortcut is preferred,
    `order_bias` the log-odds of the first option over the second, and `constraint_patch` what the constraint word moves
    log P(y*)/P(y_s) by when it is exchanged (exactly what patching its embedding from the control does), in nats.
    """
    means = ["p_shortcut", "p_correct", "off_options", "dominance", "dominance_control", *TV]
    keys = ["seed", "item"]
    grouped = answers.assign(error=(answers["dominance"] > 0).astype(float)).groupby(keys, sort=False)
    first = grouped.first().drop(columns=[*means, "error", "order"])
    table = first.join(grouped[[*means, "error"]].mean()).reset_index()
    wide = answers.pivot(index=keys, columns="order", values="dominance").reindex(
        list(zip(table["seed"], table["item"], strict=True))
    )
    table["order_bias"] = ((wide["shortcut_first"] - wide["correct_first"]) / 2).to_numpy()
    table["constraint_patch"] = table["dominance_control"] - table["dominance"]
    return table


def fit_table(items: pd.DataFrame) -> pd.DataFrame:
    """Every fit and average, over all networks and by network, over both relations and by relation.

    Args:
        items: From `item_table`.

    Returns:
        One row a figure: seed ("pooled" or the number), relation ("both" or its name), cluster, pairing, pairs
        ("unseen": never the options of one document; "seen"; for equal polarity, where the exact predictor follows one
        law on either, also "all"), statistic, value, low, high, n.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for seed, by_seed in _with_all(items, "seed", "pooled"):
        for relation, by_relation in _with_all(by_seed, "relation", "both"):
            for cluster, by_cluster in _with_all(by_relation, "cluster", "all"):
                for pairing, pairs, part in _by_pairs(by_cluster):
                    place = {"seed": seed, "relation": relation, "cluster": cluster, "pairing": pairing, "pairs": pairs}
                    rows += [{**place, "statistic": name, **_row(found)} for name, found in _statistics(part).items()]
    return pd.DataFrame(rows)


def _with_all(table: pd.DataFrame, column: str, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
    yield name, table
    for value, part in table.groupby(column, sort=True):
        yield str(value), part


def _by_pairs(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    for pairing, by_pairing in table.groupby("pairing", sort=True):
        for unseen, part in by_pairing.groupby("unseen", sort=True):
            yield str(pairing), "unseen" if unseen else "seen", part
        if pairing == "same":
            yield str(pairing), "all", by_pairing


def _row(found: Estimate) -> dict[str, float | int]:
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def _boot(part: pd.DataFrame) -> KeyBootstrap:
    return KeyBootstrap(part["shortcut"].to_numpy(), part["correct"].to_numpy(), group=part["seed"].to_numpy())


def _statistics(part: pd.DataFrame) -> dict[str, Estimate]:
    boot = _boot(part)
    y, own = part["dominance"].to_numpy(), part["log_prior_ratio"].to_numpy()
    found = _law(y, own, boot)
    both = {"own_relation": own, "other_relation": part["log_other_ratio"].to_numpy()}
    if not np.isnan(both["other_relation"]).any():
        regression = _fit(y, both, boot)
        found |= {name: regression[name] for name in both}
    for name in ("order_bias", "off_options"):
        found[name] = weighted_mean(part[name].to_numpy(), boot)
    if part["pairing"].iloc[0] == "opposed":
        found |= _trap_statistics(part, boot)
    return found


def _law(y: np.ndarray, own: np.ndarray, boot: KeyBootstrap) -> dict[str, Estimate]:
    """Dominance = s log r - λ."""
    fit = _fit(y, {"slope": own}, boot)
    intercept = fit["intercept"]
    fit["lambda"] = Estimate(-intercept.value, -intercept.high, -intercept.low, intercept.n)
    del fit["intercept"]
    return {**fit, **logistic_slope(y, own, boot)}


def _fit(y: np.ndarray, regressors: dict[str, np.ndarray], boot: KeyBootstrap) -> dict[str, Estimate]:
    """Least squares; all NaN for a group too small or too uniform to have one (a tiny world may have such groups)."""
    try:
        return least_squares(y, regressors, boot)
    except InputError:
        nothing = Estimate(math.nan, math.nan, math.nan, len(y))
        return dict.fromkeys(("intercept", *regressors, "r2", "residual_sd"), nothing)


def _trap_statistics(part: pd.DataFrame, boot: KeyBootstrap) -> dict[str, Estimate]:
    ratio = part["log_prior_ratio"].to_numpy()
    known = (part["knows_shortcut"] & part["knows_correct"]).to_numpy()
    trap = ratio > math.log(TRAP_RATIO)
    places = {"trap_error": trap, "trap_error_given_both_probes": trap & known, "consistent_error": ratio < 0}
    for low, high in itertools.pairwise(BANDS):
        here = (ratio > low) & (ratio <= high)
        places |= {f"error_band_{low:g}_{high:g}": here, f"error_band_{low:g}_{high:g}_given_both_probes": here & known}
    found = {name: share(*_select(part, "error", here, boot)) for name, here in places.items()}
    found["constraint_patch_nats"] = weighted_mean(*_select(part, "constraint_patch", trap, boot))
    for name in TV:
        found[f"{name}_above_1"] = weighted_mean(*_select(part, name, ratio > 0, boot))
    return found


def _select(part: pd.DataFrame, column: str, here: np.ndarray, boot: KeyBootstrap) -> tuple[np.ndarray, KeyBootstrap]:
    """A column where it exists, and the replicates that belong to it."""
    values = part[column].to_numpy(dtype=float)
    here = here & ~np.isnan(values)
    return values[here], boot.select(here)


def summarise(fits: pd.DataFrame, networks: pd.DataFrame) -> dict[str, Any]:
    """The summary: by seed and pooled over seeds, both relations together, traps at r > 6, pairs never seen together.

    Args:
        fits: From `fit_table`.
        networks: One row a seed: seed, probe_accuracy, answer_nll, bayes_nll, tokens_per_second, wall_s.
    """
    seeds = {str(row["seed"]): _summary(fits, str(row["seed"]), row) for row in networks.to_dict("records")}
    pooled = networks.drop(columns="seed").mean().to_dict()
    return {"seeds": seeds, "pooled": _summary(fits, "pooled", pooled)}


def _summary(fits: pd.DataFrame, seed: str, network: Mapping[Any, Any]) -> dict[str, Any]:
    chosen = fits[(fits["seed"] == seed) & (fits["relation"] == "both") & (fits["pairs"] == "unseen")]
    opposed = chosen[chosen["pairing"] == "opposed"]
    same = chosen[chosen["pairing"] == "same"]
    clusters = [str(name) for name in sorted(opposed["cluster"].unique(), reverse=True) if name != "all"]

    def by_cluster(statistic: str) -> dict[str, float | None]:
        return {name: _value(pick(opposed[opposed["cluster"] == name], statistic)) for name in clusters}

    return {
        "trap_error": {
            name: {
                label: _interval(pick(opposed[opposed["cluster"] == name], statistic))
                for label, statistic in (("all", "trap_error"), ("given_both_probes", "trap_error_given_both_probes"))
            }
            for name in clusters
        },
        "slope": by_cluster("slope"),
        "lambda": by_cluster("lambda"),
        "r2": by_cluster("r2"),
        "same_polarity": {
            "slope_heldout": _value(pick(same[same["cluster"] == "all"], "slope")),
            "r2_heldout": _value(pick(same[same["cluster"] == "all"], "r2")),
        },
        "constraint_patch_nats": by_cluster("constraint_patch_nats"),
        **{name: _plain(network[name]) for name in NETWORK_FIGURES},
    }


NETWORK_FIGURES = ("probe_accuracy", "answer_nll", "bayes_nll", "tokens_per_second", "wall_s")


def pick(fits: pd.DataFrame, statistic: str) -> Mapping[str, Any]:
    """The one row of a statistic; NaN in a row of its own where the selection has none.

    Raises:
        InputError: If more than one row fits.
    """
    found = fits[fits["statistic"] == statistic]
    if len(found) > 1:
        raise InputError(f"{statistic} is not one figure", expected="one row", found=f"{len(found)} rows")
    if not len(found):
        return {"value": math.nan, "low": math.nan, "high": math.nan, "n": 0}
    return {str(name): value for name, value in found.iloc[0].items()}


def _plain(value: Any) -> float | None:
    """JSON has no NaN: what does not exist is null."""
    return float(value) if math.isfinite(value) else None


def _value(row: Mapping[str, Any]) -> float | None:
    return _plain(row["value"])


def _interval(row: Mapping[str, Any]) -> dict[str, float | int | None]:
    return {**{name: _plain(row[name]) for name in ("value", "low", "high")}, "n": int(row["n"])}
