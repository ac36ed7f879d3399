"""Random exact models, against every identity and every bound."""

from __future__ import annotations

import secrets
from collections import Counter
from random import Random

import pytest

from tests.keytask.exact_models import check_case, random_case

# Of so many models in a thousand at least each claim must have had something to say, or the test says too little.
LEAST = {
    "models": 1000,
    "identity": 300,
    "R_range": 800,
    "mass_forms": 500,
    "ratio_bounds": 900,
    "margin_bounds": 1000,
    "certificate": 500,
    "threshold": 400,
    "certified": 20,
    "from_priors": 250,
    "printed_fails": 200,
    "printed_needs_hold": 4,
    "critical": 80,
    "floors": 1000,
    "margin_floors": 400,
    "floats": 1000,
    "float_terms_sum": 250,
}


def run(seed: int, models: int) -> Counter[str]:
    rng = Random(seed)
    seen: Counter[str] = Counter()
    for number in range(models):
        model, paths = random_case(rng)
        try:
            seen.update(check_case(model, paths, rng))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, model {number}: {paths} of {model}") from error
    print(f"seed {seed}: {models} models, no violation; claims that applied: {dict(sorted(seen.items()))}")  # noqa: T201
    return seen


def enough(seen: Counter[str]) -> None:
    few = {name: seen[name] for name, least in LEAST.items() if seen[name] * 1000 < least * seen["models"]}
    assert not few, f"too few models for {few} of {seen['models']}"


def test_three_thousand_models_of_a_fixed_seed():
    enough(run(20260701, 3000))


def test_three_thousand_models_of_a_new_seed():
    seed = secrets.randbits(32)
    print(f"new seed: {seed}")  # noqa: T201
    enough(run(seed, 3000))


def test_a_seed_that_drew_a_shared_key_without_mass():
    """Every term is finite there, and yet neither answer can be given: the log-odds are NaN."""
    run(3031619681, 1721)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_hundred_thousand_models(seed):
    enough(run(seed, 12_500))
