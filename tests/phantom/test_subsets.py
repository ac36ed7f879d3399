"""Stratified samples: equal strata as far as there is room, the same for the same seed, real ones beside them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentkt.errors import DataError, InputError
from latentkt.phantom import SUBSETS, Concept, Subset, comparison, sample_stratified, sample_subset
from latentkt.phantom.making import share_out
from latentkt.phantom.subsets import fill_equally


def made(category, n, kind="term", existence="phantom"):
    method = "recombined" if kind == "term" else "pattern"
    for number in range(n):
        one = Concept.make(f"{category} {number}", kind=kind, category=category, parents=["p"], method=method)
        yield replace(one, existence=existence)


def real(category, counts, existence):
    for number, count in enumerate(counts):
        one = Concept.make(f"real {category} {existence} {number}", kind="term", category=category)
        yield replace(one, existence=existence, search={"matches": count})


@given(st.integers(1, 60), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 20), min_size=1))
def test_shares_are_as_equal_as_the_room_allows(size, room):
    shares = fill_equally(size, room)
    assert sum(shares.values()) == min(size, sum(room.values()))
    assert all(shares[name] <= room[name] for name in room)
    full = max((shares[name] for name in room if shares[name] == room[name]), default=0)
    open_shares = [shares[name] for name in room if shares[name] < room[name]]
    if open_shares:
        assert max(open_shares) - min(open_shares) <= 1 and min(open_shares) >= full - 1


@given(st.integers(1, 100), st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_shares_in_proportion_add_up(total, weights):
    shares = share_out(total, weights)
    assert sum(shares) == total
    assert all(abs(share - total * w / sum(weights)) < 1 for share, w in zip(shares, weights, strict=True))


def test_the_papers_subsets():
    concepts = [
        *made("disease", 900),
        *made("domain_law", 3000),
        *made("optics", 700),
        *made("festival", 2000, "entity"),
    ]
    sizes = {name: Counter(c.category for c in sample_subset(concepts, name)) for name in SUBSETS}
    assert sizes["T"] == {"disease": 354, "domain_law": 353, "optics": 353}
    assert sizes["E"] == {"festival": 1200}
    assert sizes["Med"] == {"disease": 900} and sizes["Legal"] == {"domain_law": 1000}
    assert len(sample_subset(concepts, Subset("term", 7, ("opt",)))) == 7
    assert len(sample_subset(concepts, "T", size=5)) == 5


def test_only_verified_made_concepts_are_taken():
    concepts = [*made("law", 5, existence="unverified"), *real("law", [3], "rare")]
    with pytest.raises(DataError, match="no concept for the subset Legal"):
        sample_subset(concepts, "Legal")
    with pytest.raises(InputError, match="unknown subset"):
        sample_subset(concepts, "X")
    with pytest.raises(InputError, match="size"):
        sample_stratified(list(made("law", 5)), 0)


def test_draws_by_seed_whatever_the_order():
    concepts = [*made("a", 40), *made("b", 40)]
    one = sample_stratified(concepts, 20, seed=1)
    shuffled = random.Random(0).sample(concepts, len(concepts))
    assert sample_stratified(shuffled, 20, seed=1) == one
    assert sample_stratified(concepts, 20, seed=2) != one
    drawn = Counter(c.id for seed in range(200) for c in sample_stratified(concepts, 20, seed=seed))
    assert len(drawn) == 80 and max(drawn.values()) < 90  # 50 each


def test_real_ones_beside_a_subset():
    subset = [*made("law", 2), *made("optics", 3)]
    pool = [
        *real("law", [900, 500, 700, 800], "common"), *real("law", [9, 1, 3], "rare"), *real("optics", [15], "rare"),
        *real("music", [2], "rare"), *real("law", [0] * 6, "unattested"),
    ]  # fmt: skip
    assert [c.search["matches"] for c in comparison(pool, subset, "common")] == [900, 800]
    assert [c.search["matches"] for c in comparison(pool, subset, "rare")] == [1, 3, 15]
    draws = {tuple(c.id for c in comparison(pool, subset, "unattested", seed=seed)) for seed in range(20)}
    assert len(draws) > 5
    with pytest.raises(DataError, match="no real concept that is between"):
        comparison(pool, subset, "between")
