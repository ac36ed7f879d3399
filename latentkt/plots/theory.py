"""Figures of the theory: where dominance is certified, and what the log-odds of one case are made of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from latentkt.errors import InputError
from latentkt.keytask import Limits, certify, critical_key_evidence
from latentkt.keytask.answers import ModelAnswers, answer_model
from latentkt.keytask.bounds import Caps
from latentkt.keytask.case import TheoryCase
from latentkt.keytask.decomposition import TERMS, exact_factors
from latentkt.keytask.rational import log_exact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["dominance_map", "draw_case", "term_waterfall"]

_SHORTCUT, _CORRECT, _CERTIFIED = "#c0504d", "#4f81bd", "#7a1f1c"
_LABELS = {name: name.replace("_", " ") for name in TERMS}


def dominance_map(
    *,
    tau_s: float,
    tau_0: float,
    margin_s: float,
    margin_0: float,
    limits: Limits,
    point: tuple[float, float] | None = None,
    reach: float = 6.0,
    resolution: int = 241,
    ax: Axes | None = None,
) -> Figure:
    """Log prior ratio against evidence: the critical line, who wins on either side, and where that is certified.

    Args:
        tau_s: P(t_s | k_s, z, task in pair).
        tau_0: P(t* | k*, z, task in pair).
        margin_s: What the shortcut key says: Σ_t P(t|k_s, z) [P(y_s|z; k_s, t) − P(y*|z; k_s, t)].
        margin_0: What the correct key says, likewise (negative where it says y*).
        limits: What is stated of the answers and of the mass outside the pair.
        point: A case to mark: (log prior ratio of the keys, evidence for the correct key), nats.
        reach: The axes run from −reach to reach, nats.
        resolution: Grid points along each axis.
        ax: Axes to draw into; a new figure by default.

    Returns:
        The figure. Its line and region hold for these tau, margins and limits, whatever the keys' priors.
    """
    figure, ax = _axes(ax, (5.4, 4.8))
    grid = np.linspace(-reach, reach, resolution)
    prior, evidence = np.meshgrid(grid, grid)
    critical = critical_key_evidence(grid, margin_s, margin_0)
    wins = np.exp(prior - evidence) * margin_s + margin_0 > 0
    tau_odds = [float(np.log(t) - np.log1p(-t)) if 0 < t < 1 else (np.inf if t else -np.inf) for t in (tau_s, tau_0)]
    found = certify(log_rho_k=prior - evidence, log_odds_s=tau_odds[0], log_odds_0=tau_odds[1], limits=limits)
    ax.contourf(grid, grid, wins.astype(float), levels=[-0.5, 0.5, 1.5], colors=[_CORRECT, _SHORTCUT], alpha=0.25)
    if found.certified.any():
        ax.contourf(grid, grid, found.certified.astype(float), levels=[0.5, 1.5], colors=[_CERTIFIED], alpha=0.45)
    if np.isfinite(critical.nats).all():
        ax.plot(grid, critical.nats, color="black", lw=1.6, label="critical line (slope 1)")
    handles = _legend_handles(certified=bool(found.certified.any()))
    if point is not None:
        ax.plot(*point, marker="o", ms=7, mfc="white", mec="black", mew=1.5, ls="none", label="this case")
    ax.set(
        xlim=(-reach, reach),
        ylim=(-reach, reach),
        xlabel="log prior ratio of the keys, shortcut over correct (nats)",
        ylabel="evidence for the correct key (nats)",
        title="Frequency against evidence",
    )
    ax.legend(handles=[*handles, *ax.get_legend_handles_labels()[0]], loc="lower right", fontsize=8, framealpha=0.95)
    return figure


def term_waterfall(terms: Mapping[str, float], *, title: str = "", ax: Axes | None = None) -> Figure:
    """How the terms of the odds identity add up to the dominance of one case.

    Args:
        terms: Name of the term (`latentkt.keytask.TERMS`) -> nats, in the order to draw.
        title: Above the figure.
        ax: Axes to draw into; a new figure by default.

    Raises:
        InputError: A term is not finite (the shortcut or the correct path says nothing): there is no sum to draw.
    """
    for name, value in terms.items():
        if not np.isfinite(value):
            raise InputError(f"term {name} is {value}", expected="finite terms", fix="read the numbers instead")
    figure, ax = _axes(ax, (6.4, 0.36 * len(terms) + 1.5))
    values = np.array(list(terms.values()))
    ends = np.cumsum(values)
    rows = np.arange(len(values))
    colours = [_SHORTCUT if value > 0 else _CORRECT for value in values]
    ax.barh(rows, values, left=ends - values, color=colours, height=0.62)
    ax.barh(len(values), ends[-1], color="black", height=0.62)
    for row, (value, end) in enumerate(zip([*values, ends[-1]], [*ends, ends[-1]], strict=True)):
        right = max(end, end - value) if row < len(values) else max(end, 0.0)
        ax.annotate(f"{value:+.2f}", (right, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    for row, end in enumerate(ends):
        ax.plot([end, end], [row - 0.31, row + 1.31], color="grey", lw=0.7)
    ax.set_yticks([*rows, len(values)], [*(_LABELS.get(name, name) for name in terms), "dominance"])
    ax.invert_yaxis()
    ax.axvline(0, color="black", lw=0.8)
    low, high = min(0.0, ends.min()), max(0.0, ends.max())
    pad = 0.16 * (high - low or 1.0)
    ax.set_xlim(low - pad / 4, high + pad)
    ax.set(xlabel="nats, positive in favour of the shortcut answer", title=title)
    return figure


def draw_case(case: TheoryCase, folder: Path) -> list[Path]:
    """Draw both figures of a case of type `model` as SVG into a folder; returns their paths.

    Raises:
        InputError: The case is of another type, its paths share the key, or a term is not finite.
    """
    if case.type != "model":
        raise InputError("there are figures of model cases only", expected="type model", found=case.type)
    found = answer_model(case)
    folder.mkdir(parents=True, exist_ok=True)
    terms = {name: _nats(factor) for name, factor in exact_factors(found.quantities).items()}
    figures: dict[str, Figure] = {"terms": term_waterfall(terms, title=case.name)}
    if found.paths.mode != "same_key":
        figures["map"] = _case_map(found)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{case.name.replace('/', '-')}-{name}.svg")
        figure.savefig(paths[-1], bbox_inches="tight", metadata={"Date": None})
    return paths


def _case_map(found: ModelAnswers) -> Figure:
    q, paths = found.quantities, found.paths
    w, says = found.model.posterior(), found.model.emission
    margins = (w * (says[..., paths.y_s] - says[..., paths.y_0])).sum(axis=1)
    weight = w.sum(axis=1)
    caps = Caps.own(q.emissions)
    names = {"B_0": caps.B_0, "C_1": caps.C_1, "C_2": caps.C_2, "eps_k": q.eps_k}
    names |= {"alpha_s": q.emissions.alpha_s, "alpha_0": q.emissions.alpha_0}
    names |= {"eps_t_s": q.eps_t_s, "eps_t_0": q.eps_t_0}
    if any(value is None for value in (*names.values(), q.tau_s, q.tau_0, q.LR_k, q.rho_k)):
        raise InputError("no map can be drawn: a key of the pair has no posterior mass", expected="P(k|z) above 0")
    evidence = -_nats(q.LR_k)
    return dominance_map(
        tau_s=float(q.tau_s),
        tau_0=float(q.tau_0),
        margin_s=float(margins[paths.k_s] / weight[paths.k_s]),
        margin_0=float(margins[paths.k_0] / weight[paths.k_0]),
        limits=Limits(**{name: float(value) for name, value in names.items()}),
        point=(_nats(q.rho_k), evidence),
        reach=max(6.0, 1.2 * abs(_nats(q.rho_k)), 1.2 * abs(evidence)),
    )


def _nats(value: Any) -> float:
    found = log_exact(value)
    return float("nan") if found is None else float(found)


def _axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The axes given, or those of a new figure that no window holds."""
    if ax is not None:
        return cast("Figure", ax.figure), ax
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def _legend_handles(*, certified: bool) -> list[Any]:
    from matplotlib.patches import Patch

    handles = [
        Patch(color=_SHORTCUT, alpha=0.25, label="shortcut answer wins"),
        Patch(color=_CORRECT, alpha=0.25, label="correct answer wins"),
    ]
    return [*handles, Patch(color=_CERTIFIED, alpha=0.6, label="certified")] if certified else handles
