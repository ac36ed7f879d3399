"""From counts to priors: π(k), π(t|k), π(k, t) with stated smoothing, and the log prior ratio of two paths."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.counts import Counts
from latentkt.corpus.ratio import LogRatio, log_ratio
from latentkt.errors import InputError

__all__ = ["PathPrior", "PriorRatio", "Priors", "estimate_priors", "good_turing_missing_mass", "log_prior_ratio"]

SMOOTHINGS = ("jeffreys", "hierarchical", "none")
GIVEN = ("listed", "key")
FEW_CLUSTERS_IN_ALL = 30


@dataclass(frozen=True)
class Priors:
    """Priors over the listed keys and tasks.

    Attributes:
        keys: Names of the keys.
        tasks: Names of the tasks.
        key: π(k), shape (keys,); NaN where nothing was counted.
        task_given_key: π(t|k), shape (keys, tasks). With ``given="listed"`` rows sum to 1; with ``"key"`` an entry is
            the share of the key's units that hold the task, and rows need not.
        joint: π(k, t) = c(k, t) over all listed pairs, smoothed alike; shape (keys, tasks).
        scope: The scope whose units were counted.
        given: What π(t|k) divides by.
        smoothing: ``jeffreys``, ``hierarchical`` or ``none``.
        strength: Pseudo-count in all of the hierarchical base; NaN for the others.
    """

    keys: tuple[str, ...]
    tasks: tuple[str, ...]
    key: NDArray[np.float64]
    task_given_key: NDArray[np.float64]
    joint: NDArray[np.float64]
    scope: str
    given: str
    smoothing: str
    strength: float


def estimate_priors(
    counts: Counts,
    *,
    scope: str | None = None,
    given: str = "listed",
    smoothing: str = "jeffreys",
    strength: float = 1.0,
) -> Priors:
    """Priors of all listed keys and tasks.

    Args:
        counts: What was counted.
        scope: Scope of co-occurrence; the smallest window, else the document, if None.
        given: ``listed`` divides c(k, t) by its sum over the listed tasks (the paper's), ``key`` by c(k) in the unit
            of the scope.
        smoothing: ``jeffreys`` adds ½ to each cell; ``hierarchical`` adds `strength` times the overall share of the
            task (for large sparse sets, where ½ a cell swamps the counts); ``none`` adds nothing.
        strength: Pseudo-count of the hierarchical base.

    Raises:
        InputError: An unknown scope, divisor or smoothing.

    Example:
        >>> from latentkt.corpus import count_texts
        >>> patterns = {"keys": {"a": ["Ann"], "b": ["Bob"]}, "tasks": {"x": ["sums"], "y": ["maps"]}}
        >>> counts = count_texts(["Ann likes sums"] * 3 + ["Bob likes maps"], patterns)
        >>> estimate_priors(counts, smoothing="none").joint
        array([[0.75, 0.  ],
               [0.  , 0.25]])
    """
    if given not in GIVEN or smoothing not in SMOOTHINGS or strength <= 0:
        expected = f"given {' | '.join(GIVEN)}, smoothing {' | '.join(SMOOTHINGS)}, strength > 0"
        raise InputError("bad priors", expected=expected, found=(given, smoothing, strength))
    layout = counts.layout
    scope = scope or counts.default_scope
    offset = layout.scope_offset(scope)
    n_keys, n_tasks = len(layout.keys), len(layout.tasks)
    pairs = counts.tally.dense(offset, offset + n_keys * n_tasks).reshape(n_keys, n_tasks).astype(float)
    occurrences = counts.tally.dense(0, n_keys).astype(float)
    base = _base(pairs, smoothing, strength)
    half = 0.5 if smoothing != "none" else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        key = (occurrences + half) / (occurrences + half).sum()
        joint = (pairs + base) / (pairs + base).sum()
        if given == "listed":
            conditional = (pairs + base) / (pairs + base).sum(axis=1, keepdims=True)
        else:
            units = np.array([counts.units(name, scope) for name in layout.keys], float)[:, None]
            conditional = (pairs + half) / (units + 2 * half)  # each task: present in the unit, or not
    smooth_strength = strength if smoothing == "hierarchical" else math.nan
    return Priors(layout.keys, layout.tasks, key, conditional, joint, scope, given, smoothing, smooth_strength)


def _base(pairs: NDArray[np.float64], smoothing: str, strength: float) -> NDArray[np.float64]:
    """Pseudo-counts of each row (key) of the table."""
    if smoothing == "none":
        return np.zeros_like(pairs)
    if smoothing == "jeffreys":
        return np.full_like(pairs, 0.5)
    share = pairs.sum(axis=0) + 0.5
    return np.broadcast_to(strength * share / share.sum(), pairs.shape)


@dataclass(frozen=True, slots=True)
class PathPrior:
    """What was counted of one path.

    Attributes:
        path: ``KEY:TASK``.
        units: Units of the scope with key and task: c(k, t).
        key_units: Units of the scope that hold the key.
        key_occurrences: c(k).
        documents: Documents with key and task.
    """

    path: str
    units: int
    key_units: int
    key_occurrences: int
    documents: int


@dataclass(frozen=True, slots=True)
class PriorRatio:
    """The log prior ratio of two paths, shortcut over correct, and its parts, in nats.

    Attributes:
        scope: The scope whose units were counted.
        ratio: log π(k_s, t_s)/π(k*, t*) from the counts c(k, t), with its interval.
        key_part: log ρ_k = log c(k_s)/c(k*), occurrences of the keys.
        task_part: The rest: log of π(t_s|k_s)/π(t*|k*), ``given="key"`` in occurrences; the two parts add up to
            `ratio.estimate`.
        shortcut: Counts of the shortcut path.
        correct: Counts of the correct path.
        key_pair: Units with both keys (the paper's condition for Assumption 3.1); None if the pair is not listed.
        warnings: What a reader must know: few clusters, zero counts, no clusters.
    """

    scope: str
    ratio: LogRatio
    key_part: LogRatio
    task_part: float
    shortcut: PathPrior
    correct: PathPrior
    key_pair: int | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Nested plain data; infinite ends and NaN become None."""
        return _plain(asdict(self))


def log_prior_ratio(
    counts: Counts, *, shortcut: str, correct: str, scope: str | None = None, method: str = "auto", level: float = 0.95
) -> PriorRatio:
    """The log prior ratio of a shortcut path over a correct path.

    Args:
        counts: What was counted.
        shortcut: Shortcut path ``KEY:TASK``.
        correct: Correct path.
        scope: Scope of co-occurrence; the smallest window, else the document, if None.
        method: Interval: ``multinomial``, ``cluster`` or ``auto`` (the wider).
        level: Nominal coverage.

    Raises:
        InputError: An unknown path, scope or method.

    Example:
        >>> from latentkt.corpus import count_texts
        >>> patterns = {"keys": {"a": ["Ann"], "b": ["Bob"]}, "tasks": {"x": ["sums"]}}
        >>> counts = count_texts(["Ann likes sums"] * 30 + ["Bob likes sums"] * 10, patterns)
        >>> result = log_prior_ratio(counts, shortcut="a:x", correct="b:x")
        >>> round(result.ratio.estimate, 2), result.ratio.low < 1.1 < result.ratio.high
        (1.1, True)
    """
    layout = counts.layout
    scope = scope or counts.default_scope
    (key_s, task_s), (key_c, task_c) = (counts.patterns.check_path(path) for path in (shortcut, correct))
    clustered = counts.manifest.get("fields", {}).get("cluster") != "none"
    options: dict[str, Any] = {"method": method, "level": level, "clustered": clustered}
    cells = layout.pair(scope, key_s, task_s), layout.pair(scope, key_c, task_c)
    ratio = log_ratio(counts.tally, *cells, **options)
    key_cells = layout.occurrences(key_s, "key"), layout.occurrences(key_c, "key")
    key_part = log_ratio(counts.tally, *key_cells, **options)
    known = {frozenset(pair) for pair in layout.pairs}
    both = counts.key_pair(key_s, key_c, scope) if frozenset((key_s, key_c)) in known else None
    return PriorRatio(
        scope,
        ratio,
        key_part,
        ratio.estimate - key_part.estimate,
        _path_prior(counts, shortcut, scope),
        _path_prior(counts, correct, scope),
        both,
        _warnings(counts, ratio, clustered),
    )


def _path_prior(counts: Counts, path: str, scope: str) -> PathPrior:
    key, _ = counts.patterns.check_path(path)
    return PathPrior(
        path,
        counts.pair(path, scope),
        counts.units(key, scope),
        counts.occurrences(key),
        counts.pair(path, "document"),
    )


def _warnings(counts: Counts, ratio: LogRatio, clustered: bool) -> tuple[str, ...]:
    found = []
    if not clustered:
        found.append("no clusters were counted: units are taken for independent, and intervals may be far too narrow")
    elif ratio.few_clusters:
        found.append(f"only {ratio.clusters} clusters support this ratio (10 are needed for a trustworthy interval)")
    if clustered and counts.tally.n_clusters is not None and counts.tally.n_clusters < FEW_CLUSTERS_IN_ALL:
        found.append(f"the whole corpus has {counts.tally.n_clusters} clusters, under {FEW_CLUSTERS_IN_ALL}")
    if ratio.censored:
        found.append("a count is 0: the ratio is bounded on one side only")
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def good_turing_missing_mass(counts: NDArray[np.int64]) -> tuple[float, float]:
    """Good-Turing estimate of the mass of what a group of phrases has not shown yet, and its standard error.

    The share of the group's next occurrence that falls on a phrase unseen so far is about N1/N: phrases seen once over
    all occurrences. It says nothing about a single phrase.

    Args:
        counts: Occurrences of each phrase of the group.

    Returns:
        The estimate N1/N and its standard error √(N1 + 2·N2)/N (both NaN where N is 0).

    Example:
        >>> good_turing_missing_mass(np.array([5, 1, 1, 3, 0]))[0]
        0.2
    """
    total = int(counts.sum())
    if total == 0:
        return math.nan, math.nan
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return once / total, math.sqrt(once + 2 * twice) / total
