"""Sections on attribution and placebos say what their tables hold, and no more."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from latentkt.internals import effects_against_placebo
from latentkt.report.sections import attribution as attribution_section
from latentkt.report.sections import placebo as placebo_section
from tests.internals.test_effects import simulated
from tests.plots.test_inside import attribution

BOTH = ("correct_first", "shortcut_first")


def run_of(**tables):
    return SimpleNamespace(tables=tables, identity={"preset": "quick"}, metadata={})


def effects(planted, orders=BOTH):
    return effects_against_placebo(*simulated(np.random.default_rng(0), planted=planted, orders=orders))


def test_no_table_no_section():
    assert attribution_section.section(run_of()) is None and placebo_section.section(run_of()) is None


@pytest.mark.parametrize(("planted", "found"), [(2.0, True), (0.0, False)])
def test_the_placebo_section_names_what_differs_and_what_does_not(planted, found):
    section = placebo_section.section(run_of(effects=effects(planted)))
    (finding,) = section.findings
    assert finding.found is found and "16 families" in finding.text
    assert ("1 cells differ" in finding.text) is found
    assert any(block.kind == "grid" and block.rows for block in section.blocks)


def test_one_order_gives_no_verdict_in_words_either():
    (finding,) = placebo_section.section(run_of(effects=effects(2.0, orders=("correct_first",)))).findings
    assert finding.found is None and "one option order only" in finding.text


def test_the_attribution_section_compares_item_and_control():
    table = attribution().assign(completeness_error=1e-6, norm="frozen")
    shifted = (table["component"] == "mlp") & (table["which"] == "item") & (table["layer"] == 11)
    table.loc[shifted, "contribution"] += 40
    section = attribution_section.section(run_of(attribution=table))
    texts = [finding.text for finding in section.findings]
    assert len(texts) == 2 and "MLPs together change" in texts[1] and section.findings[1].found
    assert "1.0e-06 nat" in section.blocks[-1].text
