"""An adversary that minimises the gap of each bound and floor: it must come near zero, and never below."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax

from latentkt.keytask import (
    Caps,
    KeyTaskModel,
    Limits,
    PathPair,
    certify,
    decompose,
    margin_bounds,
    ratio_bounds,
)
from latentkt.keytask.floors import (
    chi2,
    chi2_floor,
    hellinger2,
    hellinger2_floor,
    kl,
    kl_floor,
    margin_floor,
    reverse_kl_floor,
    total_variation,
)

PATHS = PathPair(k_s=1, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1)
SHAPE = (3, 3, 3)
FREE = 3 + 9 + 9 + 27


def unpack(x):
    """Full models from free numbers, one a row: priors, likelihoods and emissions as softmaxes."""
    k, t, y = SHAPE
    batch = x.shape[:-1]
    key, task, likelihood, says = np.split(np.clip(x, -30, 30), np.cumsum([k, k * t, k * t]), axis=-1)
    return KeyTaskModel.from_probabilities(
        softmax(key, axis=-1),
        softmax(task.reshape(*batch, k, t), axis=-1),
        np.exp(likelihood.reshape(*batch, k, t)),
        softmax(says.reshape(*batch, k, t, y), axis=-1),
    )


def gaps(x):
    q = decompose(unpack(x), PATHS).quantities
    e = q.emissions
    confident, caps = {"alpha_s": e.alpha_s, "alpha_0": e.alpha_0}, Caps.own(e)
    ratio, margin = ratio_bounds(q.masses, **confident, caps=caps), margin_bounds(q.masses, **confident, caps=caps)
    return {
        "ratio_lower": np.log(q.ratio / ratio.lower),
        "ratio_upper": np.log(ratio.upper / q.ratio),
        "margin_lower": q.gamma - margin.lower,
        "margin_upper": margin.upper - q.gamma,
        "from_priors": q.gamma - prior_certificate(q, caps).gamma_lower,
    }


def prior_certificate(q, caps):
    """From the priors and the model's own departures alone; the task odds within the pair are τ-odds over evidence."""
    e = q.emissions
    log_b_s, log_b_0 = np.log(q.b_s), np.log(q.b_0)
    limits = Limits(
        alpha_s=e.alpha_s,
        alpha_0=e.alpha_0,
        B_0=caps.B_0,
        C_1=caps.C_1,
        C_2=caps.C_2,
        eps_k=q.eps_k,
        eps_t_s=q.eps_t_s,
        eps_t_0=q.eps_t_0,
        delta_k=np.abs(np.log(q.LR_k)),
        delta_t=np.maximum(np.abs(log_b_s), np.abs(log_b_0)),
    )
    odds_s, odds_0 = (np.log(tau) - np.log1p(-tau) + log_b for tau, log_b in ((q.tau_s, log_b_s), (q.tau_0, log_b_0)))
    return certify(log_rho_k=np.log(q.rho_k), log_odds_s=odds_s, log_odds_0=odds_0, limits=limits)


def gap_and_gradient(x, bound):
    """The gap and its forward differences, all 48 in one batch."""
    step = 1e-6
    values = gaps(np.vstack([x, x + step * np.eye(FREE)]))[bound]
    return values[0], (values[1:] - values[0]) / step


@pytest.mark.parametrize("bound", ["ratio_lower", "ratio_upper", "margin_lower", "margin_upper", "from_priors"])
def test_adversary_cannot_break_the_bound_but_reaches_it(bound):
    """Minimise the gap over all 3×3×3 models from many starts: it goes to 0 and not below."""
    rng = np.random.default_rng(7)
    found = [
        minimize(gap_and_gradient, rng.normal(size=FREE), args=(bound,), jac=True, method="L-BFGS-B").fun
        for _ in range(12)
    ]
    print(f"adversary on {bound}: least gap {min(found):.3g}")  # noqa: T201
    assert -1e-12 < min(found) < 1e-3


@pytest.mark.parametrize("moved", [0.5, 2.0, 6.0])
def test_adversary_cannot_break_the_bound_of_an_incoherent_likelihood(moved):
    """TV ≤ tanh(spread/4) for four keys whose κ spread over `moved` nats; reached as two keys take all the mass."""
    rng = np.random.default_rng(15)

    def slack(x):
        prior, kappa = softmax(np.clip(x[:4], -30, 30)), np.exp(moved * expit(np.clip(x[4:], -30, 30)))
        tasks, likelihood, says = np.ones((4, 1)), np.ones((4, 1)), np.tile([0.5, 0.5], (4, 1, 1))
        found = KeyTaskModel.from_probabilities(
            prior, tasks, likelihood, says, key_likelihood=kappa, incoherent="rescale"
        )
        assert found.rescaled is not None
        return float(found.rescaled.tv_bound - total_variation(found.posterior().ravel(), prior))

    found = [minimize(slack, rng.normal(size=8), method="Nelder-Mead", options={"maxiter": 800}).fun for _ in range(3)]
    assert -1e-12 < min(found) < 0.02


@pytest.mark.parametrize(
    ("distance", "floor"),
    [
        (total_variation, margin_floor),
        (kl, kl_floor),
        (lambda p, q: kl(q, p), reverse_kl_floor),
        (chi2, chi2_floor),
        (hellinger2, hellinger2_floor),
    ],
    ids=["TV", "KL", "reverse KL", "chi2", "Hellinger"],
)
def test_adversary_cannot_break_the_floors(distance, floor):
    rng = np.random.default_rng(8)

    def gap(x):
        p, q = softmax(np.clip(x[:4], -8, 8)), softmax(np.clip(x[4:], -8, 8))
        return float(distance(p, q) - floor(p[0] - p[1], q[1] - q[0]))

    found = [minimize(gap, rng.normal(size=8), method="Nelder-Mead").fun for _ in range(3)]
    assert -1e-12 < min(found) < 1e-3
