"""Critical evidence and the slope of dominance, each against the model itself."""

from __future__ import annotations

import numpy as np
import pytest

from latentkt.keytask import (
    KeyTaskModel,
    PathPair,
    critical_key_evidence,
    critical_path_evidence,
    critical_task_evidence,
    decompose,
    dominance_curve,
    dominance_slope,
    greatest_slope,
    key_margins,
)
from latentkt.keytask.logspace import log

PATHS = PathPair(k_s=1, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1)


def random_models(seed, size, n_keys=3):
    rng = np.random.default_rng(seed)
    return [
        rng.dirichlet(np.ones(n_keys), size),
        rng.dirichlet(np.ones(3), (size, n_keys)),
        rng.random((size, n_keys, 3)),
        rng.dirichlet(np.full(3, 0.4), (size, n_keys, 3)),
    ]


def margin(arrays):
    return decompose(KeyTaskModel.from_probabilities(*arrays), PATHS).quantities.gamma


def test_key_margins_make_up_the_margin():
    arrays = random_models(0, 500)
    weight, each = key_margins(KeyTaskModel.from_probabilities(*arrays), PATHS)
    assert np.allclose((weight * each).sum(-1), margin(arrays), atol=1e-14)


def test_critical_key_evidence_makes_the_answers_even():
    arrays = random_models(1, 4000)
    weight, each = key_margins(KeyTaskModel.from_probabilities(*arrays), PATHS)
    rest = weight[:, 2] * each[:, 2] / weight[:, 1]
    log_odds = np.log(weight[:, 1] / weight[:, 0])
    found = critical_key_evidence(log_odds, each[:, 1], each[:, 0], margin_rest=rest)
    counts = {name: int((found.outcome == name).sum()) for name in np.unique(found.outcome)}
    assert counts["threshold"] > 300 and set(counts) == {"threshold", "no_rescue", "never_dominates", "reversed"}
    assert np.array_equal(np.isfinite(found.nats), found.outcome == "threshold")

    def with_evidence(nats):
        likelihood = arrays[2].copy()
        likelihood[:, 0] *= np.exp(nats)[:, None]
        return margin([arrays[0], arrays[1], likelihood, arrays[3]])

    ok = found.outcome == "threshold"
    even = with_evidence(np.where(ok, found.nats, 0.0))
    assert np.abs(even[ok]).max() < 1e-12
    above, below = (with_evidence(np.where(ok, found.nats, 0.0) + shift) for shift in (0.1, -0.1))
    assert (above[ok] < 0).all() and (below[ok] > 0).all()
    for shift in (-20.0, 0.0, 20.0):
        at = with_evidence(np.full(4000, shift))
        assert (at[found.outcome == "no_rescue"] > 0).all() and (at[found.outcome == "never_dominates"] <= 0).all()
    assert (with_evidence(np.full(4000, 30.0))[found.outcome == "reversed"] > 0).all()


def test_the_critical_line_has_slope_one():
    grid = np.linspace(-5, 5, 11)
    found = critical_key_evidence(grid, 0.8, -0.4)
    assert np.allclose(np.diff(found.nats), 1.0) and float(found.nats[5]) == pytest.approx(np.log(2))
    assert str(critical_key_evidence(0.0, 0.0, 0.0).outcome) == "tied"


def test_critical_path_evidence_makes_the_answers_even():
    arrays = random_models(2, 4000)
    found = critical_path_evidence(KeyTaskModel.from_probabilities(*arrays), PATHS)
    ok = found.outcome == "threshold"
    assert ok.sum() > 500
    likelihood = arrays[2].copy()
    likelihood[ok, 0, 0] *= np.exp(found.nats[ok])
    assert np.abs(margin([arrays[0], arrays[1], likelihood, arrays[3]])[ok]).max() < 1e-12
    # leak-free: log Π + log L_s/L_0 + log α_s/α_0
    says = np.array([[[0, 0.5, 0.5], [0, 0, 1]], [[0, 0, 1], [0.8, 0, 0.2]]])
    model = KeyTaskModel.from_probabilities([0.25, 0.75], [[0.3, 0.7], [0.2, 0.8]], [[0.5, 1], [1, 0.7]], says)
    expected = np.log(8) + np.log(0.7 / 0.5) + np.log(0.8 / 0.5)
    assert float(critical_path_evidence(model, PATHS).nats) == pytest.approx(expected, abs=1e-12)


def test_critical_task_evidence_holds_the_keys_and_saturates():
    arrays = random_models(3, 4000)
    model = KeyTaskModel.from_probabilities(*arrays)
    found = critical_task_evidence(model, PATHS)
    weight, each = key_margins(model, PATHS)
    w, says = model.posterior(), arrays[3][..., 0] - arrays[3][..., 1]

    def with_evidence(nats):
        tasks = w[:, 0] / weight[:, :1]
        tasks[:, 0] *= np.exp(nats)
        tasks /= tasks.sum(-1, keepdims=True)
        at_0 = (tasks * says[:, 0]).sum(-1)
        return weight[:, 0] * at_0 + (weight[:, 1:] * each[:, 1:]).sum(-1)

    ok = found.outcome == "threshold"
    assert ok.sum() > 300
    assert np.abs(with_evidence(np.where(ok, found.nats, 0.0))[ok]).max() < 1e-9
    # +inf exactly where the shortcut wins now and the other keys outweigh the most that the task can give
    most = weight[:, 0] * says[:, 0, 0] + (weight[:, 1:] * each[:, 1:]).sum(-1)
    assert (most[found.outcome == "no_rescue"] >= -1e-12).all() and (found.outcome == "no_rescue").sum() > 300
    assert (with_evidence(np.full(4000, 60.0))[found.outcome == "no_rescue"] > -1e-9).all()


def test_dominance_curve_is_the_model_and_its_slope_the_derivative():
    says = [[[0.01, 0.9, 0.09]], [[0.8, 0.02, 0.18]]]
    s_0, s_s = says[0][0], says[1][0]
    a, b, level = s_0[0] / s_s[0], s_0[1] / s_s[1], np.log(s_s[0] / s_s[1])
    grid = np.linspace(-6, 6, 121)
    prior = np.stack([1 / (1 + np.exp(grid)), np.exp(grid) / (1 + np.exp(grid))], axis=-1)
    model = KeyTaskModel.from_probabilities(prior, [[1.0], [1.0]], [[1.0], [1.0]], says)
    paths = PathPair(k_s=1, t_s=0, k_0=0, t_0=0, y_s=0, y_0=1)
    curve = dominance_curve(grid, a=a, b=b, level=level)
    assert np.allclose(curve, decompose(model, paths).dominance, atol=1e-12)
    slope = dominance_slope(grid, a=a, b=b)
    assert np.allclose(slope[1:-1], np.gradient(curve, grid)[1:-1], atol=2e-3)
    assert slope.max() <= float(greatest_slope(a, b)) + 1e-12
    at = float(dominance_slope(np.log(a * b) / 2, a=a, b=b))
    assert at == pytest.approx(float(greatest_slope(a, b)), abs=1e-12)
    # leak-free: a line of slope 1
    assert np.allclose(dominance_slope(grid, a=0.0, b=np.inf), 1.0) and float(greatest_slope(0.0, 5.0)) == 1.0
    assert float(greatest_slope(1.0, 1.0)) == 0.0 and float(log(np.array(0.0))) == -np.inf
