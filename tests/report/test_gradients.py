"""Sections on gradients, knockout and faithfulness say what their tables hold, and no more."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from latentkt.report.sections import faithfulness, gradients, knockout
from tests.plots.test_gradients import curves, cuts, predictions


def run_of(**tables):
    return SimpleNamespace(
        tables=tables, identity={"preset": "quick"}, metadata={}, has=lambda name: len(tables.get(name, ())) > 0
    )


def test_no_table_no_section():
    assert all(module.section(run_of()) is None for module in (gradients, knockout, faithfulness))


@pytest.mark.parametrize("slope", [1.0, 0.5])
def test_the_section_on_gradients_says_how_far_predictions_are_right(slope):
    tables = {"atp": predictions(slope=slope), "edges": predictions("eap", slope=slope, seed=1)}
    section = gradients.section(run_of(**tables))
    assert len(section.findings) == 2 and all(finding.found is None for finding in section.findings)
    # Misses are sought among the sampled cells that are not among the largest: 8 of 10 an item.
    assert f"slope {slope:.2f}" in section.findings[0].text
    assert "missed among 48 sampled outside the largest" in section.findings[0].text
    kinds = [block.kind for block in section.blocks]
    assert kinds == ["picture", "grid", "grid", "note"]
    both = predictions().query("layer == 0").assign(predicted=2.0)
    both = pd.concat([both, both.assign(direction="item_to_control", predicted=-2.0)])
    for grid in gradients.section(run_of(atp=both, edges=both)).blocks[1:3]:
        ways = {(row[2], row[3]) for row in grid.rows}
        assert ways == {("control to item", "+2.00"), ("item to control", "-2.00")}
    assert "0.25 nats" in section.blocks[-1].text and "70 %" in section.blocks[-1].text
    unchecked = predictions().assign(exact=np.nan)
    assert [block.kind for block in gradients.section(run_of(atp=unchecked)).blocks] == ["grid", "note"]


def test_the_section_on_knockout_names_the_strongest_cut_and_the_window():
    section = knockout.section(run_of(knockout=cuts()))
    assert "constraint → last in layer 3: -1.9" in section.findings[0].text and len(section.findings) == 2
    assert "Window: 1 layer." in section.blocks[-1].text and "12 edges did not exist" in section.blocks[-1].text
    nothing = knockout.section(run_of(knockout=cuts().assign(effect=np.nan)))
    assert nothing.findings[0].text.startswith("No edge") and not nothing.blocks


def test_the_section_on_faithfulness_stands_beside_a_random_ranking():
    section = faithfulness.section(run_of(faithfulness=curves()))
    text = section.findings[0].text
    assert "top 5 % of nodes" in text and "(atp)" in text and "(random)" in text and "6 items" in text
    assert "ranked on the very pair" in section.blocks[-1].text
    undefined = faithfulness.section(run_of(faithfulness=curves(gap=False)))
    assert "not defined" in undefined.findings[0].text and [b.kind for b in undefined.blocks] == ["note"]
