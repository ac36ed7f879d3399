"""A theory case: a JSON file of rational numbers, read strictly and answered exactly.

A case is a bare object of inputs, or {"type": "model"|"tv"|"critical"|"slope"|"incoherent", "inputs": …}. Unknown keys
are refused, so that a misspelt one cannot pass in silence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, InputError
from latentkt.keytask.exact import ExactModel
from latentkt.keytask.paths import PathPair
from latentkt.keytask.rational import to_fraction

__all__ = ["MODEL_NAMES", "TheoryCase", "check_case", "load_case", "model_of", "parse_case"]

MODEL_NAMES = {
    "prior_key": "pi_k",
    "prior_task": "pi_t_given_k",
    "likelihood": "lik_z_given_kt",
    "emission": "pred_y",
}
"""What a case calls the arrays of a model."""

_PATHS = ("ks", "ts", "k0", "t0", "ys", "y0")
_MODEL = (*MODEL_NAMES.values(), *_PATHS)
# type -> (required keys, optional keys)
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "model": (_MODEL, ("lik_key", "incoherent", "binding", "P_star")),
    "tv": (("P", "Q"), ("ys", "y0")),
    "critical": (("rho_k", "S_s", "S_0"), ()),
    "slope": (("a", "b"), ()),
    "incoherent": (("pi_k", "pi_t_given_k", "lik_key", "lik_z_given_kt"), ("ks",)),
}


@dataclass(frozen=True, slots=True)
class TheoryCase:
    """One case, its keys checked.

    Attributes:
        type: `model`, `tv`, `critical`, `slope` or `incoherent`.
        inputs: The inputs as read; decimals are exact `Fraction`s.
        name: Where it comes from, for messages and titles.
    """

    type: str
    inputs: Mapping[str, Any]
    name: str = "case"


def load_case(path: Path | str) -> TheoryCase:
    """Read a case from a JSON file.

    Raises:
        DataError: The file cannot be read, or is not JSON.
        InputError: Unknown or missing keys.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text, parse_float=_decimal, parse_constant=_no_constant, object_pairs_hook=_unique)
    except OSError as error:
        raise DataError(f"cannot read {path}", found=error, fix="name a JSON file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in UTF-8", found=error) from None
    except (ValueError, ZeroDivisionError) as error:
        raise DataError(f"{path} is not JSON", found=error, fix='write rationals as strings: "1/3"') from None
    return parse_case(data, name=path.stem)


def _decimal(text: str) -> Fraction:
    return to_fraction("a number", text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError(f"a key stands twice among {', '.join(key for key, _ in pairs)}")
    return data


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def parse_case(data: Any, *, name: str = "case") -> TheoryCase:
    """Read a case from parsed JSON.

    Raises:
        InputError: Unknown or missing keys, or inputs of no known type.

    Example:
        >>> parse_case({"a": "1/99", "b": 99}).type
        'slope'
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{name} is no case", expected="a JSON object", found=type(data).__name__)
    if "inputs" in data:
        _refuse_unknown(name, data, ("type", "inputs", "name", "note"))
        inputs, kind = data["inputs"], data.get("type")
        if not isinstance(inputs, Mapping):
            raise InputError(f"inputs of {name} are no object", expected="an object", found=type(inputs).__name__)
        name = str(data.get("name", name))
    else:
        inputs, kind = data, None
    kind = _infer_type(name, inputs) if kind is None else kind
    if kind not in _KEYS:
        raise InputError(f"type of {name} is unknown", expected=", ".join(_KEYS), found=repr(kind))
    required, optional = _KEYS[kind]
    _refuse_unknown(name, inputs, (*required, *optional))
    missing = [key for key in required if key not in inputs]
    if missing:
        raise InputError(
            f"{name} lacks {', '.join(missing)}",
            expected=f"a {kind} case has {', '.join(required)}",
            found=list(inputs),
        )
    return TheoryCase(kind, dict(inputs), name)


def _refuse_unknown(name: str, data: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = [key for key in data if key not in known]
    if unknown:
        raise InputError(
            f"{name} has unknown keys: {', '.join(unknown)}",
            expected=", ".join(known),
            found=", ".join(data),
            fix="remove or respell them",
        )


def _infer_type(name: str, inputs: Mapping[str, Any]) -> str:
    telling = {"pred_y": "model", "P": "tv", "S_s": "critical", "lik_key": "incoherent", "a": "slope"}
    for key, kind in telling.items():
        if key in inputs:
            return kind
    if "pi_k" in inputs:
        return "model"
    raise InputError(
        f"{name} is of no known type",
        expected=f"inputs with one of {', '.join(telling)}",
        found=", ".join(inputs) or "an empty object",
    )


def model_of(case: TheoryCase) -> tuple[ExactModel, PathPair]:
    """The exact model of a case of type `model`, and its two paths.

    Raises:
        InputError: Naming array, index and value.
    """
    i = case.inputs
    model = ExactModel.from_rationals(*(i[key] for key in MODEL_NAMES.values()), names=MODEL_NAMES)
    paths = PathPair(k_s=i["ks"], t_s=i["ts"], k_0=i["k0"], t_0=i["t0"], y_s=i["ys"], y_0=i["y0"])
    n_keys, n_tasks, n_answers = model.emission.shape
    paths.check_within(n_keys, n_tasks, n_answers)
    return model, paths


def check_case(case: TheoryCase) -> dict[str, Any]:
    """Every output of a case as one flat mapping.

    Rationals are strings such as `3/10`; what is irrational is a decimal of 17 digits under a name that ends in
    `_nats` or `_decimal`; what does not exist is None.

    Example:
        >>> check_case(parse_case({"rho_k": 3, "S_s": ["4/5", 0], "S_0": [0, "2/5"]}))["exp_E_c"]
        '6'
    """
    from latentkt.keytask.outputs import OUTPUTS

    return OUTPUTS[case.type](case)
