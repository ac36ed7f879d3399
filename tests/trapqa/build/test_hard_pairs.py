from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.errors import InputError
from latentkt.trapqa.build import hard_pairs as module
from latentkt.trapqa.build.hard_pairs import hard_pairs, wanted_pairs


def slow(vectors: np.ndarray, tags: np.ndarray) -> dict[tuple[int, int], float]:
    """Equation 1, pair by pair."""
    median = float(np.median(tags))
    scores = {}
    for a in range(len(tags)):
        for b in range(a + 1, len(tags)):
            cosine = vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b])
            m = min(tags[a], tags[b])
            scores[a, b] = float(cosine * m / (m + median))
    return scores


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 40), top=st.integers(1, 900), seed=st.integers(0, 10**6), block=st.sampled_from([1, 3, 16, 512])
)
def test_equal_to_the_slow_way(n: int, top: int, seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, tags = rng.normal(size=(n, 5)), rng.integers(1, 12, size=n)
    reference = slow(vectors, tags)
    kept, module._BLOCK = module._BLOCK, block
    try:
        found = hard_pairs(vectors, tags, top=top)
    finally:
        module._BLOCK = kept
    assert len(found) == min(top, len(reference)) and found.n_pairs == len(reference)
    assert found.median_tags == np.median(tags)
    np.testing.assert_allclose(found.score, sorted(reference.values(), reverse=True)[:top], atol=1e-5)
    for a, b, score in zip(found.first, found.second, found.score, strict=True):
        assert a < b and reference[int(a), int(b)] == pytest.approx(score, abs=1e-5)
    assert len(set(zip(found.first.tolist(), found.second.tolist(), strict=True))) == len(found)


def test_no_pair_is_lost_where_the_first_block_has_one_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A star: the first row has the best eight pairs, and the ninth is below all of them."""
    monkeypatch.setattr(module, "_BLOCK", 1)
    found = hard_pairs(np.vstack([np.ones(8), np.eye(8)]), np.full(9, 3), top=9)
    assert len(found) == 9 and (found.first[8], found.second[8], found.score[8]) == (1, 2, 0.0)


def test_ties_are_cut_in_the_order_of_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for block in (2, 7, 512):
        monkeypatch.setattr(module, "_BLOCK", block)
        found = hard_pairs(np.ones((12, 3)), np.full(12, 4), top=9)
        results.append(list(zip(found.first.tolist(), found.second.tolist(), strict=True)))
    assert results[0] == results[1] == results[2] == [(0, b) for b in range(1, 10)]


def test_sparse_profiles_are_held_down() -> None:
    found = hard_pairs(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.2], [1.0, 0.2]]), np.array([1, 1, 7, 7]), top=1)
    assert (found.first[0], found.second[0]) == (2, 3)
    assert found.score[0] == pytest.approx(7 / 11) and found.cosine[0] == pytest.approx(1.0)


def test_how_many() -> None:
    assert wanted_pairs(9090, fraction=1e-4) == 4131  # the paper prints 2,958 for the same fraction
    assert wanted_pairs(9090, fraction=2957.5 / 41_309_505) == 2958
    assert wanted_pairs(3, top=10) == 3
    for bad in ({}, {"top": 1, "fraction": 0.1}, {"fraction": 0.0}, {"fraction": 1.1}, {"top": 0}):
        with pytest.raises(InputError):
            wanted_pairs(10, **bad)
    with pytest.raises(InputError, match="two usable"):
        wanted_pairs(1, top=1)
    with pytest.raises(InputError, match="do not fit"):
        hard_pairs(np.ones((3, 2)), np.array([0, 1, 1]), top=1)
