"""The paper's figures come out of the built records, and not out of records with one column shuffled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from latentkt.errors import DataError
from latentkt.trapqa.analysis import analyse, records_from_frame

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
TWO = ("Claude/low", "DeepSeek/low")


@pytest.fixture(scope="module")
def experiment():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXPERIMENTS))
        import paper_records
        import paper_tables

        yield paper_records, paper_tables


@pytest.fixture(scope="module")
def built(experiment):
    paper = experiment[0].read_paper()
    return paper, experiment[0].build(paper)


def test_every_computable_figure_is_reproduced(experiment, built):
    _, module = experiment
    paper, frame = built
    analysis = analyse(records_from_frame(frame))
    figures = [*module.compare_settings(paper, analysis.to_json()), *module.compare_rest(paper, analysis)]
    differ = [figure for figure in figures if not figure.same]
    assert len(figures) == 441 and not differ, differ[:5]
    tables = {figure.table for figure in figures}
    assert tables == {*module.RECOMPUTED, "table6", "table11", "h6", "fame", "off_option"}
    assert not [line for line in analysis.ledger.lines if line.table == "records"]
    texts = module.anomalies(paper, analysis)
    assert any("swapped in Table 4, Table 5, Table 7, Table 8, Table 10" in text for text in texts)
    assert any(text.startswith("In 8 of 8 settings") for text in texts)
    assert any("odds ratio 0.58" in text for text in texts)


def test_all_settings_share_the_fame_of_a_question(built):
    names = built[1][built[1]["condition"] == "names"]
    assert (names.groupby("question_id")[["correct_fame", "shortcut_fame"]].nunique() == 1).all(axis=None)


@pytest.mark.parametrize(
    "column",
    [
        "question_id", "setting", "condition", "answer", "probe_eliminative_correct", "probe_compatibility_correct",
        "probe_eliminative_predicted", "probe_compatibility_predicted", "correct_fame", "shortcut_fame", "family",
    ],
)  # fmt: skip
def test_a_shuffled_column_breaks_a_table(experiment, built, column):
    _, module = experiment
    paper, frame = built
    part = frame[frame["setting"].isin(TWO) & (frame["condition"] == "names")].reset_index(drop=True)
    part = pd.concat([part, frame[frame["setting"].isin(TWO) & (frame["condition"] == "profiles")]], ignore_index=True)
    rng = np.random.default_rng(0)
    shuffled = part.copy()
    if column in ("condition", "setting"):  # as they stand, the keys would no longer be unique: shuffle among questions
        shuffled[column] = part.groupby("question_id")[column].transform(lambda own: rng.permutation(own.to_numpy()))
    else:
        for _, index in part.groupby(["setting", "condition"]).groups.items():
            shuffled.loc[index, column] = rng.permutation(part.loc[index, column].to_numpy())
    small = {**paper, "settings": {setting: paper["settings"][setting] for setting in TWO}}
    whole = module.compare_settings(small, analyse(records_from_frame(part), only=module.RECOMPUTED).to_json())
    assert all(figure.same for figure in whole)
    published = paper["consensus"]["families"]
    assert families(records_from_frame(part), published) == published
    try:
        records = records_from_frame(shuffled)
    except DataError:
        return
    figures = module.compare_settings(small, analyse(records, only=module.RECOMPUTED).to_json())
    assert any(not figure.same for figure in figures) or families(records, published) != published


def families(records, questions):
    """The families of Table 6, for questions of which two settings are enough to know them."""
    once = records.frame.drop_duplicates("question_id").set_index("question_id")["family"]
    return {question: once[question] for question in questions}


def test_margins_that_cannot_hold_together_are_refused(experiment):
    records, _ = experiment
    with pytest.raises(ValueError, match="0 counts"):
        records.whole(10, (10, 33.33))
    with pytest.raises(ValueError, match="cannot hold"):
        records.split_of_choices({"one_wrong": 5, "one_correct": 5}, 10, 2, 5, np.arange(20) < 8)


@pytest.mark.slow
def test_the_script_runs(tmp_path):
    command = [sys.executable, str(EXPERIMENTS / "paper_tables.py"), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "441 of 441 published figures reproduced" in done.stdout
    assert (tmp_path / "run" / "tables.md").exists()
