"""A model that is the closed form goes through the whole chain of measurements: its law comes out to the digit."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from latentkt.errors import InputError
from latentkt.synthetic import Cluster, FactStream, WorldConfig, make_world
from latentkt.synthetic.measure import answer_gap, answers, probes
from latentkt.synthetic.run import own_facts
from latentkt.synthetic.summary import fit_table, item_table, pick, summarise

from .conftest import bayes_table, exact_logits

NOISE = 0.2
LAMBDA = math.log((1 - NOISE) / NOISE)


@pytest.fixture(scope="module")
def stream() -> FactStream:
    clusters = (Cluster("independent", 0.0), Cluster("cooccurring", 0.2, noise=NOISE))
    return FactStream(
        make_world(replace(WorldConfig(), levels=8, held_same=1, held_opposed=2, clusters=clusters), seed=0)
    )


@pytest.fixture(scope="module")
def tables(stream):
    logits = exact_logits(stream, bayes_table(stream, evidence=LAMBDA))
    known = probes(logits, stream)
    choices = answers(logits, stream, known=own_facts(known)).assign(seed=0)
    items = item_table(choices)
    return {"known": known, "choices": choices, "items": items, "fits": fit_table(items)}


def _fit(fits, statistic, *, cluster, pairing, pairs="unseen", seed="pooled", relation="both"):
    chosen = fits[
        (fits["cluster"] == cluster) & (fits["pairing"] == pairing) & (fits["pairs"] == pairs)
        & (fits["seed"] == seed) & (fits["relation"] == relation)
    ]  # fmt: skip
    return pick(chosen, statistic)["value"]


def test_the_law_comes_out(tables):
    fits = tables["fits"]
    for pairs in ("seen", "unseen"):
        assert _fit(fits, "slope", cluster="all", pairing="same", pairs=pairs) == pytest.approx(1)
        assert _fit(fits, "slope_probability", cluster="all", pairing="same", pairs=pairs) == pytest.approx(1)
        assert _fit(fits, "lambda", cluster="cooccurring", pairing="opposed", pairs=pairs) == pytest.approx(LAMBDA)
    assert _fit(fits, "slope", cluster="all", pairing="same", pairs="all") == pytest.approx(1)
    assert _fit(fits, "r2", cluster="all", pairing="same") == pytest.approx(1)
    assert _fit(fits, "own_relation", cluster="independent", pairing="opposed") == pytest.approx(1)
    assert _fit(fits, "other_relation", cluster="independent", pairing="opposed") == pytest.approx(0, abs=1e-9)
    assert _fit(fits, "residual_sd", cluster="all", pairing="same") == pytest.approx(0, abs=1e-6)
    assert _fit(fits, "order_bias", cluster="all", pairing="same") == pytest.approx(0, abs=1e-9)


def test_all_pairs_are_fitted_together_where_one_law_holds(tables):
    """Noise of opposite sign in seen and unseen pairs: the fit of all is neither one's, and is least squares."""
    items = tables["items"].copy()
    items["dominance"] += np.where(items["unseen"], 0.3, -0.1) * items["log_prior_ratio"]
    fits = fit_table(items)
    same = items[items["pairing"] == "same"]
    expected = np.polyfit(same["log_prior_ratio"], same["dominance"], 1)[0]
    assert _fit(fits, "slope", cluster="all", pairing="same", pairs="all") == pytest.approx(expected)
    assert _fit(fits, "slope", cluster="all", pairing="same", pairs="seen") < expected
    assert set(fits[fits["pairs"] == "all"]["pairing"]) == {"same"}


def test_the_constraint_patch_is_twice_the_evidence(tables):
    for cluster in ("independent", "cooccurring"):
        assert _fit(tables["fits"], "constraint_patch_nats", cluster=cluster, pairing="opposed") == pytest.approx(
            2 * LAMBDA
        )


def test_trap_errors_follow_from_ratio_and_evidence(tables):
    """r > 6 > e^λ = 4: every trap is fallen into; the knowledge-consistent pairs never."""
    fits = tables["fits"]
    assert _fit(fits, "trap_error", cluster="independent", pairing="opposed") == 1
    assert _fit(fits, "consistent_error", cluster="independent", pairing="opposed") == 0
    items = tables["items"]
    traps = items[(items["pairing"] == "opposed") & (items["log_prior_ratio"] > math.log(6))]
    assert traps["error"].eq(1).all() and traps["knows_shortcut"].all()


def test_where_the_corpus_defines_an_answer_the_network_reaches_it(tables):
    choices = tables["choices"]
    there = choices["bayes_dominance"].notna()
    assert np.allclose(choices["dominance"][there], choices["bayes_dominance"][there])
    assert choices.loc[there, "tv_bayes"].max() < 1e-9
    never = (choices["pairing"] == "opposed") & (choices["cluster"] == "independent")
    assert choices.loc[never, "bayes_dominance"].isna().all()
    assert there.sum() + never.sum() == len(choices)


def test_total_variation_is_an_identity_and_a_floor(tables):
    """Against a point mass TV = 1 - P(y*), and TV minus Theorem 3.6's floor is half the mass off the options."""
    from latentkt.keytask import margin_floor, total_variation

    opposed = tables["choices"][tables["choices"]["pairing"] == "opposed"]
    assert np.allclose(opposed["tv_ideal"] - opposed["tv_floor"], opposed["off_options"] / 2)
    row = opposed.iloc[7]
    model = [row["p_shortcut"], row["p_correct"], row["off_options"]]
    assert row["tv_ideal"] == pytest.approx(total_variation(model, [0, 1, 0]))
    assert row["tv_floor"] == pytest.approx(margin_floor(row["p_shortcut"] - row["p_correct"], 1.0))
    assert opposed.loc[opposed["pairing"].eq("opposed"), "tv_ideal"].notna().all()
    assert tables["choices"].loc[tables["choices"]["pairing"] == "same", "tv_ideal"].isna().all()


def test_probes_are_all_right_and_cover_every_question(tables, stream):
    known = tables["known"]
    assert known["is_right"].all()
    assert len(known) == 2 * 2 * len(stream.world.entities) * 2
    assert set(known["template"]) == {"plain_question", "late_question"}
    assert not known.loc[known["template"] == "late_question", "trained"].any()
    assert own_facts(known)["template"].unique().tolist() == ["plain_question"]


def test_a_wrong_model_is_seen_to_be_wrong(stream):
    """Slope 1.5: found; orders that differ: found; loss over the exact predictor: found."""
    steep = exact_logits(stream, bayes_table(stream, evidence=LAMBDA, slope=1.5))
    known = probes(steep, stream)
    fits = fit_table(item_table(answers(steep, stream, known=own_facts(known)).assign(seed=0)))
    assert _fit(fits, "slope", cluster="all", pairing="same") == pytest.approx(1.5)
    exact, bad = (
        answer_gap(exact_logits(stream, bayes_table(stream, evidence=LAMBDA, slope=s)), stream) for s in (1.0, 1.5)
    )
    relevant = exact["bayes_nll"] > 0  # easy documents: the table ranks other clusters by count too
    assert (exact["nll"] - exact["bayes_nll"])[relevant].abs().max() < 1e-6
    assert (bad["nll"] - bad["bayes_nll"])[relevant].mean() > 0.01


def test_order_bias_is_measured():
    rows = [
        {"seed": 0, "item": 0, "order": order, "dominance": value, "dominance_control": 0.0, "p_shortcut": 0.5,
         "p_correct": 0.5, "off_options": 0.0, "tv_ideal": 0.5, "tv_bayes": 0.0, "tv_bayes_ideal": 0.5, "tv_floor": 0.5}
        for order, value in (("correct_first", -1.0), ("shortcut_first", 2.0))
    ]  # fmt: skip
    item = item_table(pd.DataFrame(rows)).iloc[0]
    assert item["order_bias"] == pytest.approx(1.5)
    assert item["dominance"] == pytest.approx(0.5)
    assert item["error"] == pytest.approx(0.5)
    assert item["constraint_patch"] == pytest.approx(-0.5)


def test_summary_has_its_form(tables):
    networks = pd.DataFrame(
        [
            {
                "seed": 0,
                "probe_accuracy": 1.0,
                "answer_nll": 0.3,
                "bayes_nll": 0.3,
                "tokens_per_second": 1.0,
                "wall_s": 1.0,
            }
        ]
    )
    found = json.loads(json.dumps(summarise(tables["fits"], networks), allow_nan=False))
    assert set(found) == {"seeds", "pooled"} and set(found["seeds"]) == {"0"}
    for one in (found["seeds"]["0"], found["pooled"]):
        assert set(one) == {
            "trap_error", "slope", "lambda", "r2", "same_polarity", "constraint_patch_nats", "probe_accuracy",
            "answer_nll", "bayes_nll", "tokens_per_second", "wall_s",
        }  # fmt: skip
        for cluster in ("independent", "cooccurring"):
            for label in ("all", "given_both_probes"):
                assert set(one["trap_error"][cluster][label]) == {"value", "low", "high", "n"}
            assert one["slope"][cluster] == pytest.approx(1)
        assert set(one["same_polarity"]) == {"slope_heldout", "r2_heldout"}


def test_two_rows_for_one_figure_are_refused(tables):
    with pytest.raises(InputError, match="not one figure"):
        pick(tables["fits"], "slope")
