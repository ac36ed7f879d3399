"""Probes find what was planted and nothing in noise, and catch leaks; shared fits equal plain ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge

from latentkt.errors import InputError
from latentkt.internals.probes import fit_probe, joined_groups, probe_table
from latentkt.internals.probes.folds import control_labels, make_folds
from latentkt.internals.probes.kinds import _LDA, KINDS, _Logistic, _MeanDifference, _Ridge

FAST = ("ridge", "lda", "mean_difference")


def data(*, planted_layer=2, seed=0, families=10, rows=6, width=12, strength=4.0):
    """Labels in turn inside each family; at one entry a direction carries them."""
    rng = np.random.default_rng(seed)
    n = families * rows
    labels = np.tile([0, 1], n // 2)
    features = rng.normal(size=(n, 4, width)) * rng.uniform(0.5, 3.0, width) + rng.normal(size=width)
    features[:, planted_layer, 7] += strength * 3 * (2 * labels - 1)
    return features, labels, np.repeat([f"family {i}" for i in range(families)], rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_direction_is_found_at_its_layer_only(kind):
    features, labels, groups = data()
    found = probe_table(features, labels, groups, kinds=[kind], prompts=[[1, 2, 3]] * len(labels))
    layers = found.layers.set_index(["split", "layer"])
    assert layers.loc["generalisation", "score"].idxmax() == 1  # entry 2 leaves layer 1
    assert layers.loc[("generalisation", 1), "score"] > 0.95
    assert layers.loc["generalisation", "evidence"].to_dict() == {-1: False, 0: False, 1: True, 2: False}
    assert layers.loc[("selectivity", 1), "selectivity_low"] > 0
    assert (found.folds["n_test"] + found.folds["n_train"] == len(labels)).all()
    probe = fit_probe(features[:, 2], labels, groups, kind=kind)
    along = features[:, 2] @ probe.direction
    assert np.linalg.norm(probe.direction) == pytest.approx(1)
    assert along[labels == 1].mean() > along[labels == 0].mean() + 4


@pytest.mark.parametrize("kind", KINDS)
def test_the_direction_scores_like_the_probe(kind):
    features, labels, groups = data()
    probe = fit_probe(features[:, 2], labels, groups, kind=kind)
    scores = features[:, 2] @ (probe.norm * probe.direction) + probe.intercept
    assert ((scores > 0) == labels).mean() > 0.95
    assert ((probe.held_out > 0) == labels).mean() == pytest.approx(probe.score)


def test_kinds_are_what_their_names_say():
    features, labels, _ = data(families=6, width=50)
    x, y = features[:, 1], labels[:, None]
    x = (x - x.mean(0)) / x.std(0)
    n = len(x)
    logistic = _Logistic().path(x, y, [2])[0]
    plain = LogisticRegression(C=logistic.C, tol=1e-10, max_iter=5000).fit(x, labels)
    np.testing.assert_allclose(logistic.scores(x)[:, 0], plain.decision_function(x), atol=1e-3)
    ridge = _Ridge().path(x, y, [3])[0]
    least = Ridge(alpha=1 / ridge.C).fit(x, 2 * labels - 1)
    np.testing.assert_allclose(ridge.scores(x)[:, 0], least.predict(x), atol=1e-9)
    lda = _LDA().path(x, y, [3])[0]
    means = np.stack([x[labels == one].mean(0) for one in (0, 1)])
    within = sum(np.cov(x[labels == one].T, bias=True) * (labels == one).sum() for one in (0, 1))
    solved = np.linalg.solve((within + np.eye(50) / lda.C) / (n - 2), means[1] - means[0])
    np.testing.assert_allclose(lda.weights[:, 0], solved, atol=1e-9)
    np.testing.assert_allclose(lda.intercept[0], -solved @ means.mean(0), atol=1e-9)
    apart = _MeanDifference().path(x, y, [0])[0]
    np.testing.assert_allclose(apart.weights[:, 0], means[1] - means[0], atol=1e-12)


def test_lda_without_much_penalty_is_scikit_learns():
    features, _, _ = data(families=40)
    x = features[:, 2] / features[:, 2].std(0)
    labels = (np.arange(len(x)) % 3 == 0).astype(int)  # classes of unequal size
    kind = _LDA()
    kind.shares = (1e-12,)
    ours = kind.path(x, labels[:, None], [0])[0]
    plain = LinearDiscriminantAnalysis(solver="lsqr").fit(x, labels)
    ratio = np.linalg.norm(ours.weights) / np.linalg.norm(plain.coef_)
    np.testing.assert_allclose(ours.scores(x)[:, 0], plain.decision_function(x) * ratio, atol=2e-2)


def test_a_task_and_its_control_share_a_fit_and_change_nothing():
    features, labels, groups = data()
    other = control_labels(labels, groups)
    for kind in KINDS.values():
        x = features[:, 1]
        both = kind.path(x, np.stack([labels, other], 1), [0])[0]
        alone = [kind.path(x, one[:, None], [0])[0] for one in (labels, other)]
        np.testing.assert_allclose(both.weights, np.concatenate([one.weights for one in alone], 1), atol=1e-9)


@pytest.mark.parametrize("kind", FAST)
def test_the_interval_covers_chance_on_shuffled_labels(kind):
    features, labels, groups = data(families=24, width=8)
    covered, n = 0, 25
    for seed in range(n):
        shuffled = np.random.default_rng(seed).permutation(labels)
        table = probe_table(features[:, :1], shuffled, groups, kinds=[kind], splits=["generalisation"], seed=seed)
        row = table.layers.iloc[0]
        covered += row["low"] <= 0.5 <= row["high"]
        assert not row["evidence"]
    assert covered >= 0.85 * n


def test_the_interval_covers_chance_on_shuffled_labels_logistic():
    features, labels, groups = data(families=20)
    shuffled = np.random.default_rng(1).permutation(labels)
    layers = probe_table(features, shuffled, groups, splits=["generalisation"]).layers
    assert ((layers["low"] <= 0.5) & (layers["high"] >= 0.5)).all()


def test_random_features_of_an_entity_give_a_high_control_score():
    """A random vector an entity says nothing about the task; a probe learns the entities by heart all the same."""
    rng = np.random.default_rng(0)
    entities = np.repeat(np.arange(40), 6)
    labels = np.tile([0, 1], 120)
    features = rng.normal(size=(40, 1, 200))[entities] + 0.3 * rng.normal(size=(240, 1, 200))
    layer = probe_table(features, labels, entities, splits=["selectivity"], kinds=["logistic"]).layers.iloc[0]
    assert layer["control_score"] > 0.9 and layer["score"] < 0.6 and layer["selectivity_high"] < 0


def test_groups_stay_whole_and_a_leak_is_caught():
    features, labels, groups = data(strength=0.0)
    for train, test in make_folds("generalisation", labels, groups):
        assert not set(groups[train]) & set(groups[test])
    numbers = np.array([int(group.split()[1]) for group in groups])
    by_family = numbers % 2
    leak = features + 50 * np.eye(12)[numbers][:, None]
    assert probe_table(leak, by_family, groups, kinds=["ridge"]).layers["score"].iloc[:4].max() < 0.75
    entities = np.array([f"entity {i // 2}" for i in range(len(labels))])
    entities[0] = entities[-1]
    with pytest.raises(InputError, match="stands in two groups"):
        probe_table(features, labels, groups, entities=entities)
    whole = joined_groups(groups, entities)
    assert whole[0] == whole[-1] == "family 0+family 9"
    probe_table(features, labels, whole, entities=entities, kinds=["mean_difference"])


def test_the_selectivity_split_gives_each_entity_both_sides():
    labels = np.tile([0, 1], 30)
    entities = np.repeat(range(15), 4)
    folds = make_folds("selectivity", labels, entities)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(60))
    for train, test in folds:
        assert set(entities[test]) <= set(entities[train]) and not set(train) & set(test)


def test_single_rows_of_an_entity_are_left_out_with_the_reason():
    features, labels, groups = data()
    table = probe_table(features, labels, groups, entities=range(len(labels)), kinds=["ridge"])
    only = table.layers[table.layers["split"] == "selectivity"]
    assert only["score"].isna().all() and only["reason"].str.contains("one row").all()
    assert table.folds.loc[table.folds["split"] == "selectivity", "control_score"].isna().all()
    entities = np.repeat(np.arange(len(labels) // 2), 2).tolist()
    entities[-1] = 999
    some = probe_table(features, labels, groups, entities=entities, kinds=["ridge"], splits=["selectivity"]).layers
    assert (some["n_single"] == 2).all() and (some["n_rows"] == len(labels) - 2).all()


@pytest.mark.parametrize("kind", KINDS)
def test_fitting_sees_training_rows_only(kind):
    """Where half of a fold's tested rows lie far off, the other half's scores stay what they were, to the bit."""
    features, labels, groups = data(families=6)
    x = features[:, 1]
    fold = make_folds("generalisation", labels, groups)[0]
    far = x.copy()
    far[fold.test[::2]] = 1e6
    one, other = (fit_probe(values, labels, groups, kind=kind) for values in (x, far))
    np.testing.assert_array_equal(one.held_out[fold.test[1::2]], other.held_out[fold.test[1::2]])
    assert not np.array_equal(one.held_out, other.held_out)


def test_baselines_stand_on_the_same_folds():
    features, labels, groups = data(strength=0.0)
    random = np.random.default_rng(1).normal(size=features.shape)
    random[:, 3, 0] += 9 * labels
    prompts = [[5, 7 + int(label)] for label in labels]
    table = probe_table(features, labels, groups, prompts=prompts, random_init=random, kinds=["ridge"])
    layers = table.layers[table.layers["split"] == "generalisation"].set_index("layer")
    assert (layers["bag_score"] == 1).all() and not layers["evidence"].any()
    assert layers["random_init_score"].idxmax() == 2 and layers.loc[2, "random_init_score"] > 0.95
    assert (layers["embedding_score"] == layers.loc[-1, "score"]).all()


def test_a_bag_below_chance_makes_no_evidence_of_a_probe_at_chance():
    """Each family turns the token's meaning around, so that the bag is wrong of every family that is left out."""
    rng = np.random.default_rng(0)
    groups, labels = np.repeat(range(12), 8), np.tile([0, 1], 48)
    prompts = [[5, 7 + (int(label) ^ (int(group) % 2))] for label, group in zip(labels, groups, strict=True)]
    noise = rng.normal(size=(96, 2, 8))
    options = {"prompts": prompts, "kinds": ["ridge"], "splits": ["generalisation"], "max_folds": 12}
    layers = probe_table(noise, labels, groups, **options).layers
    assert (layers["score"] > layers["bag_high"]).all() and (layers["gain_low"] > 0).all()  # what used to be enough
    assert (layers["low"] < layers["chance"]).all() and not layers["evidence"].any()
    noise[:, 1, 3] += 4 * labels
    assert probe_table(noise, labels, groups, **options).layers["evidence"].tolist() == [False, True]


def test_chance_is_the_commoner_label_and_of_the_rows_that_were_scored():
    rng = np.random.default_rng(0)
    labels = (np.arange(60) % 4 == 0).astype(int)
    layers = probe_table(rng.normal(size=(60, 1, 4)), labels, np.repeat(range(10), 6), kinds=["ridge"]).layers
    assert layers["chance"].tolist() == [0.75, 0.75]
    # The one group with label 1 leaves training rows of one class: that fold has no score, and no share of chance.
    labels, groups = np.repeat([0, 1], [30, 10]), np.repeat([0, 1, 2, 3], 10)
    layers = probe_table(rng.normal(size=(40, 1, 4)), labels, groups, kinds=["ridge"], max_folds=4).layers
    row = layers[layers["split"] == "generalisation"].iloc[0]
    assert row["reason"] and row["chance"] == 1.0 and row["majority_score"] == 1.0 and not row["evidence"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": np.zeros(60, dtype=int)}, "one class only"),
        ({"labels": np.arange(60) % 3}, "not 0 and 1"),
        ({"groups": ["one"] * 60}, "cannot leave a group out"),
        ({"features": np.full((60, 4, 12), np.nan)}, "not finite"),
        ({"features": np.zeros((59, 4, 12))}, "do not fit together"),
        ({"max_folds": 61}, "fewer rows than folds"),
        ({"kinds": ["svm"]}, "unknown kind"),
        ({"splits": ["rows"]}, "unknown split"),
        ({"prompts": [[1]]}, "baseline 'bag'"),
        ({"layers": [0, 1]}, "layers of probe"),
    ],
)
def test_what_cannot_be_probed_is_refused(change, said):
    features, labels, groups = data()
    with pytest.raises(InputError, match=said):
        probe_table(**{"features": features, "labels": labels, "groups": groups, **change})
