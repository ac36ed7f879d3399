"""Inside the model: matching, reading, probes that find what was planted and nothing else, pushes that act."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from latentkt.errors import InputError
from latentkt.internals.directions import make_direction, random_directions
from latentkt.phantom import Concept
from latentkt.phantom.asking import render_question
from latentkt.phantom.inside import ConceptActivations, direction_and_abstention, match_concepts, read_concepts
from latentkt.phantom.inside.abstaining import direction_and_denial, scores_of_others
from latentkt.phantom.inside.activations import (
    Frame,
    encode_concepts,
    mean_log_frequency,
    subword_frequencies,
    tokens_of,
)
from latentkt.phantom.inside.contrasts import CONTRASTS
from latentkt.phantom.inside.matching import balance, covariates
from latentkt.phantom.inside.options import InsideOptions
from latentkt.phantom.inside.run import beyond_baselines, look_inside
from latentkt.phantom.inside.steering import steer_existence, steering_summary
from latentkt.phantom.prompts import Prompt
from tests.models.tiny import tiny_handle
from tests.phantom.making_answers import an_answer


@pytest.fixture(scope="module")
def handle():
    return tiny_handle("llama")


def _concepts(n=40):
    """Terms of two words; recombined ones share their words with the real ones."""
    words = ["".join(letters) for letters in itertools.product("bdfgl", "aeo", "mnrst")]
    real = [f"{words[2 * k]} {words[2 * k + 1]}" for k in range(n // 2)]
    made = [f"{words[2 * k]} {words[(2 * k + 3) % n]}" for k in range(n // 2)]
    found = [Concept.make(text, kind="term", category="c") for text in real]
    found = [replace(c, existence="common" if k % 2 else "rare") for k, c in enumerate(found)]
    more = [Concept.make(t, kind="term", category="c", parents=(s,), method="recombined") for s, t in zip(real, made)]  # noqa: B905
    return [*found, *(replace(c, existence="phantom") for c in more)]


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "bloom"])
def test_states_are_those_of_the_whole_prompt_at_the_concepts_last_token(family):
    """What the questions share is run once; a sliding window, ALiBi and learnt positions see no difference."""
    handle, concepts = tiny_handle(family), _concepts(6)
    frame = Frame.of(handle)
    read = read_concepts(handle, concepts, frame, batch_size=4)
    for row, concept in enumerate(concepts):
        encoded = frame.encode(handle, concept)
        last = encoded.positions("concept")[-1]
        sites = [("resid_pre", 0), *(("resid_post", layer) for layer in range(handle.n_layers))]
        values = handle.record(torch.tensor([encoded.ids]), None, sites)
        for layer, site in enumerate(sites):
            np.testing.assert_allclose(read.features[row, layer], values[site][0, last], atol=1e-4)
        text = "".join(encoded.text[a:b] for a, b in (encoded.offsets[p] for p in encoded.positions("concept")))
        assert text == concept.concept and read.tokens[row] == tokens_of(encoded)
        inside = list(encoded.positions("concept"))
        np.testing.assert_allclose(read.embedding[row], values["resid_pre", 0][0, inside].mean(0), atol=1e-5)


def test_a_frame_is_the_rendered_question(handle):
    for template, system in (("chat", None), ("chat", "Be brief."), ("plain", None)):
        frame = Frame.of(handle, 'Is "{concept}" real?', template=template, system=system)
        text = 'Is "brine" real?'
        prompt = Prompt("p", "c", "brine", "term", "meaning", 0, text, (4, 9))
        rendered = render_question(prompt, template=template, system=system, tokenizer=handle.tokenizer)
        assert frame.before + "brine" + frame.after == rendered.text and frame.chat is rendered.chat
    with pytest.raises(InputError, match="once"):
        Frame.of(handle, "no place")


def test_concepts_that_cannot_be_read_are_skipped_with_the_reason(handle):
    long = Concept.make("brine " * 600 + "x", kind="term", category="c")
    ready, skipped = encode_concepts(handle, [*_concepts(2), long], Frame.of(handle))
    assert len(ready) == 2 and "longer" in skipped[long.id]
    with pytest.raises(InputError, match="no concept can be read"):
        read_concepts(handle, [long])


def test_frequencies_count_the_tokens_of_a_text(handle):
    counts = subword_frequencies(handle, ["the the did", "not read"], max_characters=5)
    ids = handle.tokenizer("the the did", add_special_tokens=False)["input_ids"]
    assert counts == {token: ids.count(token) for token in ids}
    total = sum(counts.values())
    expected = (math.log(counts[ids[0]] / total) + math.log(0.5 / total)) / 2
    assert mean_log_frequency([ids[0], 10**6], counts) == pytest.approx(expected)
    with pytest.raises(InputError, match="empty"):
        subword_frequencies(handle, [])


def test_matching_pairs_exactly_within_the_caliper_and_as_well_as_can_be():
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.integers(2, 4, 60), rng.integers(1, 3, 60), rng.normal(-8, 1, 60)])
    ones, zeros = list(range(30)), list(range(30, 60))
    found = match_concepts(values, ones, zeros, caliper=0.5)
    assert len(found.ones) > 10 and len(set(found.zeros)) == len(found.zeros)
    apart = np.abs(values[list(found.ones)] - values[list(found.zeros)])
    assert (apart[:, :2] == 0).all() and apart[:, 2].max() <= 0.5
    table = balance(values, ones, zeros, found).set_index("covariate")
    assert (table["difference_matched"].abs() < 0.15).all()
    # Against every assignment of a small case.
    small = np.column_stack([np.ones(6), np.ones(6), [0.0, 0.3, 0.6, 0.25, 0.5, 0.1]])
    orders = itertools.permutations([3, 4, 5])
    best = min(sum(abs(small[a, 2] - small[b, 2]) for a, b in zip(range(3), order, strict=True)) for order in orders)
    found = match_concepts(small, [0, 1, 2], [3, 4, 5], caliper=9.0)
    cost = sum(abs(small[a, 2] - small[b, 2]) for a, b in zip(found.ones, found.zeros, strict=True))
    assert cost == pytest.approx(best)
    fields = ["a", "b"] * 30
    alike = match_concepts(values, ones, zeros, strata=fields, caliper=0.5)
    assert all(fields[a] == fields[b] for a, b in zip(alike.ones, alike.zeros, strict=True)) and alike.ones
    assert len(match_concepts(values, ones, zeros, caliper=0.5, limit=5, seed=1).ones) == 5
    with pytest.raises(InputError):
        match_concepts(values, [], zeros)


def test_covariates_and_contrasts():
    concepts = _concepts(8)
    values = covariates([c.concept for c in concepts], [(1, 2, 3)] * 8, [-5.0] * 8)
    assert values[0].tolist() == [3, 2, -5.0]
    by_name = {contrast.name: contrast.sides(concepts) for contrast in CONTRASTS}
    assert by_name["recombined"] == ([4, 5, 6, 7], [0, 1, 2, 3]) and by_name["rare"] == ([0, 2], [1, 3])
    assert by_name["blended"][0] == [] and by_name["pattern"] == ([], [])


def _planted(concepts, *, strength, layer=2, d=16, seed=0):
    """Activations that hold made-ness after one layer, and nothing else."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(len(concepts), 4, d))
    made = np.array([c.made for c in concepts])
    features[made, layer, 3] += strength
    tokens = tuple((k % 7, k % 5) for k in range(len(concepts)))
    return ConceptActivations(tuple(concepts), features, features[:, 0], tokens, {})


def test_the_probe_finds_what_was_planted_and_only_there():
    from latentkt.internals.probes import probe_table

    concepts = _concepts(60)
    labels = np.array([int(c.made) for c in concepts])
    for strength, expected in ((5.0, True), (0.0, False)):
        read = _planted(concepts, strength=strength)
        found = probe_table(
            read.features, labels, [c.group for c in concepts], prompts=read.tokens, embedding=read.embedding,
            kinds=("ridge",), splits=("generalisation",), target="recombined",
        )  # fmt: skip
        evidence = beyond_baselines(found.layers).set_index("layer")["evidence"]
        assert bool(evidence[1]) is expected and not evidence[[-1, 0, 2]].any()


def test_scores_are_of_probes_that_have_not_seen_the_concept_nor_its_seed():
    concepts = _concepts(60)
    read = _planted(concepts, strength=5.0)
    rows = list(range(len(concepts)))
    labels = [int(c.made) for c in concepts]
    wanted = [concepts[0].id, concepts[30].id, "not there"]  # a seed and what was made of it
    scores = scores_of_others(read, rows, labels, wanted, kind="ridge", seed=0)
    assert set(scores) == {concepts[0].id, concepts[30].id} and scores[concepts[0].id].shape == (4,)
    assert scores[concepts[30].id][2] > 0 > scores[concepts[0].id][2]
    # The state of the scored ones is not trained on: another label of theirs changes nothing.
    flipped = [1 - label if row in (0, 30) else label for row, label in zip(rows, labels, strict=True)]
    again = scores_of_others(read, rows, flipped, wanted, kind="ridge", seed=0)
    np.testing.assert_allclose(again[concepts[0].id], scores[concepts[0].id])


def test_direction_and_abstention_by_hand():
    scores = {f"c{n}": np.array([0.0, float(n)]) for n in range(20)}
    answers = [
        an_answer(prompt_id=f"c{n}/{p}/0", concept_id=f"c{n}", property=p, judge="j",
                  judgement="abstained" if n >= 12 else "answered")
        for n in range(20) for p in ("meaning", "date")
    ]  # fmt: skip
    table = direction_and_abstention(scores, answers).set_index(["scope", "property", "layer"])
    assert table.loc[("phantom", "meaning", 0), ["n", "n_abstained", "auc"]].tolist() == [20, 8, 1.0]
    assert table.loc[("phantom", "meaning", -1), "auc"] == 0.5
    assert table.loc[("all", "all", 0), "auc"] == 1.0
    concepts = [replace(Concept.make(f"x {n}", kind="term", category="c"), id=f"c{n}",
                        existence="phantom" if n < 10 else "rare") for n in range(20)]  # fmt: skip
    denied = direction_and_denial(scores, concepts, [float(n**2) for n in range(20)])
    by_layer = denied[denied["measure"] == "spearman"].set_index(["scope", "layer"])
    assert by_layer.loc[("all", 0), "value"] == pytest.approx(1.0) and math.isnan(by_layer.loc[("all", -1), "value"])
    assert denied.loc[denied["measure"] == "auc", "value"].item() == 0.0  # real ones are denied more here
    few = direction_and_abstention(scores, answers[:28])
    assert few["auc"].isna().all() and few["reason"].str.contains("fewer than 5").all()


def test_pushes_act_on_the_concept_alone_and_dose_zero_does_nothing(handle, monkeypatch):
    from latentkt.phantom.inside import steering

    # The tiny tokenizer has no Yes and No; any two tokens show what a push does.
    monkeypatch.setattr(steering, "_first_token", lambda handle, word, *, chat: {"Yes": 20, "No": 21}[word])
    concepts = _concepts(6)
    vector = np.linspace(-1, 1, 32)
    push = make_direction(handle, vector, layer=1, name="made")
    doses = (-2.0, 2.0)
    table = steer_existence(handle, concepts, [push, *random_directions(push, 2)], doses=doses, batch_size=4)
    assert len(table) == 6 * 3 * 3 and (table.loc[table["dose"] == 0.0, "change"] == 0).all()
    assert table.loc[table["dose"] != 0.0, "change"].abs().min() > 1e-6
    # One case by hand: add at the concept's tokens after layer 1, read the last position.
    frame = Frame.of(handle, steering.QUESTION)
    encoded = frame.encode(handle, concepts[0])

    def edit(value):
        value = value.clone()
        value[0, list(encoded.positions("concept"))] += torch.tensor(2.0 * vector, dtype=value.dtype)
        return value

    logits = handle.edited_logits(torch.tensor([encoded.ids]), None, {("resid_post", 1): edit})[0, -1]
    row = table.query("direction == 'made' and dose == 2.0").iloc[0]
    assert row["log_odds"] == pytest.approx(float(logits[21] - logits[20]), abs=1e-4)
    summary = steering_summary(table).set_index("direction")
    mine = table[(table["direction"] == "made") & (table["concept_id"] == concepts[0].id)]
    slopes = [
        np.polyfit(part["dose"], part["log_odds"], 1)[0]
        for _, part in table.query("direction == 'made'").groupby("concept_id")
    ]
    assert summary.loc["made", "slope"] == pytest.approx(np.mean(slopes)) and len(mine) == 3
    assert summary.loc["made", "placebos"] == 2 and math.isnan(summary.loc["random 0", "placebo_largest"])
    with pytest.raises(InputError, match="nothing to steer"):
        steer_existence(handle, concepts, [])


def test_a_model_without_a_token_for_yes_is_refused(handle):
    from latentkt.errors import ModelRefusedError

    with pytest.raises(ModelRefusedError, match="no single token"):
        steer_existence(handle, _concepts(2), [make_direction(handle, np.ones(32), layer=1)])


def test_the_whole_look_inside_writes_its_tables(handle, tmp_path, monkeypatch):
    from latentkt.phantom.inside import probe_concepts, steering
    from latentkt.report import build
    from latentkt.results import load_run

    monkeypatch.setattr(steering, "_first_token", lambda handle, word, *, chat: {"Yes": 20, "No": 21}[word])
    concepts = _concepts(60)
    options = InsideOptions(steer_concepts=4, placebos=1, caliper=5.0, max_folds=3)
    answers = [
        an_answer(prompt_id=f"{c.id}/m", concept_id=c.id, existence=c.existence, judge="j",
                  judgement="abstained" if n % 3 else "answered")
        for n, c in enumerate(concepts[:24])
    ]  # fmt: skip
    folder = probe_concepts(
        handle, concepts, ["ban ben did not read the old term"], tmp_path / "run", options, answers=answers
    )
    run = load_run(folder)
    probe = run.tables["phantom_probe"]
    assert set(probe["target"]) == {"recombined"} and probe["layer"].tolist() == [-1, 0, 1, 2]
    skipped = run.tables["skipped"].set_index("item")["reason"]
    assert "against 0 concepts" not in skipped["rare"] and "20 are needed" in skipped["rare"]
    assert skipped["blended"].startswith("0 against")
    assert {"phantom_balance", "phantom_abstention", "phantom_steering", "phantom_steering_summary"} <= set(run.tables)
    page = build(run).read_text()
    assert "Does the network know what exists?" in page and "random directions" in page
    with pytest.raises(InputError, match="no contrast"):
        look_inside(handle, concepts[:8], ["text"], options)
    with pytest.raises(InputError, match="pairs"):
        InsideOptions(pairs=2)


def test_what_cannot_be_measured_behind_the_probes_is_listed_and_the_probes_are_kept(handle):
    """All concepts were asked about, and this tokenizer has no Yes: neither takes the probes with it."""
    concepts = _concepts(60)
    answers = [
        an_answer(prompt_id=f"{c.id}/m", concept_id=c.id, existence=c.existence, judge="j", judgement="answered")
        for c in concepts
    ]
    options = InsideOptions(steer_concepts=4, placebos=1, caliper=5.0, max_folds=3)
    tables = look_inside(handle, concepts, ["ban ben did not read the old term"], options, answers=answers)
    assert len(tables["phantom_probe"]) and not {"phantom_abstention", "phantom_steering"} & set(tables)
    reasons = tables["skipped"].set_index("stage")["reason"]
    assert "one class only" in reasons["phantom abstention"] and "no single token" in reasons["phantom steering"]
    with pytest.raises(InputError, match="layer of steering"):
        look_inside(handle, concepts, ["text"], replace(options, steer_layer=99))
    wrong = (({"judgement": None, "judge": None}, "1 answers are not judged"), ({"setting": "n"}, "several settings"))
    for changed, said in wrong:
        with pytest.raises(InputError, match=said):
            look_inside(handle, concepts, ["text"], options, answers=[replace(answers[0], **changed), *answers[1:]])
    with pytest.raises(InputError, match="of each side"):
        InsideOptions(steer_concepts=1)


def test_concepts_of_one_seed_are_one_cluster_of_the_steering_slope():
    rows = [
        {"concept_id": f"c{n}", "group": f"g{n // 5}", "direction": "made", "layer": 1, "dose": dose,
         "log_odds": dose * (n // 5 + 0.01 * (n % 5))}
        for n in range(20) for dose in (-1.0, 0.0, 1.0)
    ]  # fmt: skip
    row = steering_summary(pd.DataFrame(rows)).iloc[0]
    alone = steering_summary(pd.DataFrame(rows).assign(group=lambda table: table["concept_id"])).iloc[0]
    assert row["n"] == alone["n"] == 20
    assert row["slope_high"] - row["slope_low"] > 1.5 * (alone["slope_high"] - alone["slope_low"])
