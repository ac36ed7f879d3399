"""Floors of the distance from the target: which checks are identities, which bounds, and what they cannot do."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.keytask import (
    binary_pair,
    chi2,
    chi2_floor,
    end_to_end_floors,
    f_divergence,
    f_divergence_floor,
    four_probability_floor,
    hellinger2,
    hellinger2_floor,
    kl,
    kl_floor,
    margin_floor,
    merge_to_pair,
    parse_case,
    reverse_kl_floor,
    total_variation,
)
from latentkt.keytask.case import check_case
from tests.keytask.exact_models import distribution

DIVERGENCES = {
    "TV": (lambda x: np.abs(x - 1) / 2, 0.5),
    "KL": (lambda x: np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0), np.inf),
    "chi2": (lambda x: (x - 1) ** 2, np.inf),
    "Hellinger": (lambda x: (np.sqrt(x) - 1) ** 2 / 2, 0.5),
    "triangular": (lambda x: (x - 1) ** 2 / (x + 1), 1.0),
    "alpha 3": (lambda x: (x**3 - 1 - 3 * (x - 1)) / 6, np.inf),
}


def pairs(seed, size, answers, *, zeros=True):
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(answers, 0.5), size) for _ in range(2))
    if zeros:
        p, q = (np.where(x < 0.05, 0.0, x) for x in (p, q))
        p, q = (x / x.sum(-1, keepdims=True) for x in (p, q))
    return p, q, p[:, 0] - p[:, 1], q[:, 1] - q[:, 0]


@pytest.mark.parametrize("answers", [2, 3, 6])
@pytest.mark.parametrize("name", DIVERGENCES)
def test_every_f_divergence_keeps_above_its_floor(name, answers):
    f, slope = DIVERGENCES[name]
    p, q, gamma, star = pairs(1, 20_000, answers)
    distance = f_divergence(p, q, f, slope_at_infinity=slope)
    floor = f_divergence_floor(gamma, star, f, slope_at_infinity=slope)
    with np.errstate(invalid="ignore"):
        assert ((distance >= floor - 1e-9 * (1 + floor)) | (distance == floor)).all()
    # attained: the two-answer pair has the same margins
    at = binary_pair(gamma, star)
    with np.errstate(invalid="ignore"):
        assert np.allclose(f_divergence(*at, f, slope_at_infinity=slope), floor, atol=1e-12)
    assert np.allclose(at[0][:, 0] - at[0][:, 1], gamma) and np.allclose(at[1][:, 1] - at[1][:, 0], star)


def test_named_divergences_are_the_f_divergences():
    p, q, gamma, star = pairs(2, 2000, 4, zeros=False)
    for name, named, floor in (
        ("TV", total_variation, margin_floor),
        ("KL", kl, kl_floor),
        ("chi2", chi2, chi2_floor),
        ("Hellinger", hellinger2, hellinger2_floor),
    ):
        f, slope = DIVERGENCES[name]
        assert np.allclose(named(p, q), f_divergence(p, q, f, slope_at_infinity=slope), rtol=1e-9)
        assert np.allclose(floor(gamma, star), f_divergence_floor(gamma, star, f, slope_at_infinity=slope), rtol=1e-9)
    assert np.allclose(reverse_kl_floor(gamma, star), kl(*reversed(binary_pair(gamma, star))))
    g, s = 0.3, 0.4  # the closed forms of the documents
    assert float(kl_floor(g, s)) == pytest.approx(
        (1 + g) / 2 * np.log((1 + g) / (1 - s)) + (1 - g) / 2 * np.log((1 - g) / (1 + s))
    )
    assert float(hellinger2_floor(g, s)) == pytest.approx(
        1 - (np.sqrt((1 + g) * (1 - s)) + np.sqrt((1 - g) * (1 + s))) / 2
    )
    assert chi2_floor(g, s) == pytest.approx((g + s) ** 2 / (1 - s**2))


def test_entropic_floors_to_sixty_digits():
    """KL and Hellinger of exact rationals: no slack below 0 even where floats would show some."""
    rng = Random(3)
    for _ in range(300):
        size = rng.randint(2, 4)
        p, q = distribution(rng, size), distribution(rng, size)
        out = check_case(parse_case({"P": [str(x) for x in p], "Q": [str(x) for x in q]}))
        for distance, floor in (
            ("kl_P_Q_nats", "kl_floor_nats"),
            ("kl_Q_P_nats", "reverse_kl_floor_nats"),
            ("hellinger2_decimal", "hellinger2_floor_decimal"),
        ):
            with localcontext() as context:
                context.prec = 60
                assert Decimal(out[distance]) >= Decimal(out[floor]) * (1 - Decimal("1e-16"))
                if size == 2:
                    assert out[distance] == out[floor]
        assert out["chi2_P_Q"] == "inf" or Fraction(out["chi2_P_Q"]) >= Fraction(out["chi2_floor"])


def test_four_probabilities_give_the_sharper_floor():
    p, q, gamma, star = pairs(4, 20_000, 4)
    four = four_probability_floor(p[:, 0], p[:, 1], q[:, 0], q[:, 1])
    assert (margin_floor(gamma, star) <= four + 1e-12).all() and (four <= total_variation(p, q) + 1e-12).all()
    three = [np.stack([x[:, 0], x[:, 1], x[:, 2:].sum(-1)], axis=-1) for x in (p, q)]
    assert np.allclose(four, total_variation(*three))
    # it can be more than twice the margin floor although both margins are positive
    p, q = [0.5, 0.45, 0.05], [0.0, 0.3, 0.7]
    assert four_probability_floor(0.5, 0.45, 0.0, 0.3) == pytest.approx(0.65) == pytest.approx(total_variation(p, q))
    assert margin_floor(0.05, 0.3) == pytest.approx(0.175)


def test_the_floor_is_no_evidence():
    """It holds where the paper's premises fail: no dominance, negative margins, P = P* apart from a third answer."""
    assert margin_floor(-0.2, 0.6) == pytest.approx(0.2)
    assert margin_floor(-0.6, 0.6) == 0
    assert margin_floor(Fraction(-1), Fraction(-1)) == 1


def test_floors_at_the_ends():
    assert float(kl_floor(0.5, 1.0)) == np.inf and float(kl_floor(-1.0, 1.0)) == 0
    assert float(chi2_floor(0.5, 1.0)) == np.inf and chi2_floor(Fraction(-1), Fraction(1)) == 0
    assert float(hellinger2_floor(1.0, 1.0)) == 1 and margin_floor(1.0, 1.0) == 1
    assert kl([0.5, 0.5], [1.0, 0.0]) == np.inf and chi2([0.5, 0.5], [1.0, 0.0]) == np.inf
    # near the ends a margin as a float has lost what the whole row still has
    p, q = np.array([1 - 1e-12, 1e-12, 0.0]), np.array([1e-12, 1 - 1e-12, 0.0])
    rows = [merge_to_pair(x, y_s=0, y_0=1) for x in (p, q)]
    assert float(kl(*rows)) == pytest.approx(float(kl(p, q)), rel=1e-12)


def test_end_to_end_floors_hold_for_every_margin_above_the_certificate():
    rng = np.random.default_rng(5)
    lower, star = rng.uniform(-1, 1, (2, 20_000))
    gamma = lower + (1 - lower) * rng.random(20_000)
    floors = end_to_end_floors(lower, star)
    at = {
        "total_variation": margin_floor,
        "kl": kl_floor,
        "reverse_kl": reverse_kl_floor,
        "chi2": chi2_floor,
        "hellinger2": hellinger2_floor,
    }
    for name, floor in at.items():
        assert (getattr(floors, name) <= floor(gamma, star) + 1e-12).all()
        assert (getattr(floors, name) >= 0).all()
    open_ = lower > -star
    assert (floors.total_variation[open_] > 0).all() and (floors.total_variation[~open_] == 0).all()
    assert float(end_to_end_floors(0.3, 0.5).total_variation) == pytest.approx(0.4)
    assert float(end_to_end_floors(-0.2, 0.5).total_variation) == pytest.approx(
        0.15
    )  # a negative certificate still says


def test_bad_margins_and_probabilities_are_refused():
    for call in (
        lambda: margin_floor(1.5, 0),
        lambda: kl_floor(np.array([0.0, np.nan]), 0.0),
        lambda: chi2_floor(0, -2),
    ):
        with pytest.raises(InputError, match=r"gamma(_star)?(\[1\])? is no margin"):
            call()
    with pytest.raises(InputError, match="negative"):
        four_probability_floor(0.7, 0.7, 0.1, 0.1)
