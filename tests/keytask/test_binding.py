"""The three answer-binding regimes: inferred, declared, and their odds in closed form."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.keytask import KeyTaskModel, PathPair, bound_ratio, check_binding, decompose, find_binding

PATHS = PathPair(k_s=1, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1)
S, C, O = (np.array(x, dtype=float) for x in ([1, 0, 0], [0, 1, 0], [0, 0, 1]))  # noqa: E741
SAYS = {"path": [[C, O], [O, S]], "key": [[C, C], [S, S]], "task": [[C, S], [C, S]]}


def quantities(says, noise=0.0, size=50, seed=0):
    rng = np.random.default_rng(seed)
    says = (1 - noise) * np.array(says) + noise * rng.dirichlet(np.ones(3), (size, 2, 2))
    model = KeyTaskModel.from_probabilities(
        rng.dirichlet(np.ones(2), size), rng.dirichlet(np.ones(2), (size, 2)), rng.random((size, 2, 2)), says
    )
    return decompose(model, PATHS).quantities


@pytest.mark.parametrize("regime", SAYS)
def test_regime_is_found_and_its_odds_are_the_closed_form(regime):
    q = quantities(SAYS[regime])
    found = find_binding(q.emissions)
    assert (found.regime == regime).all() and np.allclose(getattr(found, regime), 0)
    assert np.allclose(bound_ratio(regime, kappa=q.kappa, tau_s=q.tau_s, tau_0=q.tau_0), q.ratio, rtol=1e-10)
    assert (find_binding(quantities(SAYS[regime], noise=0.05).emissions).regime == regime).all()


def test_neither_regime_is_mixed():
    half = (np.array(SAYS["key"]) + np.array(SAYS["task"])) / 2
    found = find_binding(quantities(half).emissions)
    assert (found.regime == "mixed").all() and np.allclose(found.key, 0.5)


def test_declared_regime_is_checked():
    emissions = quantities(SAYS["key"]).emissions
    assert (check_binding(emissions, "key").regime == "key").all()
    with pytest.raises(InputError, match="not task-bound as declared"):
        check_binding(emissions, "task")
    with pytest.raises(InputError, match="declared binding is not one"):
        check_binding(emissions, "both")


def test_shared_task_has_no_regime():
    model = KeyTaskModel.from_probabilities([0.4, 0.6], [[1.0], [1.0]], [[1.0], [1.0]], [[C], [S]])
    q = decompose(model, PathPair(k_s=1, t_s=0, k_0=0, t_0=0, y_s=0, y_0=1)).quantities
    found = find_binding(q.emissions)
    assert found.regime == "none" and found.path is None
    assert check_binding(q.emissions, "path").regime == "none"
    assert str(bound_ratio("path", kappa=Fraction(3, 5), tau_s=1, tau_0=1, alpha_s=Fraction(1, 2))) == "3/4"
