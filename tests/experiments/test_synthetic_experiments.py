"""The judges of the experiments, on runs whose law is known: as stated, frequency ignored, constraint ignored."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from latentkt.errors import DataError
from latentkt.synthetic import WorldConfig, make_world
from latentkt.synthetic.experiment import load_config, verdict_of
from latentkt.synthetic.items import choice_items
from latentkt.synthetic.summary import fit_table, item_table

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def _experiment(name: str):
    spec = importlib.util.spec_from_file_location(name, EXPERIMENTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class _Run:
    tables: dict
    identity: dict


def _run(*, slope: float, evidence: dict[str, float]) -> _Run:
    """Answers by slope · log r − evidence, the evidence by cluster."""
    world = make_world(replace(WorldConfig(), levels=12), seed=0)
    items = choice_items(world)
    constraint = np.where(items["pairing"] == "opposed", items["cluster"].map(evidence), 0.0)
    parts = []
    for order in ("correct_first", "shortcut_first"):
        table = items.assign(seed=0, order=order, dominance=slope * items["log_prior_ratio"] - constraint)
        table["dominance_control"] = slope * items["log_prior_ratio"] + constraint
        chance = 1 / (1 + np.exp(-table["dominance"]))
        table = table.assign(p_shortcut=chance, p_correct=1 - chance, off_options=0.0, knows_shortcut=True)
        table = table.assign(knows_correct=True, tv_ideal=chance, tv_bayes=0.0, tv_bayes_ideal=chance, tv_floor=chance)
        parts.append(table)
    fits = fit_table(item_table(pd.concat(parts, ignore_index=True)))
    return _Run({"fits": fits}, {"preset": "small", "seeds": {"networks": [0]}})


WORLDS = {
    "as stated": ({"slope": 1.0, "evidence": {"independent": 0.5, "cooccurring": 6.0}}, "confirmed", "confirmed"),
    "frequency ignored": ({"slope": 0.0, "evidence": {"independent": 0.5, "cooccurring": 6.0}}, "refuted", "refuted"),
    "constraint ignored": (
        {"slope": 1.0, "evidence": {"independent": 0.5, "cooccurring": 0.5}},
        "confirmed",
        "refuted",
    ),
    "constraint everywhere": (
        {"slope": 1.0, "evidence": {"independent": 6.0, "cooccurring": 6.0}},
        "confirmed",
        "refuted",
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_judges_confirm_what_is_true_and_refute_what_is_false(name):
    figures, law, cooccurrence = WORLDS[name]
    run = _run(**figures)
    assert verdict_of(_experiment("dominance_law").judge(run)) == law
    assert verdict_of(_experiment("cooccurrence").judge(run)) == cooccurrence


@pytest.mark.parametrize("name", ["dominance_law", "cooccurrence"])
def test_configurations_are_read_strictly(name, tmp_path):
    config = load_config(EXPERIMENTS / "configs" / f"{name}.json")
    assert config["false_settings"] == {"world.labels": "permuted"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "colour": "red"}))
    with pytest.raises(DataError):
        load_config(path)
