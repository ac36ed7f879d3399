"""Sections on concepts that do not exist: what they say follows from the tables, in either direction."""

from __future__ import annotations

import pandas as pd
import pytest

from latentkt.phantom.analysis import analyse, write_analysis
from latentkt.report.sections import phantom, phantom_inside
from latentkt.results import create_run, load_run
from tests.phantom.making_answers import judged_answers
from tests.plots.test_phantom import _probe, _steering


def _said(section) -> str:
    return " ".join(finding.text for finding in section.findings)


@pytest.mark.parametrize(("phantom_rate", "found"), [(0.9, True), (0.1, False)])
def test_selectivity_is_found_where_it_is(phantom_rate, found, tmp_path):
    answers = judged_answers("m", {"phantom": phantom_rate, "common": 0.1}, n=30)
    section = phantom.section(load_run(write_analysis(analyse(answers), tmp_path / "run")))
    (finding,) = [each for each in section.findings if "minus that on common" in each.text]
    assert finding.found is found
    assert "does not exist" in finding.text if found else "not distinguishable" in finding.text
    assert f"{100 - 100 * phantom_rate:.0f} %" in _said(section)


def test_a_fallback_is_named_and_a_judge_is_not_called_one(tmp_path):
    from dataclasses import replace

    answers = judged_answers("m", {"phantom": 0.5})
    for judge, expected in (("model x/y", False), ("phrase list (fallback, version 9)", True)):
        named = [replace(answer, judge=judge) for answer in answers]
        section = phantom.section(load_run(write_analysis(analyse(named), tmp_path / judge.split()[0])))
        notes = " ".join(block.text for block in section.blocks if block.kind == "note")
        assert judge in notes and ("not a judge's" in notes) is expected


def _inside(folder, *, evidence, slope, largest):
    summary = pd.DataFrame(
        {"direction": ["made"], "layer": 2, "slope": slope, "slope_low": slope - 0.01, "slope_high": slope + 0.01}
    ).assign(n=9, placebo_largest=largest, placebos=4)
    with create_run(folder, metadata={}) as run:
        run.save("phantom_probe", _probe().assign(evidence=evidence))
        run.save("phantom_steering", _steering())
        run.save("phantom_steering_summary", summary)
        run.finish()
    return phantom_inside.section(load_run(folder))


def test_probe_and_steering_are_found_only_against_their_baselines(tmp_path):
    there = _inside(tmp_path / "a", evidence=True, slope=0.2, largest=0.05)
    assert [finding.found for finding in there.findings] == [True, True]
    assert "more than each of 4 random directions" in _said(there)
    absent = _inside(tmp_path / "b", evidence=False, slope=0.2, largest=0.3)
    assert [finding.found for finding in absent.findings] == [False, False]
    assert "in no layer more" in _said(absent) and "no more than a random direction" in _said(absent)
    assert (
        phantom_inside.section(load_run(write_analysis(analyse(judged_answers("m", {"phantom": 0.5})), tmp_path / "c")))
        is None
    )
