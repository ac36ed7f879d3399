"""The model in log space: batches, zeros, extremes, coherence, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.keytask import (
    Caps,
    IncoherentLikelihoodError,
    KeyTaskModel,
    PathPair,
    decompose,
    margin_bounds,
    printed_theorem,
    ratio_bounds,
)

PATHS = PathPair(k_s=1, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1)
PRIOR_KEY = [0.25, 0.75]
PRIOR_TASK = [[0.3, 0.7], [0.2, 0.8]]
FLAT = [[1.0, 1.0], [1.0, 1.0]]
SAYS = [[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]


def random_arrays(rng, *batch, n_keys=3, n_tasks=3, n_answers=4):
    return (
        rng.dirichlet(np.ones(n_keys), batch),
        rng.dirichlet(np.ones(n_tasks), (*batch, n_keys)),
        rng.random((*batch, n_keys, n_tasks)),
        rng.dirichlet(np.ones(n_answers), (*batch, n_keys, n_tasks)),
    )


def test_batch_equals_one_by_one():
    arrays = random_arrays(np.random.default_rng(0), 5, 4)
    batch = decompose(KeyTaskModel.from_probabilities(*arrays), PATHS)
    assert batch.dominance.shape == (5, 4)
    for index in np.ndindex(5, 4):
        alone = decompose(KeyTaskModel.from_probabilities(*(a[index] for a in arrays)), PATHS)
        for name, values in batch.terms.items():
            assert values[index] == pytest.approx(float(alone.terms[name]), abs=1e-13)
        for name, values in batch.quantities.flat().items():
            assert np.broadcast_to(values, (5, 4))[index] == pytest.approx(
                float(alone.quantities.flat()[name]), rel=1e-12
            )


def test_leading_axes_broadcast():
    """One prior, many prompts: the prior has no batch axis."""
    rng = np.random.default_rng(1)
    prior_key, prior_task, _, emission = random_arrays(rng)
    likelihood = rng.random((7, 3, 3))
    many = decompose(KeyTaskModel.from_probabilities(prior_key, prior_task, likelihood, emission), PATHS)
    assert many.dominance.shape == (7,) and all(term.shape == (7,) for term in many.terms.values())
    one = decompose(KeyTaskModel.from_probabilities(prior_key, prior_task, likelihood[3], emission), PATHS)
    assert many.dominance[3] == pytest.approx(float(one.dominance), abs=1e-14)


def test_a_thousand_random_batches_sum_to_the_dominance():
    rng = np.random.default_rng(2)
    found = decompose(KeyTaskModel.from_probabilities(*random_arrays(rng, 20_000)), PATHS)
    assert np.abs(sum(found.terms.values()) - found.dominance).max() < 1e-12
    p = KeyTaskModel.from_probabilities(*random_arrays(np.random.default_rng(2), 20_000)).predictive()
    assert np.allclose(found.dominance, np.log(p[:, 0] / p[:, 1]), atol=1e-12)
    assert np.allclose(p.sum(axis=-1), 1, atol=1e-14)


@pytest.mark.parametrize("seed", [3, 4])
def test_zeros_never_make_a_nan_of_what_exists(seed):
    """Posterior, predictive, margin, dominance and bounds are numbers whatever masses are zero."""
    rng = np.random.default_rng(seed)
    arrays = [np.where(rng.random(a.shape) < 0.4, 0.0, a) for a in random_arrays(rng, 4000, n_answers=3)]
    for i in (0, 1, 3):
        empty = arrays[i].sum(axis=-1) == 0
        arrays[i][empty] = np.eye(arrays[i].shape[-1])[0]
        arrays[i] /= arrays[i].sum(axis=-1, keepdims=True)
    possible = (arrays[0][..., None] * arrays[1] * arrays[2]).sum(axis=(-2, -1)) > 0
    model = KeyTaskModel.from_probabilities(*(a[possible] for a in arrays))
    found = decompose(model, PATHS)
    q, e = found.quantities, found.quantities.emissions
    for name in ("log_posterior", "log_predictive"):
        assert not np.isnan(getattr(model, name)()).any()
    confident = {"alpha_s": e.alpha_s, "alpha_0": e.alpha_0}
    for caps in (Caps.own(e), Caps.blind(**confident)):
        for bounds in (ratio_bounds(q.masses, **confident, caps=caps), margin_bounds(q.masses, **confident, caps=caps)):
            assert not np.isnan(bounds.lower).any() and not np.isnan(bounds.upper).any()
    for name in ("gamma", "Ps", "P0", "eps_k"):
        assert not np.isnan(getattr(q, name)).any()
    silent = (q.Ps == 0) & (q.P0 == 0)
    assert np.array_equal(np.isnan(found.dominance), silent)  # 0/0 does not exist, and nothing else is NaN
    assert found.undefined().get("key_prior_ratio", 0) == int(((model.log_prior_key[:, :2]) == -np.inf).all(-1).sum())
    printed = printed_theorem(q)
    assert not np.isnan(found.terms["off_key_paths"][(q.from_s.own > 0) & (q.from_0.own > 0)]).any()
    stated = ~silent & ~np.isnan(printed.bound)
    assert printed.bound_holds.dtype == bool
    assert not (printed.all_needs_hold & ~printed.bound_holds)[stated].any()


def test_log_space_reaches_where_floats_end():
    """A path 2,000 nats below the other still has its log-odds."""
    tiny = np.array([[0.0, 0.0], [0.0, -2000.0]])
    with np.errstate(divide="ignore"):
        model = KeyTaskModel.from_logs(np.log(PRIOR_KEY), np.log(PRIOR_TASK), tiny, np.log(np.array(SAYS)))
    found = decompose(model, PATHS)
    assert float(found.dominance) == pytest.approx(np.log(8) - 2000, abs=1e-9)
    assert sum(found.terms.values()) == pytest.approx(float(found.dominance), abs=1e-9)


def test_likelihood_scale_is_free():
    rng = np.random.default_rng(5)
    arrays = random_arrays(rng, 3)
    one = decompose(KeyTaskModel.from_probabilities(*arrays), PATHS)
    other = decompose(KeyTaskModel.from_probabilities(arrays[0], arrays[1], arrays[2] * 1e-30, arrays[3]), PATHS)
    assert np.allclose(one.dominance, other.dominance, atol=1e-10)


INCOHERENT = ([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[1.0, 1.0], [0.1, 0.1]], SAYS)


def test_incoherent_key_likelihood_is_refused_with_its_spread():
    with pytest.raises(IncoherentLikelihoodError) as caught:
        KeyTaskModel.from_probabilities(*INCOHERENT, key_likelihood=[1.0, 1.0])
    assert caught.value.spread == pytest.approx(np.log(10)) and caught.value.tv_bound == pytest.approx(
        0.5194938532959157
    )
    assert "spread 2.302585" in str(caught.value) and "rescale" in str(caught.value)


def test_incoherent_key_likelihood_is_rescaled_on_request_and_recorded():
    model = KeyTaskModel.from_probabilities(*INCOHERENT, key_likelihood=[1.0, 1.0], incoherent="rescale")
    assert model.posterior().sum(axis=-1).tolist() == pytest.approx([0.5, 0.5])  # the hierarchical posterior of K.1
    assert model.rescaled is not None and float(model.rescaled.spread) == pytest.approx(np.log(10))
    plain = KeyTaskModel.from_probabilities(*INCOHERENT)
    assert plain.posterior()[1].sum() == pytest.approx(1 / 11) and plain.rescaled is None
    assert KeyTaskModel.from_probabilities(*INCOHERENT, key_likelihood=[2.0, 0.2]).rescaled is None


def test_hierarchical_posterior_is_that_of_the_rescaled_likelihood():
    """Appendix K.1, multiplied out, equals the joint posterior of κ(k) L(k, t), and TV keeps within tanh(spread/4)."""
    rng = np.random.default_rng(6)
    prior_key, prior_task, likelihood, says = random_arrays(rng, 5000)
    separate = rng.random((5000, 3)) ** 3
    key = prior_key * separate
    task = prior_task * likelihood
    by_hand = (key / key.sum(-1, keepdims=True))[..., None] * task / task.sum(-1, keepdims=True)
    arrays = (prior_key, prior_task, likelihood, says)
    rescaled = KeyTaskModel.from_probabilities(*arrays, key_likelihood=separate, incoherent="rescale")
    assert np.abs(rescaled.posterior() - by_hand).max() < 1e-12
    joint = KeyTaskModel.from_probabilities(*arrays).posterior()
    distance = np.abs(joint - by_hand).sum(axis=(-2, -1)) / 2
    assert rescaled.rescaled is not None
    assert (distance <= rescaled.rescaled.tv_bound + 1e-12).all()
    # sharp for two keys: prior odds e^(-spread/2)
    spread = 3.0
    odds = np.exp(-spread / 2)
    sharp = KeyTaskModel.from_probabilities(
        [1 / (1 + odds), odds / (1 + odds)],
        PRIOR_TASK,
        FLAT,
        SAYS,
        key_likelihood=[1, np.exp(spread)],
        incoherent="rescale",
    )
    plain = KeyTaskModel.from_probabilities([1 / (1 + odds), odds / (1 + odds)], PRIOR_TASK, FLAT, SAYS)
    moved = np.abs(sharp.posterior() - plain.posterior()).sum() / 2
    assert moved == pytest.approx(np.tanh(spread / 4), abs=1e-12)


def changed(array, index, value):
    out = np.array(array, dtype=float)
    out[index] = value
    return out


BAD = {
    "row of prior_key": ((changed(PRIOR_KEY, 0, 0.3), PRIOR_TASK, FLAT, SAYS), ["prior_key", "1.05"]),
    "row of prior_task": ((PRIOR_KEY, changed(PRIOR_TASK, (1, 0), 0.4), FLAT, SAYS), ["prior_task[1]", "1.2"]),
    "row of emission": ((PRIOR_KEY, PRIOR_TASK, FLAT, changed(SAYS, (1, 0, 0), 0.5)), ["emission[1, 0]", "1.5"]),
    "negative": ((PRIOR_KEY, PRIOR_TASK, changed(FLAT, (0, 1), -2), SAYS), ["likelihood[0, 1]", "negative", "-2"]),
    "NaN": ((PRIOR_KEY, changed(PRIOR_TASK, (0, 1), np.nan), FLAT, SAYS), ["prior_task[0, 1]", "nan"]),
    "infinite": ((PRIOR_KEY, PRIOR_TASK, changed(FLAT, (1, 1), np.inf), SAYS), ["likelihood[1, 1]", "inf"]),
    "shape of tasks": ((PRIOR_KEY, [[0.5, 0.5]], FLAT, SAYS), ["prior_task", "wrong shape", "(1, 2)"]),
    "shape of likelihood": ((PRIOR_KEY, PRIOR_TASK, [[1.0, 1.0, 1.0]] * 2, SAYS), ["likelihood", "(2, 3)"]),
    "shape of emission": ((PRIOR_KEY, PRIOR_TASK, FLAT, [0.5, 0.5]), ["emission", "(2,)"]),
    "leading axes": ((PRIOR_KEY, PRIOR_TASK, np.ones((3, 2, 2)), [SAYS] * 2), ["leading axes", "(3,)", "(2,)"]),
    "ragged": ((PRIOR_KEY, [[0.5, 0.5], [1.0]], FLAT, SAYS), ["prior_task is not an array"]),
    "words": ((["a", "b"], PRIOR_TASK, FLAT, SAYS), ["prior_key is not an array"]),
    "impossible": ((PRIOR_KEY, PRIOR_TASK, np.zeros((2, 2)), SAYS), ["impossible", "likelihood"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arrays_are_refused_by_name_index_and_value(name):
    arrays, words = BAD[name]
    with pytest.raises(InputError) as caught:
        KeyTaskModel.from_probabilities(*arrays)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_bad_logs_are_refused():
    logs = [np.log(np.array(x)) for x in (PRIOR_KEY, PRIOR_TASK, FLAT)]
    with np.errstate(divide="ignore"):
        logs.append(np.log(np.array(SAYS)))
    KeyTaskModel.from_logs(*logs)
    for i, word in ((0, "log_prior_key[1] is nan"), (2, "log_likelihood[0, 1]")):
        broken = [a.copy() for a in logs]
        broken[i][(1,) if i == 0 else (0, 1)] = np.nan if i == 0 else np.inf
        with pytest.raises(InputError, match=r".*".join(map(str, [word.split("[")[0]]))) as caught:
            KeyTaskModel.from_logs(*broken)
        assert word in str(caught.value)
    with pytest.raises(InputError, match=r"log_prior_task.*does not sum to 1"):
        KeyTaskModel.from_logs(logs[0], logs[1] + 0.1, logs[2], logs[3])


def test_bad_paths_are_refused():
    good = {"k_s": 1, "t_s": 1, "k_0": 0, "t_0": 0, "y_s": 0, "y_0": 1}
    with pytest.raises(InputError, match=r"paths are the same[\s\S]*\(0, 0\)"):
        PathPair(**good | {"k_s": 0, "t_s": 0})
    with pytest.raises(InputError, match=r"same answer[\s\S]*y_s = y\* = 1"):
        PathPair(**good | {"y_s": 1})
    for value in (-1, 1.0, True, "1"):
        with pytest.raises(InputError, match="t_s is"):
            PathPair(**good | {"t_s": value})
    model = KeyTaskModel.from_probabilities(PRIOR_KEY, PRIOR_TASK, FLAT, SAYS)
    with pytest.raises(InputError, match=r"y_s = 3[\s\S]*0 to 2"):
        decompose(model, PathPair(**good | {"y_s": 3}))
    with pytest.raises(InputError, match="incoherent is not an option"):
        KeyTaskModel.from_probabilities(PRIOR_KEY, PRIOR_TASK, FLAT, SAYS, key_likelihood=[1, 1], incoherent="yes")
    with pytest.raises(InputError, match="key_likelihood has the wrong shape"):
        KeyTaskModel.from_probabilities(PRIOR_KEY, PRIOR_TASK, FLAT, SAYS, key_likelihood=[1, 1, 1])
