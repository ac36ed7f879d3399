"""Theory cases are read strictly, and the command answers them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from latentkt.cli import main
from latentkt.errors import DataError, InputError
from latentkt.keytask import explain_case, load_case, parse_case
from latentkt.keytask.case import MODEL_NAMES, check_case
from latentkt.keytask.rational import decimal_string, exact_array, to_fraction
from tests.keytask.exact_models import random_case

GOLDEN = json.loads((Path(__file__).parent / "golden_cases.json").read_text(encoding="utf-8"))
MODEL = GOLDEN["model_cases"][0]["inputs"]


def refused(inputs, *words):
    with pytest.raises(InputError) as caught:
        check_case(parse_case(inputs))
    for word in words:
        assert word in str(caught.value), str(caught.value)


def changed(key, *index, value):
    inputs = json.loads(json.dumps(MODEL))
    at = inputs
    for step in (key, *index)[:-1]:
        at = at[step]
    at[(key, *index)[-1]] = value
    return inputs


def test_bad_model_cases_are_refused_by_name_index_and_value():
    refused(changed("pi_k", 0, value="1/3"), "pi_k does not sum to 1", "13/12")
    refused(changed("pi_t_given_k", 1, 0, value="1/4"), "pi_t_given_k[1]", "21/20")
    refused(changed("pred_y", 0, 1, 2, value="1/2"), "pred_y[0, 1]", "sum 1/2")
    refused(changed("lik_z_given_kt", 0, 1, value="-1/5"), "lik_z_given_kt[0, 1] is negative", "-1/5")
    refused(changed("pi_t_given_k", 1, 0, value="NaN"), "pi_t_given_k[1, 0] is not a rational number", "'NaN'")
    refused(changed("pi_t_given_k", 1, 0, value=None), "pi_t_given_k[1, 0]", "None")
    refused(changed("pi_t_given_k", 1, value=["1"]), "pi_t_given_k has the wrong shape")
    refused(changed("pi_t_given_k", value=[["1/2", "1/2"]]), "pi_t_given_k has the wrong shape", "(1, 2)")
    refused(changed("pred_y", value=[["1", "0"]]), "pred_y has the wrong shape", "3 axes")
    refused(MODEL | {"ys": 1}, "y_s and y* are the same answer")
    refused(MODEL | {"ks": 0, "ts": 0}, "the two paths are the same")
    refused(MODEL | {"k0": 7}, "k_0 = 7", "0 to 1")
    refused(MODEL | {"lik_z_given_kt": [[0, 0], [0, 0]]}, "impossible", "lik_z_given_kt")
    refused(MODEL | {"binding": "key"}, "not key-bound as declared")
    refused(MODEL | {"lik_key": [1, 2]}, "lik_key contradicts", "0.69314718", "0.171572")
    refused(MODEL | {"lik_key": [1, 2, 3]}, "lik_key has the wrong shape")
    refused(MODEL | {"incoherent": "maybe"}, "incoherent is not an option")
    refused(MODEL | {"P_star": ["1/2", "1/2"]}, "P_star has the wrong shape")


def test_other_bad_cases_are_refused():
    refused(MODEL | {"extra": 1}, "unknown keys: extra")
    refused({"type": "model", "inputs": MODEL, "outputs": {}}, "unknown keys: outputs")
    refused({"inputs": {"x": 1}}, "no known type")
    refused({"type": "other", "inputs": MODEL}, "type of case is unknown", "'other'")
    refused({k: v for k, v in MODEL.items() if k != "ys"}, "lacks ys")
    refused([], "no case")
    refused({"type": "tv", "inputs": []}, "no object")
    refused({"P": ["1/2", "1/2"], "Q": ["1/2", "1/4"]}, "Q does not sum to 1", "3/4")
    refused({"P": ["1/2", "1/2"], "Q": ["1"]}, "Q has the wrong shape")
    refused({"P": ["1/2", "1/2"], "Q": ["1/2", "1/2"], "ys": 1}, "same answer")
    refused({"P": ["3/2", "-1/2"], "Q": ["1/2", "1/2"]}, "P[1] is negative", "-1/2")
    refused({"rho_k": 0, "S_s": [1, 0], "S_0": [0, 1]}, "rho_k is 0")
    refused({"rho_k": 1, "S_s": [1, 1], "S_0": [0, 1]}, "S_s sums to more than 1")
    refused({"rho_k": 1, "S_s": [1], "S_0": [0, 1]}, "S_s has the wrong shape")
    refused({"a": -1, "b": 2}, "a is negative")
    incoherent = next(c for c in GOLDEN["functional"] if c["type"] == "incoherent")["inputs"]
    refused(incoherent | {"ks": 2}, "ks is not an index", "0 to 1")


def test_degenerate_cases_are_answered():
    assert check_case(parse_case({"rho_k": 1, "S_s": [0, 1], "S_0": [0, 1]}))["exp_E_c"] == "0"
    assert check_case(parse_case({"rho_k": 1, "S_s": [1, 0], "S_0": [1, 0]}))["E_c_nats"] == "inf"
    assert check_case(parse_case({"rho_k": 1, "S_s": [0, 1], "S_0": [1, 0]}))["exp_E_c"] is None
    assert check_case(parse_case({"a": 2, "b": 3})) == {
        "slope_max_decimal": "0.1010205144336438",  # 5 − 2√6 = 0.101020514433643803…
        "log_odds_at_max_nats": "0.8958797346140275",  # log(6)/2 = 0.895879734614027503…
    }
    assert check_case(parse_case({"a": 0, "b": 3}))["slope_max"] == "1"
    silent = json.loads(json.dumps(MODEL)) | {"pred_y": [[["0", "0", "1"]] * 2] * 2}
    out = check_case(parse_case(silent))
    assert out["ratio"] is None and out["gamma"] == "0" and out["dominance_nats"] is None
    out = check_case(parse_case({"P": ["1", "0"], "Q": ["0", "1"]}))
    assert out["kl_P_Q_nats"] == out["chi2_P_Q"] == "inf" and out["tv"] == out["margin_floor"] == "1"
    nothing = check_case(
        parse_case(
            {"pi_k": ["1/2", "1/2"], "pi_t_given_k": [[1], [1]], "lik_key": [1, 1], "lik_z_given_kt": [[0], [1]]}
        )
    )
    assert nothing["kappa"] == ["inf", "1"] and nothing["hierarchical_P_ks"] is None and nothing["spread_nats"] == "inf"


def test_numbers():
    assert to_fraction("x", "1/3") == Fraction(1, 3) and to_fraction("x", Fraction("0.1")) == Fraction(1, 10)
    for bad in (0.1, True, None, "1/0", "one", "1e999999"):
        with pytest.raises(InputError, match="x is not a rational number"):
            to_fraction("x", bad)
    with pytest.raises(InputError, match=r"x\[1, 0\] is not a rational number"):
        exact_array("x", [[1, 2], ["?", 3]])
    assert [decimal_string(Fraction(*pair)) for pair in ((1, 3), (-2, 1), (0, 1), (1, 10**9), (10**25, 3))] == [
        "0.33333333333333333",
        "-2",
        "0",
        "1E-9",
        "3.3333333333333333E+24",
    ]


def test_files_are_read_strictly(tmp_path):
    path = tmp_path / "case.json"
    with pytest.raises(DataError, match="cannot read"):
        load_case(path)
    for text in ("{", "[NaN]", '{"a": Infinity}', '{"a": 1, "b": 2, "a": 3}'):
        path.write_text(text)
        with pytest.raises(DataError, match="is not JSON"):
            load_case(path)
    path.write_text('{"a": 1e99999, "b": 1}')
    with pytest.raises(InputError, match="a number is not a rational number"):
        load_case(path)
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(DataError, match="not text in UTF-8"):
        load_case(path)
    path.write_text('{"a": 0.25, "b": 4}')  # decimals are exact
    assert check_case(load_case(path))["slope_max"] == "3/5" and load_case(path).name == "case"


def run(tmp_path, inputs, *options):
    path = tmp_path / "my case.json"
    path.write_text(json.dumps(inputs))
    return main(["theory", options[0], str(path), *options[1:]])


def test_check_prints_one_flat_object(tmp_path, capsys):
    for case in (*GOLDEN["model_cases"][:3], *GOLDEN["functional"]):
        inputs = case["inputs"] if "type" not in case else {"type": case["type"], "inputs": case["inputs"]}
        assert run(tmp_path, inputs, "check", "--json") == 0
        out = json.loads(capsys.readouterr().out)
        assert {name: out[name] for name in case["outputs"]} == case["outputs"]
        assert not any(isinstance(value, dict | float) for value in out.values())


def test_check_prints_a_table(tmp_path, capsys):
    assert run(tmp_path, GOLDEN["model_cases"][7]["inputs"], "check") == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert lines["ratio"] == "4" and lines["c1"] == "does not exist" and lines["printed_bound_holds"] == "yes"
    assert lines["printed_needs_that_fail"] == "none"


def test_explain_and_figures(tmp_path, capsys):
    assert run(tmp_path, MODEL, "explain", "--figures", str(tmp_path / "drawn")) == 0
    out = capsys.readouterr().out
    assert "my case: The shortcut path wins." in out and out.count("drawn: ") == 2
    for name in ("map", "terms"):
        assert "<svg" in (tmp_path / "drawn" / f"my case-{name}.svg").read_text()


def test_refusals_are_one_screen_and_exit_code_2(tmp_path, capsys):
    assert run(tmp_path, MODEL | {"ks": 0, "ts": 0}, "check") == 2
    assert "latentkt theory: the two paths are the same" in capsys.readouterr().err
    assert run(tmp_path, {"a": 1, "b": 2}, "explain", "--figures", str(tmp_path)) == 2
    assert "figures of model cases only" in capsys.readouterr().err


def texts(array):
    return [texts(x) for x in array] if np.ndim(array) else str(array)


def test_every_random_case_is_answered_and_explained():
    """Zeros, shared keys and silent answers included: numbers or null, and words without a hole."""
    rng = Random(11)
    for _ in range(60):
        model, paths = random_case(rng)
        inputs = {name: texts(getattr(model, field)) for field, name in MODEL_NAMES.items()}
        indices = {"ks": paths.k_s, "ts": paths.t_s, "k0": paths.k_0, "t0": paths.t_0, "ys": paths.y_s, "y0": paths.y_0}
        case = parse_case(inputs | indices)
        json.dumps(check_case(case))
        words = explain_case(case)
        assert "path wins." in words or "Neither answer wins." in words
        assert "None" not in words and "nan" not in words.split()
