"""The exact cases: every output, rationally; the float code on the same inputs; and the words."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from latentkt.keytask import (
    Caps,
    KeyTaskModel,
    decompose,
    decompose_exact,
    explain_case,
    margin_bounds,
    parse_case,
    ratio_bounds,
)
from latentkt.keytask.case import check_case, model_of

CASES = json.loads((Path(__file__).parent / "golden_cases.json").read_text(encoding="utf-8"))
MODELS = CASES["model_cases"]
OTHERS = CASES["functional"]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case["name"])
def test_model_case_is_exact(case):
    out = check_case(parse_case(case["inputs"]))
    assert {name: out[name] for name in case["outputs"]} == case["outputs"]


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case["type"])
def test_other_case_is_exact(case):
    for data in (case["inputs"], {"type": case["type"], "inputs": case["inputs"]}):
        out = check_case(parse_case(data))
        assert {name: out[name] for name in case["outputs"]} == case["outputs"]


def test_development_data_hold_no_other_case(data_dir):
    golden = json.loads((data_dir / "theory_golden.json").read_text(encoding="utf-8"))
    every = [*golden["model_cases"], *golden["functional"], golden["incoherent_case"]]
    assert len(every) == 14
    for case in every:
        data = {"inputs": case["inputs"]} | ({"type": case["type"]} if "type" in case else {})
        out = check_case(parse_case(data))
        assert {name: out[name] for name in case["outputs"]} == case["outputs"]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case["name"])
def test_log_space_agrees(case):
    exact, paths = model_of(parse_case(case["inputs"]))
    arrays = (exact.prior_key, exact.prior_task, exact.likelihood, exact.emission)
    found = decompose(KeyTaskModel.from_probabilities(*(a.astype(float) for a in arrays)), paths)
    flat = found.quantities.flat()
    for name, text in case["outputs"].items():
        if name in flat:
            assert float(flat[name]) == pytest.approx(float(Fraction(text)), rel=1e-12, abs=1e-15), name
    assert sum(found.terms.values()) == pytest.approx(float(found.dominance), abs=1e-12)


def test_bounds_are_attained():
    """Where caps are met and all other mass says y*, both lower bounds are the values themselves."""
    model, paths = model_of(parse_case(next(c for c in MODELS if c["name"] == "Theorem B attained")["inputs"]))
    q = decompose_exact(model, paths)
    assert all(0 < mass < 1 for mass in (q.masses.W_s, q.masses.W_0, q.masses.W_1, q.masses.W_2, q.masses.W_off))
    confident = {"alpha_s": q.emissions.alpha_s, "alpha_0": q.emissions.alpha_0}
    caps = Caps.own(q.emissions)
    assert margin_bounds(q.masses, **confident, caps=caps).lower == q.gamma
    assert ratio_bounds(q.masses, **confident, caps=caps).lower == q.ratio
    assert margin_bounds(q.masses, **confident, caps=caps).upper > q.gamma


def test_unstated_needs_are_named():
    by_name = {case["name"]: check_case(parse_case(case["inputs"])) for case in MODELS}
    failing = {name: out["printed_needs_that_fail"] for name, out in by_name.items() if not out["printed_bound_holds"]}
    assert failing["G6 CE1c: R tends to 0"] == failing["R = 1/1000"] == ["path_evidence"]
    assert failing["G7 CE2: mixed (k*,ts)->y*"] == failing["mixed (k_s, t*) says y*"] == ["mixed_paths"]
    assert failing["G9 CE3: leak 2% with confidence 1%"] == ["leakage"]
    assert failing["another key says y*"] == ["off_key_paths"]
    assert by_name["G1 path-bound"]["printed_needs_that_fail"] == []
    assert [by_name[f"G{n} {r}-bound"]["binding"] for n, r in ((1, "path"), (2, "key"), (3, "task"))] == [
        "path",
        "key",
        "task",
    ]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case["name"])
def test_explanation_says_who_wins(case):
    text = explain_case(parse_case(case["inputs"], name="this one"))
    gamma = Fraction(check_case(parse_case(case["inputs"]))["gamma"])
    assert f"this one: The {'shortcut' if gamma > 0 else 'correct'} path wins." in text
    assert "Theorem 3.4 as printed" in text and "Certificate:" in text and "nan" not in text.lower().split()


def test_explanation_names_what_carries_it():
    words = {case["name"]: explain_case(parse_case(case["inputs"])) for case in MODELS}
    assert "pair_normaliser (−13.816): the unstated assumption R = 1 does not hold" in words["G6 CE1c: R tends to 0"]
    assert "Answers are key-bound" in words["G2 key-bound"]
    assert "The paths share their task" in words["G11 same task (t*=ts)"]
    assert "knowing the two confidences only, γ ≥ 1/5 = 0.2: the shortcut's win is certified" in words["G1 path-bound"]
    assert "it fails here" in words["G4 CE1: R=101/9900"] and "and that is so" in words["G1 path-bound"]


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case["type"])
def test_other_explanations(case):
    text = explain_case(parse_case(case["inputs"]))
    known = {"tv": "17/40|2/5", "critical": "1.792 nats", "slope": "0.980", "incoherent": "9/22"}
    assert any(part in text for part in known[case["type"]].split("|"))


def test_a_case_may_hold_a_target_and_a_regime():
    inputs = dict(MODELS[0]["inputs"])
    out = check_case(parse_case(inputs | {"P_star": ["1/10", "4/5", "1/10"], "binding": "path"}))
    assert out["gamma_star"] == "7/10" and out["end_to_end_floor"] == "49/80"  # (21/40 + 7/10)/2
    assert Fraction(out["tv"]) >= Fraction(out["four_prob_floor"]) >= Fraction(out["margin_floor"])
    rescaled = check_case(parse_case(inputs | {"lik_key": [1, 2], "incoherent": "rescale"}))
    assert rescaled["rescaled"] is True and rescaled["LR_k"] == "2" and rescaled["spread_nats"].startswith("0.693147")
    same = check_case(parse_case(inputs | {"lik_key": [3, 3]}))
    assert same["rescaled"] is False and np.isclose(float(Fraction(same["ratio"])), 8)
