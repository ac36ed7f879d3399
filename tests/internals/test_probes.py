"""The probe finds what was planted, nothing in noise, and is the plain logistic probe in fewer columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentkt.errors import InputError
from latentkt.internals import ProbeData, probe_layers
from latentkt.internals.probes import _in_span


def data(*, planted_layer=2, seed=0, families=8, rows=6, width=12, strength=4.0):
    """Labels in turn inside each family; at one layer a direction carries them. All prompts are the same."""
    rng = np.random.default_rng(seed)
    n = families * rows
    labels = np.tile([0, 1], n // 2)
    features = rng.normal(size=(n, 4, width)) * rng.uniform(0.5, 3.0, width) + rng.normal(size=width)
    features[:, planted_layer, 7] += strength * 3 * (2 * labels - 1)
    groups = [f"family {i // rows}" for i in range(n)]
    return ProbeData(features, [[1, 2, 3]] * n, labels, groups)


def test_a_planted_direction_is_found_at_its_layer_only():
    table = probe_layers(data(), target="planted")
    means = table.groupby("layer")["score"].mean()
    assert means[1] > 0.95  # entry 2 leaves layer 1
    assert means.drop(1).max() < 0.8
    assert (table["bag_score"] == 0.5).all()


def test_nothing_is_found_on_shuffled_labels():
    plain = data(families=20)
    labels = np.random.default_rng(3).permutation(plain.labels)
    shuffled = ProbeData(plain.features, plain.prompts, labels, plain.groups)
    table = probe_layers(shuffled, target="shuffled")
    error = 0.5 / np.sqrt(table.groupby("layer")["n_test"].sum().iloc[0])
    assert (table.groupby("layer")["score"].mean() - 0.5).abs().max() < 4 * error


def test_a_family_never_stands_on_both_sides():
    """A leak made on purpose: a column that names the family. It helps nobody whose family was left out."""
    plain = data(strength=0.0, families=10)
    families = np.array([int(group.split()[1]) for group in plain.groups])
    labels = families % 2
    leak = np.eye(10)[families][:, None, :].repeat(4, 1) * 50
    features = np.concatenate([plain.features, leak], axis=2)
    table = probe_layers(ProbeData(features, plain.prompts, labels, plain.groups), target="leak")
    assert table["score"].mean() < 0.75


def test_the_probe_in_the_span_is_the_plain_probe():
    plain = data()
    train, test = np.arange(0, 36), np.arange(36, 48)
    x, y = plain.features[:, 1], plain.labels
    fitted, held_out = _in_span(x[train], x[test])
    ours = LogisticRegression(C=0.01, max_iter=5000, tol=1e-10).fit(fitted, y[train])
    whole = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=5000, tol=1e-10)).fit(
        x[train], y[train]
    )
    np.testing.assert_allclose(ours.decision_function(held_out), whole.decision_function(x[test]), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": np.zeros(48, dtype=int)}, "one class"),
        ({"groups": ["one"] * 48}, "leave a family out"),
        ({"features": np.full((48, 4, 12), np.nan)}, "not finite"),
    ],
)
def test_what_cannot_be_probed_is_refused(change, said):
    plain = data()
    fields = {name: getattr(plain, name) for name in ("features", "prompts", "labels", "groups")}
    with pytest.raises(InputError, match=said):
        probe_layers(ProbeData(**{**fields, **change}), target="x")
