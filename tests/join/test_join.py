"""The join: priors of items, the line with errors in both, rivals, what is listed and what is said."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from latentkt.corpus import Patterns, count_corpus, count_texts
from latentkt.errors import DataError, InputError
from latentkt.join import (
    errors_in_both,
    item_priors,
    join_dominance,
    prior_verdict,
    read_precision,
    write_precision_sheet,
)
from latentkt.plots.join import dominance_scatter


@pytest.fixture(autouse=True)
def _fewer_replicates(monkeypatch):
    monkeypatch.setattr("latentkt.join.verdict.REPLICATES", 200)


@dataclass(frozen=True)
class Item:
    id: str
    paths: dict | None


KEYS = {f"k{i}": [f"Name{i}"] for i in range(9)}
PATTERNS = {"keys": KEYS, "tasks": {"t": ["sums"]}, "pairs": [["k0", "k1"]]}
UNITS = [40, 10, 20, 5, 80, 8, 30, 2, 0]


@pytest.fixture(scope="module")
def counts():
    texts = [f"Name{i} does sums" for i, n in enumerate(UNITS) for _ in range(n)] + ["Name0 and Name1"]
    return count_texts(texts, PATTERNS, windows=[5])


@pytest.fixture(scope="module")
def items():
    pairs = [(0, 1), (2, 3), (4, 5), (6, 0), (1, 4), (3, 2), (8, 7), (8, 8)]
    named = [Item(f"i{a}{b}", {"shortcut": f"k{a}:t", "correct": f"k{b}:t"}) for a, b in pairs]
    return [*named, Item("none", None)]


def test_priors_of_items(counts, items):
    table = item_priors(items, counts, precision={"k0:t": 0.9}).set_index("item")
    assert table.loc["i01", "log_prior_ratio"] == pytest.approx(math.log(4), abs=0.05)
    assert table.loc["i01", "low"] < math.log(4) < table.loc["i01", "high"]
    assert table.loc["i01", "key_pair"] == 1 and math.isnan(table.loc["i23", "key_pair"])
    assert table.loc["i01", "precision_shortcut"] == 0.9 and math.isnan(table.loc["i01", "precision_correct"])
    assert table["plotted"].tolist() == [True] * 6 + [False] * 3
    assert table.loc["i87", "why_not"] == "fewer than 5 supporting clusters"
    assert table.loc["i88", "why_not"] == "neither path occurs"
    assert table.loc["none", "why_not"] == "the item has no paths"


def test_the_line_is_the_nearest_to_all_points():
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 2, 60)
    x_error, y_error = rng.uniform(0.2, 1.0, 60), rng.uniform(0.5, 1.5, 60)
    x, y = truth + rng.normal(0, x_error), 1 + 0.8 * truth + rng.normal(0, y_error)
    line = errors_in_both(x, y, x_error, y_error, replicates=200)
    if line.scatter:
        y_error = np.hypot(y_error, line.scatter)

    def distance(line):  # weighted orthogonal distance of all points
        return float(((y - line[1] - line[0] * x) ** 2 / (y_error**2 + line[0] ** 2 * x_error**2)).sum())

    best = optimize.minimize(distance, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    assert [line.slope, line.intercept] == pytest.approx(best, abs=1e-4)
    assert line.slope_low < 0.8 < line.slope_high


def test_errors_in_x_do_not_pull_the_slope_to_zero():
    rng = np.random.default_rng(1)
    slopes, ordinary, covered = [], [], 0
    for _ in range(60):
        truth, family = rng.normal(0, 1, 80), np.repeat(np.arange(20), 4)
        x = truth + rng.normal(0, 0.7, 80)
        y = truth + rng.normal(0, 0.5, 80)  # scatter that no error bar names
        line = errors_in_both(x, y, np.full(80, 0.7), np.zeros(80), cluster=family, replicates=100)
        slopes.append(line.slope)
        ordinary.append(line.ordinary)
        covered += line.slope_low <= 1 <= line.slope_high
    assert abs(np.mean(slopes) - 1) < 0.08 and np.mean(ordinary) < 0.75
    assert covered >= 50


def test_no_line_through_too_few_points():
    one = np.ones(3)
    with pytest.raises(InputError, match="no line"):
        errors_in_both(one, one, one, one)
    with pytest.raises(InputError, match="no line"):
        errors_in_both(np.ones(9), np.arange(9.0), np.ones(9), np.ones(9))


def _dominance(table, slope):
    rng = np.random.default_rng(2)
    shown = table[table["log_prior_ratio"].notna()]
    y = slope * shown["log_prior_ratio"] + rng.normal(0, 0.2, len(shown))
    return pd.DataFrame({"item": shown["item"], "dominance": y, "answer_length": rng.integers(-2, 3, len(shown))})


def test_the_verdict_follows_the_slope(counts, items):
    priors = item_priors(items, counts)
    joined = join_dominance(priors, _dominance(priors, 1.0))
    verdict = prior_verdict(joined)
    assert verdict.n == 6 and 0.8 < verdict.line.slope < 1.2
    assert "rises with the log prior ratio" in verdict.sentence and "+1 lies inside" in verdict.sentence
    assert set(verdict.listed) == {"i87", "i88", "none"}
    assert verdict.rivals["log_prior_ratio"].value > 0.9 and verdict.rivals["answer_length"].n == 6
    assert "not the model's training data" in verdict.caveat
    assert prior_verdict(joined, training_corpus=True).caveat == ""
    falling = prior_verdict(join_dominance(priors, _dominance(priors, -1.0)))
    assert "against the theory" in falling.sentence
    flat = prior_verdict(join_dominance(priors, _dominance(priors, 0.0)))
    assert "does not explain" in flat.sentence
    none = prior_verdict(join_dominance(priors, _dominance(priors, 1.0).iloc[:2]))
    assert none.line is None and "nothing can be said" in none.sentence
    assert none.listed["i45"] == "not measured"


def test_intervals_of_rivals_resample_families():
    """Twenty copies of four families say no more than four families: the interval of a correlation stays as wide."""
    rng = np.random.default_rng(3)
    family = np.repeat(np.arange(8), 10)
    x, shift = rng.normal(0, 1, 8)[family], rng.normal(0, 1, 8)[family]
    table = pd.DataFrame({"item": [f"i{i}" for i in range(80)], "plotted": True, "why_not": "", "family": family,
                          "log_prior_ratio": x, "se": 0.1, "dominance": x + shift, "dominance_se": 0.0, "key_pair": 3.0,
                          "log_key_ratio": x + rng.normal(0, 0.1, 80), "answer_length": rng.normal(0, 1, 80),
                          "log_key_pair": 2 * shift + rng.normal(0, 0.01, 80)})  # fmt: skip
    verdict = prior_verdict(table)
    own = verdict.rivals["log_prior_ratio"]
    assert own.value == pytest.approx(np.corrcoef(x, x + shift)[0, 1])
    assert own.clusters == 8 and own.low < own.value < own.high
    alone = prior_verdict(table.assign(family=np.nan)).rivals["log_prior_ratio"]
    assert alone.clusters is None and own.high - own.low > 1.5 * (alone.high - alone.low)
    assert verdict.partial["log_key_pair"].excludes(0)  # the company of the keys is half of what was made here
    assert not verdict.partial["answer_length"].excludes(0)
    assert math.isnan(prior_verdict(table.assign(log_key_pair=np.nan)).partial["log_key_pair"].value)


def test_dominance_must_be_one_row_an_item(counts, items):
    priors = item_priors(items, counts)
    with pytest.raises(InputError, match="one row an item"):
        join_dominance(priors, pd.DataFrame({"item": ["i01", "i01"], "dominance": [1.0, 2.0]}))
    with pytest.raises(InputError, match="no items"):
        item_priors([], counts)


def test_the_figure_shows_what_is_plotted(counts, items):
    priors = item_priors(items, counts)
    joined = join_dominance(priors, _dominance(priors, 1.0))
    line = prior_verdict(joined).line
    figure = dominance_scatter(joined, slope=line.slope, intercept=line.intercept)
    axes = figure.axes[0]
    assert figure.get_supxlabel().startswith("6 items, 3 listed only.")
    points = [at for drawn in axes.lines if drawn.get_marker() == "o" for at in drawn.get_xdata()]
    assert sorted(points) == sorted(joined.loc[joined["plotted"], "log_prior_ratio"])
    with pytest.raises(InputError, match="no item"):
        dominance_scatter(joined[~joined["plotted"].astype(bool)], slope=1, intercept=0)


def test_precision_from_a_read_sheet(tmp_path):
    rows = [json.dumps({"text": f"Name0 does sums {i}"}) for i in range(5)]
    (tmp_path / "c.jsonl").write_text("\n".join(rows))
    count_corpus([str(tmp_path / "c.jsonl")], Patterns.from_dict(PATTERNS), str(tmp_path / "out"))
    sheet = tmp_path / "sheet.csv"
    write_precision_sheet(tmp_path / "out", ["k0:t", "k1:t"], sheet, n=4)
    assert read_precision(sheet) == {}
    with sheet.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 4 and table[0]["key"] == "Name0"
    for row, mark in zip(table, ["1", "1", "0", ""], strict=True):
        row["good"] = mark
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    assert read_precision(sheet) == {"k0:t": pytest.approx(2 / 3)}
    sheet.write_text("path,good\nk0:t,maybe\n")
    with pytest.raises(DataError, match=":2: bad mark"):
        read_precision(sheet)
    sheet.write_text("a,b\n")
    with pytest.raises(DataError, match="no sheet"):
        read_precision(sheet)
