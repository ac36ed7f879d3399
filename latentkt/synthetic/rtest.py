"""The R-test: does a network's log-odds carry log R? Regression of dominance on log ρ_k, log ρ_t and log R.

Whether it does is decided by how ambiguous documents arise (`rworld`), so each corpus has its own prediction:

    corpus        path binding   key binding     (coefficients of log ρ_k, log ρ_t, log R)
    pair-neutral  (1, 1, 1)      (1, 0, 0)
    path-neutral  (1, 1, 0)      (1, 0, -1)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError
from latentkt.synthetic.fits import Estimate, KeyBootstrap, least_squares, least_squares_draws
from latentkt.synthetic.measure import answer_log_probabilities
from latentkt.synthetic.rstream import BINDINGS, path_prompts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from jaxtyping import Float

    from latentkt.synthetic.measure import Logits
    from latentkt.synthetic.rstream import PathStream
    from latentkt.synthetic.rworld import PathWorld

__all__ = [
    "PREDICTIONS",
    "REGRESSORS",
    "Verdict",
    "check_design",
    "check_exact",
    "exact_dominance",
    "fit_r",
    "path_answers",
    "path_items",
    "verdict",
]

REGRESSORS = ("log_rho_key", "log_rho_task", "log_r")
PREDICTIONS = {
    "pair-neutral": {"path": (1.0, 1.0, 1.0), "key": (1.0, 0.0, 0.0)},
    "path-neutral": {"path": (1.0, 1.0, 0.0), "key": (1.0, 0.0, -1.0)},
}
MOST_CORRELATION, MOST_CONDITION = 0.7, 10.0
EXACT_TOLERANCE, VERDICT_TOLERANCE = 1e-3, 0.25
ORDERS = ((True, True), (True, False), (False, True), (False, False))


def path_items(world: PathWorld) -> pd.DataFrame:
    """Every two paths with different keys and different tasks, one row each.

    Returns:
        item, shortcut, shortcut_task, correct, correct_task (indices); log_rho_key, log_rho_task, log_r (nats);
        unseen: whether these keys were never shown with these tasks.

    Example:
        >>> from latentkt.synthetic import make_path_world
        >>> len(path_items(make_path_world("pair-neutral", seed=0)))
        3312
    """
    import pandas as pd

    tasks = [(first, second) for first in range(world.tasks) for second in range(world.tasks) if first != second]
    rows = [(k_s, t_s, k_0, t_0) for k_s, k_0 in combinations(range(world.keys), 2) for t_s, t_0 in tasks]
    table = pd.DataFrame(rows, columns=["shortcut", "shortcut_task", "correct", "correct_task"])
    table.insert(0, "item", np.arange(len(table)))
    k_s, t_s, k_0, t_0 = (table[name].to_numpy() for name in table.columns[1:])
    key, task = np.array(world.prior_key), np.array(world.prior_task)
    table["log_rho_key"] = np.log(key[k_s] / key[k_0])
    table["log_rho_task"] = np.log(task[k_s, t_s] / task[k_0, t_0])
    table["log_r"] = np.log((task[k_0, t_0] + task[k_0, t_s]) / (task[k_s, t_0] + task[k_s, t_s]))
    distance = np.abs(k_s - k_0)
    shift = np.minimum(distance, world.keys - distance)
    held = set(world.held_out)
    table["unseen"] = [
        (min(a, b), max(a, b), s) in held for a, b, s in zip(t_s.tolist(), t_0.tolist(), shift.tolist(), strict=True)
    ]
    return table


def exact_dominance(world: PathWorld, items: pd.DataFrame, binding: str) -> Float[np.ndarray, " item"]:
    """Log P(y_s|z)/P(y*|z) of the exact predictor, where the answer is bound to the path, the key, or the task."""
    k_s, t_s, k_0, t_0 = (items[n].to_numpy() for n in ("shortcut", "shortcut_task", "correct", "correct_task"))
    both, neither = world.joint(k_s, t_s, t_0), world.joint(k_0, t_0, t_s)
    key_only, task_only = world.joint(k_s, t_0, t_s), world.joint(k_0, t_s, t_0)
    if binding == "path":
        return np.log(both / neither)
    if binding == "key":
        return np.log((both + key_only) / (neither + task_only))
    if binding == "task":
        return np.log((both + task_only) / (neither + key_only))
    raise InputError("the binding is unknown", expected="path, key or task", found=binding)


def check_design(items: pd.DataFrame) -> dict[str, float]:
    """How well the three regressors can be told apart.

    Returns:
        The three correlations and the condition number of the standardised regressors.

    Raises:
        InputError: If a correlation is .7 or more, or the condition number 10 or more.
    """
    values = items[list(REGRESSORS)].to_numpy()
    if np.any(values.std(0) < 1e-9):
        raise InputError("a regressor does not vary", expected="spread in all three", found=values.std(0).tolist())
    correlation = np.corrcoef(values.T)
    found = {
        f"correlation {REGRESSORS[i]}, {REGRESSORS[j]}": float(correlation[i, j]) for i, j in combinations(range(3), 2)
    }
    standard = (values - values.mean(0)) / values.std(0)
    found["condition number"] = float(np.linalg.cond(standard))
    worst = max(abs(value) for name, value in found.items() if name != "condition number")
    if worst >= MOST_CORRELATION or found["condition number"] >= MOST_CONDITION:
        raise InputError(
            "this world cannot tell the regressors apart",
            expected=f"|correlations| under {MOST_CORRELATION}, condition number under {MOST_CONDITION:g}",
            found={name: round(value, 3) for name, value in found.items()},
            fix="draw another seed, or spread the priors more",
        )
    return found


def check_exact(world: PathWorld, items: pd.DataFrame) -> pd.DataFrame:
    """Regress the exact predictor: before anything is trained, the design must return its own prediction.

    Returns:
        One row a binding (path, key, task): the three coefficients and r2. Task binding is not linear: its row is the
        straight line through a curve.

    Raises:
        InputError: If path or key misses the prediction of a pure corpus by more than 1e-3.
    """
    import pandas as pd

    rows = []
    for binding in (*BINDINGS, "task"):
        design = np.column_stack([np.ones(len(items)), items[list(REGRESSORS)].to_numpy()])
        y = exact_dominance(world, items, binding)
        found, *_ = np.linalg.lstsq(design, y, rcond=None)
        residual = y - design @ found
        r2 = 1 - residual.var() / y.var()
        rows.append({"binding": binding, **dict(zip(REGRESSORS, found[1:], strict=True)), "r2": r2})
        expected = PREDICTIONS.get(corpus_of(world), {}).get(binding)
        if expected is not None and np.max(np.abs(found[1:] - expected)) > EXACT_TOLERANCE:
            raise InputError(
                f"the exact predictor misses its prediction under {binding} binding",
                expected=expected,
                found=found[1:].round(4).tolist(),
            )
    return pd.DataFrame(rows)


def corpus_of(world: PathWorld) -> str:
    """The name of the corpus of a world."""
    names = {1.0: "pair-neutral", 0.0: "path-neutral"}
    return names.get(world.pair_neutral_share, f"{world.pair_neutral_share:g} pair-neutral")


def path_answers(logits: Logits, stream: PathStream, items: pd.DataFrame) -> pd.DataFrame:
    """Ask a network for the path and for the key of every item; log-odds are averaged over the four orders.

    Returns:
        One row an item and binding: the item's columns, binding, dominance, bayes_dominance, off_options.
    """
    import pandas as pd

    world, vocabulary = stream.world, stream.vocabulary
    data = {name: items[name].to_numpy() for name in ("shortcut", "shortcut_task", "correct", "correct_task")}
    tables = []
    for binding in BINDINGS:
        if binding == "path":
            start = vocabulary.id("y0.0")
            wrong = start + data["shortcut"] * world.tasks + data["shortcut_task"]
            right = start + data["correct"] * world.tasks + data["correct_task"]
        else:
            wrong, right = (vocabulary.id("k0") + data[name] for name in ("shortcut", "correct"))
        dominance, off = np.zeros(len(items)), np.zeros(len(items))
        rows = np.arange(len(items))
        for order in ORDERS:
            prompts = path_prompts(world, vocabulary, data, binding=binding, order=order)
            log_p = answer_log_probabilities(logits, prompts)
            dominance += (log_p[rows, wrong] - log_p[rows, right]) / len(ORDERS)
            off += (1 - np.exp(log_p[rows, wrong]) - np.exp(log_p[rows, right])) / len(ORDERS)
        bayes = exact_dominance(world, items, binding)
        tables.append(items.assign(binding=binding, dominance=dominance, bayes_dominance=bayes, off_options=off))
    return pd.concat(tables, ignore_index=True)


def fit_r(answers: pd.DataFrame) -> pd.DataFrame:
    """The three coefficients for every corpus, seed and binding; over all items and over held-out combinations.

    Returns:
        corpus, seed ("mean" or its number), binding, pairs ("all" or "unseen"), statistic, value, low, high, n.
        Intervals come from resampling the keys of each network.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for (corpus, binding), table in answers.groupby(["corpus", "binding"], sort=True):
        for pairs, part in (("all", table), ("unseen", table[table["unseen"]])):
            place = {"corpus": corpus, "binding": binding, "pairs": pairs}
            fits = {seed: _fit(one, seed) for seed, one in _by_seed(part)}
            for seed, fit in fits.items():
                rows += [{**place, "seed": str(seed), **_row(name, found)} for name, found in fit.items()]
            rows += [{**place, "seed": "mean", **_row(name, found)} for name, found in _mean(part).items()]
    return pd.DataFrame(rows)


def _by_seed(part: pd.DataFrame) -> list[tuple[int, pd.DataFrame]]:
    return [(int(seed), part[part["seed"] == seed]) for seed in sorted(part["seed"].unique())]


def _columns(part: pd.DataFrame) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    return part["dominance"].to_numpy(), {name: part[name].to_numpy() for name in REGRESSORS}


def _boot(part: pd.DataFrame, seed: int) -> KeyBootstrap:
    return KeyBootstrap(part["shortcut"].to_numpy(), part["correct"].to_numpy(), replicates=300, seed=seed)


def _fit(part: pd.DataFrame, seed: int) -> dict[str, Estimate]:
    return least_squares(*_columns(part), _boot(part, seed))


def _mean(part: pd.DataFrame) -> dict[str, Estimate]:
    """Mean over the seeds of each coefficient; replicates are averaged replicate by replicate."""
    values, draws = [], []
    for seed, one in _by_seed(part):
        value, draw = least_squares_draws(*_columns(one), _boot(one, seed))
        values.append(value)
        draws.append(draw)
    value, draw = np.mean(values, axis=0), np.mean(draws, axis=0)
    boot = _boot(part, 0)
    return {name: boot.interval(value[1 + i], draw[:, 1 + i], len(part)) for i, name in enumerate(REGRESSORS)}


def _row(name: str, found: Estimate) -> dict[str, Any]:
    return {"statistic": name, "value": found.value, "low": found.low, "high": found.high, "n": found.n}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A prediction held against the data of one corpus.

    Attributes:
        prediction: Whose prediction: "pair-neutral" or "path-neutral".
        corpus: What the networks were trained on.
        expected: c_R that is predicted.
        found: c_R of the path binding, mean over seeds.
        verdict: "confirmed" or "refuted".
    """

    prediction: str
    corpus: str
    expected: float
    found: Estimate
    verdict: str

    def __str__(self) -> str:
        ends = f"{self.found.value:.2f} [{self.found.low:.2f}, {self.found.high:.2f}]"
        return (
            f"{self.verdict}: the {self.prediction} prediction c_R = {self.expected:g} on the {self.corpus} corpus, "
            f"where c_R = {ends}"
        )


def verdict(fits: pd.DataFrame, *, corpora: Sequence[str] = tuple(PREDICTIONS)) -> list[Verdict]:
    """Hold each prediction against each corpus: c_R of the path binding, mean over seeds, within .25 or refuted.

    On the other corpus a prediction is false by construction and must come out refuted.
    """
    results = []
    for corpus in corpora:
        chosen = fits[
            (fits["corpus"] == corpus) & (fits["binding"] == "path") & (fits["pairs"] == "all")
            & (fits["seed"] == "mean") & (fits["statistic"] == "log_r")
        ]  # fmt: skip
        row = chosen.iloc[0]
        found = Estimate(float(row["value"]), float(row["low"]), float(row["high"]), int(row["n"]))
        for prediction, bindings in PREDICTIONS.items():
            expected = bindings["path"][2]
            holds = abs(found.value - expected) <= VERDICT_TOLERANCE
            results.append(Verdict(prediction, corpus, expected, found, "confirmed" if holds else "refuted"))
    return results
