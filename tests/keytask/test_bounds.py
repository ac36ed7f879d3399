"""The bounds: equality cases, boxes, and that certificates are not empty."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit

from latentkt.errors import InputError
from latentkt.keytask import (
    Caps,
    KeyTaskModel,
    Limits,
    Masses,
    PathPair,
    certify,
    certify_same_key,
    decompose,
    dominance_threshold,
    margin_bounds,
    margin_certificate,
    ratio_bounds,
    threshold_odds,
)
from latentkt.keytask.certificate import brackets

PATHS = PathPair(k_s=1, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1)
CAPS = ("B_0", "B_s", "C_1", "C_2", "U_1", "U_2")


def random_limits(rng, size, **more):
    numbers = rng.random((5, size))
    return Limits(
        alpha_s=numbers[0],
        alpha_0=numbers[1],
        B_0=numbers[2] * (1 - numbers[0]),
        C_1=numbers[3],
        C_2=numbers[4],
        eps_k=rng.random(size) * 0.3,
        eps_t_s=rng.random(size) * 0.3,
        eps_t_0=rng.random(size) * 0.3,
        **more,
    )


def equality_model(kappa, tau_s, tau_0, limits):
    """A model that meets every cap, says y_s on the shortcut path alone and y* with all mass outside the pair."""
    m = limits
    keys = [(1 - m.eps_k) * (1 - kappa), (1 - m.eps_k) * kappa, m.eps_k]
    tasks = [
        [(1 - m.eps_t_0) * tau_0, (1 - m.eps_t_0) * (1 - tau_0), m.eps_t_0],
        [(1 - m.eps_t_s) * (1 - tau_s), (1 - m.eps_t_s) * tau_s, m.eps_t_s],
        [1.0, 0.0, 0.0],
    ]
    other = [0.0, 1.0, 0.0]
    says = [
        [[0, m.alpha_0, 1 - m.alpha_0], [0, m.C_2, 1 - m.C_2], other],
        [[0, m.C_1, 1 - m.C_1], [m.alpha_s, m.B_0, 1 - m.alpha_s - m.B_0], other],
        [other] * 3,
    ]
    return KeyTaskModel.from_probabilities(keys, tasks, np.ones((3, 3)), says)


@pytest.mark.parametrize("seed", range(5))
def test_lower_bounds_are_attained(seed):
    rng = np.random.default_rng(seed)
    kappa, tau_s, tau_0 = rng.random(3)
    limits = Limits(
        **{f: float(getattr(random_limits(rng, 1), f)[0]) for f in ("alpha_s", "alpha_0", "C_1", "C_2")}, B_0=0
    )
    limits = Limits(
        alpha_s=limits.alpha_s,
        alpha_0=limits.alpha_0,
        B_0=(1 - limits.alpha_s) * rng.random(),
        C_1=limits.C_1,
        C_2=limits.C_2,
        eps_k=rng.random() * 0.2,
        eps_t_s=rng.random() * 0.2,
        eps_t_0=rng.random() * 0.2,
    )
    q = decompose(equality_model(kappa, tau_s, tau_0, limits), PATHS).quantities
    assert abs(float(q.gamma) - margin_certificate(kappa, tau_s, tau_0, limits)) < 1e-9
    point = certify(log_rho_k=logit(kappa), log_odds_s=logit(tau_s), log_odds_0=logit(tau_0), limits=limits)
    assert abs(float(q.gamma) - float(point.gamma_lower)) < 1e-9
    confident = {"alpha_s": limits.alpha_s, "alpha_0": limits.alpha_0}
    caps = Caps(B_0=limits.B_0, B_s=0, C_1=limits.C_1, C_2=limits.C_2, U_1=0, U_2=0)
    assert abs(float(np.log(q.ratio / ratio_bounds(q.masses, **confident, caps=caps).lower))) < 1e-9


def test_upper_bounds_are_attained():
    """The lower ones with the roles of the two paths swapped."""
    limits = Limits(alpha_s=0.8, alpha_0=0.7, B_0=0.1, C_1=0.3, C_2=0.2, eps_k=0.1, eps_t_s=0.05, eps_t_0=0.02)
    swapped = PathPair(k_s=0, t_s=0, k_0=1, t_0=1, y_s=1, y_0=0)
    q = decompose(equality_model(0.6, 0.5, 0.4, limits), swapped).quantities
    e = q.emissions
    confident, caps = {"alpha_s": e.alpha_s, "alpha_0": e.alpha_0}, Caps.own(e)
    assert abs(float(q.gamma - margin_bounds(q.masses, **confident, caps=caps).upper)) < 1e-9
    assert abs(float(np.log(q.ratio / ratio_bounds(q.masses, **confident, caps=caps).upper))) < 1e-9


def logit(p):
    return float(np.log(p) - np.log1p(-p))


def test_adversary_inside_the_box_reaches_the_certificate():
    """The certificate of a box is the least margin of any model in it: reached at a vertex, by equality models."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        limits = Limits(
            alpha_s=rng.random(),
            alpha_0=rng.random(),
            B_0=0,
            C_1=rng.random(),
            C_2=rng.random(),
            eps_k=0.1 * rng.random(),
            delta_k=rng.random(),
            delta_t=rng.random(),
        )
        boxes = [np.sort(rng.normal(size=2)) for _ in range(3)]
        found = float(certify(**boxed(boxes), limits=limits).gamma_lower)
        wide = [limits.delta_k, limits.delta_t, limits.delta_t]
        ends = [expit([low - w, high + w]) for (low, high), w in zip(boxes, wide, strict=True)]
        reached = [
            float(decompose(equality_model(k, s, z, limits), PATHS).quantities.gamma)
            for k, s, z in itertools.product(*ends)
        ]
        assert found == pytest.approx(min(reached), abs=1e-9)
        inside = [rng.uniform(*end, size=200) for end in ends]
        assert (margin_certificate(*inside, limits) >= found - 1e-12).all()


def boxed(boxes):
    return dict(zip(("log_rho_k", "log_odds_s", "log_odds_0"), map(tuple, boxes), strict=True))


def test_closed_form_is_the_least_of_eight_vertices():
    rng = np.random.default_rng(10)
    size = 20_000
    limits = random_limits(rng, size, delta_k=rng.random(size), delta_t=rng.random(size))
    boxes = [np.sort(rng.normal(size=(2, size)) * 2, axis=0) for _ in range(3)]
    wide = [limits.delta_k, limits.delta_t, limits.delta_t]
    ends = [(expit(low - w), expit(high + w)) for (low, high), w in zip(boxes, wide, strict=True)]
    vertices = [margin_certificate(*corner, limits) for corner in itertools.product(*ends)]
    found = certify(**boxed(boxes), limits=limits)
    assert np.allclose(found.gamma_lower, np.min(vertices, axis=0), atol=1e-14)
    # each limit at its worst: no model inside the limits does worse
    assert (found.margin > 0)[found.certified].all()
    assert np.array_equal(np.isneginf(found.margin), found.saturated)


def test_certificate_falls_in_every_limit():
    rng = np.random.default_rng(11)
    size = 2000
    limits = random_limits(rng, size, delta_k=rng.random(size), delta_t=rng.random(size))
    boxes = boxed([np.sort(rng.normal(size=(2, size)), axis=0) for _ in range(3)])
    here = certify(**boxes, limits=limits).gamma_lower
    fields = {f: getattr(limits, f) for f in limits.__slots__}
    for name, value in fields.items():
        worse = (
            value * 0.9 if name == "alpha_s" else value + (0.1 * (1 - value) if not name.startswith("delta") else 0.1)
        )
        after = certify(**boxes, limits=Limits(**fields | {name: worse})).gamma_lower
        assert (after <= here + 1e-12).all() and (after < here).any(), name


def test_threshold_is_the_sign_of_the_certificate():
    rng = np.random.default_rng(12)
    size = 5000
    limits = random_limits(rng, size)
    tau_s, tau_0 = rng.random((2, size))
    threshold = dominance_threshold(tau_s, tau_0, limits)
    a, b = brackets(tau_s, tau_0, limits)
    assert np.allclose(np.exp(threshold), threshold_odds(a, b, limits.eps_k))
    saturated = np.isposinf(threshold)
    assert 0.1 < saturated.mean() < 0.9
    for nudge, sign in ((1e-6, 1), (-1e-6, -1)):
        found = margin_certificate(
            expit(threshold[~saturated] + nudge), tau_s[~saturated], tau_0[~saturated], take(limits, ~saturated)
        )
        assert (np.sign(found) == sign).all()
    assert (margin_certificate(expit(np.full(size, 700.0)), tau_s, tau_0, limits)[saturated] < 0).all()


def take(limits, mask):
    return Limits(
        **{f: getattr(limits, f)[mask] if np.ndim(getattr(limits, f)) else getattr(limits, f) for f in limits.__slots__}
    )


def test_threshold_of_a_silent_prompt_is_the_within_pair_ratio():
    """Leak-free and mixed-free: dominance is certified when log rho_k + log π~_s − log π~_0 + log α_s/α_0 ≥ 0."""
    limits = Limits(alpha_s=0.6, alpha_0=0.9, B_0=0, C_1=0, C_2=0)
    expected = -(np.log(0.7) - np.log(0.2) + np.log(0.6 / 0.9))
    assert float(dominance_threshold(0.7, 0.2, limits)) == pytest.approx(expected, abs=1e-12)
    # the worst of an interval is its lower end for the shortcut's task and its upper end for the correct one
    assert float(dominance_threshold((0.7, 0.9), (0.1, 0.2), limits)) == pytest.approx(expected, abs=1e-12)
    moved = Limits(alpha_s=0.6, alpha_0=0.9, B_0=0, C_1=0, C_2=0, delta_k=0.25)
    assert float(dominance_threshold(0.7, 0.2, moved)) == pytest.approx(expected + 0.25, abs=1e-12)


def test_saturation_by_blindness():
    """Knowing the confidences alone, with the shortcut task rare given its key, no prior ratio certifies anything."""
    found = certify(log_rho_k=50.0, log_odds_s=-1.0, log_odds_0=0.0, limits=Limits.blind(alpha_s=0.9, alpha_0=0.9))
    assert bool(found.saturated) and not bool(found.certified) and float(found.margin) == -np.inf
    assert float(found.threshold) == np.inf and float(found.gamma_lower) < 0


def test_same_key_and_same_task_modes():
    rng = np.random.default_rng(13)
    limits = Limits(alpha_s=0.9, alpha_0=0.8, B_0=0.05, C_1=0, C_2=0, eps_k=0.02, eps_t_s=0.03)
    tau = 0.8
    keys, tasks = [0.98, 0.02], [0.97 * (1 - tau), 0.97 * tau, 0.03]
    other = [0, 1.0, 0]
    says = [[[0, 0.8, 0.2], [0.9, 0.05, 0.05], other], [other] * 3]
    model = KeyTaskModel.from_probabilities(keys, [tasks, [1, 0, 0]], np.ones((2, 3)), says)
    paths = PathPair(k_s=0, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1)
    gamma = float(decompose(model, paths).quantities.gamma)
    found = certify_same_key(log_odds=logit(tau), limits=limits)
    assert float(found.gamma_lower) == pytest.approx(gamma, abs=1e-12)  # an equality case
    at = certify_same_key(log_odds=float(found.threshold), limits=limits)
    assert float(at.gamma_lower) == pytest.approx(0, abs=1e-12)
    assert float(found.margin) == pytest.approx(logit(tau) - float(found.threshold))
    # delta_t widens the interval of the task odds by as much
    wide = certify_same_key(
        log_odds=logit(tau), limits=Limits(**{f: getattr(limits, f) for f in limits.__slots__[:-1]}, delta_t=0.5)
    )
    assert float(wide.gamma_lower) == pytest.approx(
        float(certify_same_key(log_odds=logit(tau) - 0.5, limits=limits).gamma_lower)
    )
    assert float(wide.margin) == pytest.approx(float(found.margin) - 0.5)
    same_task = certify(log_rho_k=1.0, log_odds_s=np.inf, log_odds_0=np.inf, limits=random_scalar(rng))
    assert np.isfinite(same_task.gamma_lower)
    silent = Limits(alpha_s=1, alpha_0=1, B_0=0, C_1=0, C_2=0)
    found = certify(log_rho_k=np.log(2 / 3), log_odds_s=np.inf, log_odds_0=np.inf, limits=silent)
    assert float(found.gamma_lower) == pytest.approx(-1 / 5)  # the same-task case of the golden file


def random_scalar(rng):
    return Limits(alpha_s=rng.random(), alpha_0=rng.random(), B_0=0, C_1=rng.random(), C_2=rng.random())


def regime(rng, size, n_keys, n_tasks, *, concentration, mixed=1.0):
    likelihood = np.full((n_keys, n_tasks), 1e-4)
    likelihood[:2, :2] = [[1.0, mixed], [mixed, 1.0]]
    return KeyTaskModel.from_probabilities(
        rng.dirichlet(np.ones(n_keys), size),
        rng.dirichlet(np.ones(n_tasks), (size, n_keys)),
        likelihood,
        rng.dirichlet(np.full(3, concentration), (size, n_keys, n_tasks)),
    )


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_a_fifth_of_dominated_models_is_certified(shape):
    """Off-path likelihood 1e-4, flat within the pair, emissions from Dirichlet(1/2): certificates are not empty."""
    rng = np.random.default_rng(14)
    shares = {}
    for label, options in {
        "Dirichlet(1/2) emissions": {"concentration": 0.5},
        "Dirichlet(1) emissions": {"concentration": 1.0},
        "mixed paths off as well": {"concentration": 0.5, "mixed": 1e-4},
    }.items():
        q = decompose(regime(rng, 20_000, *shape, **options), PATHS).quantities
        e = q.emissions
        lower = margin_bounds(q.masses, alpha_s=e.alpha_s, alpha_0=e.alpha_0, caps=Caps.own(e)).lower
        assert (lower <= q.gamma + 1e-12).all()
        shares[label] = float((lower > 0)[q.gamma > 0].mean())
    print(f"K, T = {shape}: certified among dominated: { ({k: round(v, 3) for k, v in shares.items()}) }")  # noqa: T201
    assert shares["Dirichlet(1/2) emissions"] >= 0.20
    assert shares["mixed paths off as well"] >= 0.20


def test_bad_limits_and_intervals_are_refused():
    good = {"alpha_s": 0.5, "alpha_0": 0.5, "B_0": 0.1, "C_1": 0.1, "C_2": 0.1}
    limits = Limits(**good)
    for name, value, found in (
        ("alpha_s", 1.5, "1.5"),
        ("eps_k", -0.1, "-0.1"),
        ("C_1", np.array([0.1, np.nan]), "nan"),
    ):
        with pytest.raises(InputError) as caught:
            Limits(**good | {name: value})
        assert name in str(caught.value) and found in str(caught.value)
    with pytest.raises(InputError, match="delta_k is no departure"):
        Limits(**good | {"delta_k": -1.0})
    with pytest.raises(InputError, match=r"log_rho_k\[1\] is no interval[\s\S]*\(3.0, 2.0\)"):
        certify(log_rho_k=(np.array([0.0, 3.0]), 2.0), log_odds_s=0.0, log_odds_0=0.0, limits=limits)
    with pytest.raises(InputError, match="log_odds_s is no interval"):
        certify(log_rho_k=0.0, log_odds_s=np.nan, log_odds_0=0.0, limits=limits)
    with pytest.raises(InputError, match="no interval"):
        certify(log_rho_k=(0.0, 1.0, 2.0), log_odds_s=0.0, log_odds_0=0.0, limits=limits)
    with pytest.raises(InputError, match="tau_s"):
        margin_certificate(0.5, 1.5, 0.5, limits)
    with pytest.raises(InputError, match="B_0"):
        Caps(B_0=2, B_s=0, C_1=0, C_2=0, U_1=0, U_2=0)
    masses = Masses(*map(Fraction, ("1/2", "1/4", "0", "0", "1/4")))
    caps = Caps.blind(alpha_s=Fraction(1, 2), alpha_0=Fraction(1, 2))
    for function in (ratio_bounds, margin_bounds):
        with pytest.raises(InputError, match="alpha_0"):
            function(masses, alpha_s=Fraction(1, 2), alpha_0=Fraction(3, 2), caps=caps)


def test_unbounded_intervals_are_legal():
    """Zero counts give one-sided intervals; the certificate is then that of the end that is known."""
    limits = Limits(alpha_s=0.9, alpha_0=0.9, B_0=0, C_1=0, C_2=0)
    one_sided = certify(log_rho_k=(1.0, np.inf), log_odds_s=(0.0, np.inf), log_odds_0=(-np.inf, 0.0), limits=limits)
    point = certify(log_rho_k=1.0, log_odds_s=0.0, log_odds_0=0.0, limits=limits)
    assert float(one_sided.gamma_lower) == pytest.approx(float(point.gamma_lower), abs=1e-15)
    nothing = certify(log_rho_k=(-np.inf, np.inf), log_odds_s=0.0, log_odds_0=0.0, limits=limits)
    assert float(nothing.margin) == -np.inf and not bool(nothing.certified)
