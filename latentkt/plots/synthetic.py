"""Figures of synthetic runs: the law, the traps, training against the floor, sweeps, the R-test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.plots.style import Look, look, panels, styled, to_svg

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from latentkt.results import Run

__all__ = [
    "dominance_law",
    "figures_of",
    "r_coefficients",
    "save_figures",
    "sweep_lines",
    "training_curve",
    "trap_errors",
]

LOOKS = {"independent": look("shortcut"), "cooccurring": look("constraint")}
LOG_RATIO = "log prior ratio, shortcut over correct (nats)"


def _look(cluster: str, position: int) -> Look:
    return LOOKS.get(cluster, look(cluster, position))


@styled
def dominance_law(pairs: pd.DataFrame, fits: pd.DataFrame, *, caption: str = "") -> Figure:
    """Dominance against the log prior ratio, pairs never shown together: one panel for each pairing and cluster.

    Args:
        pairs: Table `pairs` of a synthetic run.
        fits: Table `fits` of the same run.
        caption: What the tables cannot tell.

    Returns:
        The figure; the dashed line is the law with slope 1 and no evidence, the full one the fit.
    """
    unseen = pairs[pairs["unseen"]]
    kinds = [("same", "all")] + [("opposed", str(name)) for name in sorted(unseen["cluster"].unique(), reverse=True)]
    kinds = [(pairing, name) for pairing, name in kinds if len(_chosen(unseen, pairing, name))]
    figure, all_axes = panels(
        len(kinds),
        height=2.0,
        title="How far does frequency decide?",
        caption=f"{caption} One dot a pair never shown together, both orders averaged. Dashed: dominance = log r."
        " Full: least squares, s log r − λ.",
        sharey=True,
    )
    for position, (axes, (pairing, cluster)) in enumerate(zip(all_axes, kinds, strict=True)):
        part = _chosen(unseen, pairing, cluster)
        color = _look(cluster, position).color
        x = part["log_prior_ratio"].to_numpy()
        axes.plot(x, part["dominance"], ".", color=color, alpha=0.25, markersize=2.5, rasterized=True)
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, ends, "--", color="#222222", linewidth=1)
        slope, lambda_ = (_value(fits, pairing, cluster, name) for name in ("slope", "lambda"))
        axes.plot(ends, slope * ends - lambda_, "-", color="#222222")
        title = "same polarity: nothing but frequency" if pairing == "same" else f"opposed, {cluster}"
        axes.set_title(f"{title}: s = {slope:.2f}, λ = {lambda_:.2f}")
        axes.set_ylabel("dominance (nats)")
    all_axes[-1].set_xlabel(LOG_RATIO)
    return figure


def _chosen(pairs: pd.DataFrame, pairing: str, cluster: str) -> pd.DataFrame:
    part = pairs[pairs["pairing"] == pairing]
    return part if cluster == "all" else part[part["cluster"] == cluster]


def _value(fits: pd.DataFrame, pairing: str, cluster: str, statistic: str) -> float:
    chosen = fits[
        (fits["seed"] == "pooled") & (fits["relation"] == "both") & (fits["pairs"] == "unseen")
        & (fits["pairing"] == pairing) & (fits["cluster"] == cluster) & (fits["statistic"] == statistic)
    ]  # fmt: skip
    return float(chosen["value"].iloc[0])


@styled
def trap_errors(fits: pd.DataFrame, *, caption: str = "") -> Figure:
    """Share of opposed pairs answered with the shortcut, by band of the log prior ratio and cluster.

    Args:
        fits: Table `fits` of a synthetic run.
        caption: What the table cannot tell.
    """
    named = fits["statistic"].str.extract(r"^error_band_(?P<from>-?[\d.]+)_(?P<to>-?[\d.]+)(?P<known>_given)?")
    chosen = fits.join(named)[
        named["from"].notna() & (fits["seed"] == "pooled") & (fits["relation"] == "both") & (fits["pairs"] == "unseen")
        & (fits["cluster"] != "all")
    ]  # fmt: skip
    figure, (above, below) = panels(
        2,
        height=2.0,
        title="Knowledge is there; is it used?",
        caption=f"{caption} Share of opposed pairs, never shown together, with the shortcut preferred. Bars: 95 %"
        " intervals from resampling keys, never narrower than Wilson's.",
    )
    for axes, known, title in ((above, False, "all pairs"), (below, True, "both facts answered rightly when asked")):
        part = chosen[chosen["known"].notna() == known]
        for position, (cluster, rows) in enumerate(part.groupby("cluster", sort=False)):
            middle = (rows["from"].astype(float).clip(-4) + rows["to"].astype(float).clip(upper=4)) / 2
            _bars(axes, middle + 0.08 * position, rows, _look(str(cluster), position), str(cluster))
        axes.set_title(title)
        axes.set_ylim(-0.03, 1.03)
        axes.set_ylabel("error")
    below.set_xlabel(LOG_RATIO)
    above.legend(loc="upper left")
    return figure


def _bars(axes: Axes, x: pd.Series[float], rows: pd.DataFrame, style: Look, label: str) -> None:
    error = np.abs(rows[["low", "high"]].to_numpy(dtype=float).T - rows["value"].to_numpy())
    axes.errorbar(
        x,
        rows["value"],
        _error_bars(error),
        color=style.color,
        marker=style.marker,
        linestyle=style.dash,
        label=label,
    )


def _error_bars(error: np.ndarray) -> np.ndarray:
    """Lengths of error bars; where there is no interval, none is drawn."""
    return np.where(np.isfinite(error), error, 0.0)


@styled
def training_curve(training: pd.DataFrame, *, caption: str = "") -> Figure:
    """Loss on answers by epoch beside the exact predictor's, one line a network.

    Args:
        training: Table `training` of a synthetic run.
        caption: What the table cannot tell.
    """
    figure, (axes,) = panels(
        1,
        height=2.4,
        title="How near to the exact predictor?",
        caption=f"{caption} Loss on the answers of each epoch (redrawn). Dashed: the exact predictor on the same"
        " documents.",
    )
    groups = [name for name in ("corpus", "seed") if name in training.columns]
    for position, (_, rows) in enumerate(training.groupby(groups, sort=True)):
        style = look("network", position)
        axes.plot(rows["epoch"] + 1, rows["answer_nll"], color=style.color)
        axes.plot(rows["epoch"] + 1, rows["bayes_nll"], "--", color=style.color, linewidth=1)
    axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_ylabel("answer loss (nats)")
    return figure


@styled
def r_coefficients(fits: pd.DataFrame, *, caption: str = "") -> Figure:
    """Coefficients of log ρ_k, log ρ_t and log R by corpus, path binding, beside what each corpus predicts.

    Args:
        fits: Table `r_fits` of an R-test.
        caption: What the table cannot tell.
    """
    predicted = {"pair-neutral": (1, 1, 1), "path-neutral": (1, 1, 0)}
    figure, (axes,) = panels(
        1,
        height=2.6,
        title="Does the network carry log R?",
        caption=f"{caption} Path binding, all pairs of paths. Large: mean of seeds with 95 % interval over keys;"
        " small: seeds. Bars: the corpus' own prediction.",
    )
    names = ["log_rho_key", "log_rho_task", "log_r"]
    chosen = fits[(fits["binding"] == "path") & (fits["pairs"] == "all") & fits["statistic"].isin(names)]
    for position, (corpus, rows) in enumerate(chosen.groupby("corpus", sort=True)):
        style = look("shortcut" if position == 0 else "constraint")
        for place, name in enumerate(names):
            here = rows[rows["statistic"] == name]
            x = place + 0.2 * (position - 0.5)
            axes.hlines(predicted[str(corpus)][place], x - 0.09, x + 0.09, color="#222222", linewidth=2.5)
            seeds, mean = here[here["seed"] != "mean"], here[here["seed"] == "mean"].iloc[0]
            axes.plot(np.full(len(seeds), x + 0.05), seeds["value"], ".", color=style.color, alpha=0.6)
            error = _error_bars(np.abs(np.array([[mean["low"]], [mean["high"]]]) - mean["value"]))
            label = str(corpus) if place == 0 else None
            axes.errorbar(
                [x], [mean["value"]], error, color=style.color, marker=style.marker, markersize=7, label=label
            )
    axes.set_xticks(range(3), ["log ρ$_k$", "log ρ$_t$", "log R"])
    axes.set_ylabel("coefficient")
    axes.legend(loc="lower left")
    return figure


@styled
def sweep_lines(sweep: pd.DataFrame, *, caption: str = "") -> Figure:
    """Trap error and λ over the levels of a sweep, by cluster.

    Args:
        sweep: Table `sweep` of a sweep.
        caption: What the table cannot tell.
    """
    setting = str(sweep["setting"].iloc[0])
    chosen = sweep[
        (sweep["seed"] == "pooled") & (sweep["relation"] == "both") & (sweep["pairs"] == "unseen")
        & (sweep["pairing"] == "opposed") & (sweep["cluster"] != "all")
    ]  # fmt: skip
    figure, all_axes = panels(
        2,
        height=2.0,
        title=f"What does {setting} change?",
        caption=f"{caption} Opposed pairs that were never shown together. Bars: 95 % intervals from resampling keys.",
    )
    for axes, statistic, label in zip(
        all_axes, ("trap_error", "lambda"), ("trap error, r > 6", "λ (nats)"), strict=True
    ):
        part = chosen[chosen["statistic"] == statistic]
        for position, (cluster, rows) in enumerate(part.groupby("cluster", sort=False)):
            ordered = rows.sort_values("level")
            _bars(axes, ordered["level"], ordered, _look(str(cluster), position), str(cluster))
        axes.set_ylabel(label)
    all_axes[-1].set_xlabel(setting)
    all_axes[0].legend(loc="best")
    return figure


def figures_of(run: Run, *, caption: str = "") -> dict[str, Figure]:
    """Every figure that the tables of a run allow, by name."""
    tables = run.tables
    makers: dict[str, tuple[tuple[str, ...], Callable[..., Figure]]] = {
        "dominance_law": (("pairs", "fits"), dominance_law),
        "trap_errors": (("fits",), trap_errors),
        "training_curve": (("training",), training_curve),
        "r_coefficients": (("r_fits",), r_coefficients),
        "sweep_lines": (("sweep",), sweep_lines),
    }
    return {
        name: maker(*(tables[table] for table in needed), caption=caption)
        for name, (needed, maker) in makers.items()
        if all(table in tables for table in needed)
    }


def save_figures(run: Run) -> list[Path]:
    """Write the figures of a run to `figures/NAME.svg` in its folder."""
    folder = run.path / "figures"
    folder.mkdir(exist_ok=True)
    paths = []
    for name, figure in figures_of(run, caption=f"Preset {run.identity.get('preset')}.").items():
        path = folder / f"{name}.svg"
        path.write_text(to_svg(figure), encoding="utf-8")
        paths.append(path)
    return paths
