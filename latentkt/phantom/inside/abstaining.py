"""Does the direction that tells made from real also tell on which concepts the model abstains?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from latentkt.internals.probes import fit_probe
from latentkt.phantom.analysis.rates import EVERY
from latentkt.stats import auroc

if TYPE_CHECKING:
    from latentkt.phantom.answers import Answer
    from latentkt.phantom.concepts import Concept
    from latentkt.phantom.inside.activations import ConceptActivations

__all__ = ["direction_and_abstention", "direction_and_denial", "scores_of_others"]

FEWEST = 5
"""Fewest answers of each sort of which an area is given."""


def scores_of_others(
    read: ConceptActivations,
    rows: Sequence[int],
    labels: Sequence[int],
    wanted: Sequence[str],
    *,
    kind: str,
    seed: int,
) -> dict[str, np.ndarray]:
    """Score of concepts on the direction, layer by layer, by probes that have not seen them or their relatives.

    Args:
        read: Activations, those of the wanted concepts among them.
        rows: Rows that the probe is trained on.
        labels: Their labels.
        wanted: Ids of the concepts to be scored.
        kind: Kind of probe.
        seed: Of its folds.

    Returns:
        Concept id -> scores, [layer]; above 0 the probe says 1 (made).
    """
    there = {concept.id for concept in read.concepts}
    names = [name for name in wanted if name in there]
    asked = {read.concepts[row].group for row in read.rows(names)}
    kept = [(row, label) for row, label in zip(rows, labels, strict=True) if read.concepts[row].group not in asked]
    train = [row for row, _ in kept]
    truth = np.array([label for _, label in kept])
    groups = [read.concepts[row].group for row in train]
    scores = np.full((len(names), read.features.shape[1]), math.nan)
    for layer in range(read.features.shape[1]):
        probe = fit_probe(read.features[train, layer], truth, groups, kind=kind, seed=seed, name="abstention")
        scores[:, layer] = read.features[read.rows(names), layer] @ (probe.norm * probe.direction) + probe.intercept
    return dict(zip(names, scores, strict=True))


def direction_and_abstention(scores: Mapping[str, np.ndarray], answers: Sequence[Answer]) -> pd.DataFrame:
    """How well the score of a concept tells whether the answer about it abstains, layer by layer.

    The unit is one answer; within a property each concept has one, where one phrasing was asked. Over all properties a
    concept counts once: its share of abstentions above or below the median is what the score is to tell.

    Args:
        scores: See `scores_of_others`.
        answers: Judged answers of one setting.

    Returns:
        One row a layer (−1: embedding), property and scope (`phantom`: made concepts alone; `all`): `n`, `n_abstained`,
        `auc` with its interval; NaN with a `reason` under five answers of either sort. Above 0.5: the more the state
        looks made, the more is abstained.
    """
    rows = []
    for scope in ("phantom", EVERY):
        mine = [a for a in answers if a.concept_id in scores and a.judgement in ("abstained", "answered")]
        mine = [a for a in mine if scope == EVERY or a.existence == scope]
        for name in (EVERY, *dict.fromkeys(a.property for a in mine)):
            ids, abstains = _units([a for a in mine if name in (EVERY, a.property)], pooled=name == EVERY)
            few = min(sum(abstains), len(abstains) - sum(abstains)) < FEWEST
            about = {"scope": scope, "property": name, "n": len(ids), "n_abstained": int(sum(abstains))}
            for layer in range(len(next(iter(scores.values())))) if ids else ():
                area = None if few else auroc([scores[i][layer] for i in ids], abstains)
                ends = (math.nan,) * 3 if area is None else (area.value, area.low, area.high)
                reason = f"fewer than {FEWEST} of a sort" if few else ""
                found = dict(zip(("auc", "auc_low", "auc_high"), ends, strict=True))
                rows.append({**about, "layer": layer - 1, **found, "reason": reason})
    return pd.DataFrame(rows)


def direction_and_denial(
    scores: Mapping[str, np.ndarray], concepts: Sequence[Concept], log_odds: Sequence[float]
) -> pd.DataFrame:
    """Does the score of a concept go with how far the model leans to "No" when asked whether it exists?

    Args:
        scores: See `scores_of_others`.
        concepts: Concepts, with their scores.
        log_odds: See `denial_log_odds`, one a concept.

    Returns:
        Rows of `measure` `spearman`: rank correlation by layer and scope (`phantom`, `all`) with the interval of Bonett
        and Wright (2000); and one row `auc`: how well the log-odds themselves tell made concepts from real ones.
        Columns `value`, `low`, `high`, `n`.
    """
    odds, made = np.array(log_odds), np.array([concept.existence == "phantom" for concept in concepts])
    rows: list[dict[str, object]] = []
    for scope, kept in (("phantom", made), (EVERY, np.ones(len(made), dtype=bool))):
        for layer in range(len(next(iter(scores.values())))) if scores else ():
            along = np.array([scores[concept.id][layer] for concept in concepts])[kept]
            about = {"measure": "spearman", "scope": scope, "layer": layer - 1, "n": int(kept.sum())}
            rows.append({**about, **dict(zip(("value", "low", "high"), _spearman(along, odds[kept]), strict=True))})
    area = auroc(odds, made)
    ends = {"value": area.value, "low": area.low, "high": area.high}
    rows.append({"measure": "auc", "scope": "made against real", "layer": -2, "n": len(made), **ends})
    return pd.DataFrame(rows)


def _spearman(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    from scipy.stats import spearmanr

    if len(x) < 5 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan, math.nan, math.nan
    r = float(spearmanr(x, y).statistic)
    half = 1.96 * math.sqrt((1 + r**2 / 2) / (len(x) - 3))
    middle = math.atanh(max(-1 + 1e-9, min(1 - 1e-9, r)))
    return r, math.tanh(middle - half), math.tanh(middle + half)


def _units(answers: Sequence[Answer], *, pooled: bool) -> tuple[list[str], list[bool]]:
    """Concepts and whether they are abstained on; pooled: more often than the median concept."""
    if not pooled:
        return [a.concept_id for a in answers], [a.judgement == "abstained" for a in answers]
    said: dict[str, list[bool]] = {}
    for answer in answers:
        said.setdefault(answer.concept_id, []).append(answer.judgement == "abstained")
    shares = {name: float(np.mean(values)) for name, values in said.items()}
    middle = float(np.median(list(shares.values()))) if shares else 0.0
    return list(shares), [share > middle for share in shares.values()]
