"""The report says what the tables say, in words, on one page that needs nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from latentkt.cli import main
from latentkt.errors import DataError, RunError
from latentkt.report import build
from latentkt.report.page import render
from latentkt.report.sections import (
    SECTIONS,
    answers,
    explicitness,
    lens,
    modules,
    patching,
    position,
    probes,
    steering,
)
from latentkt.report.wording import effect, share
from latentkt.results import create_run, load_run
from latentkt.stats import Interval
from tests import result_tables

READING = ("probe", "probe_layers", "steer", "steer_text", "verdict", "explicitness")


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures are made but not drawn, which is most of a page's time, where only words are looked at."""
    monkeypatch.setattr("latentkt.report.blocks.to_svg", lambda figure: "<svg xmlns='http://www.w3.org/2000/svg'/>")


class _Reader(HTMLParser):
    """Open and closed tags, addresses, and the text between."""

    VOID = frozenset({"meta", "link", "img", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.anchors: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        values = dict(attrs)
        self.addresses += [values[name] for name in ("src", "href", "srcset", "data", "action") if values.get(name)]
        self.anchors += [values["id"]] if values.get("id") else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def words(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(read(page).text))


def found(section) -> dict[str, bool | None]:
    return {finding.text: finding.found for finding in section.findings}


def test_the_page_asks_for_nothing(page):
    reader = read(page)
    assert all(address.startswith(("data:", "#")) for address in reader.addresses)
    assert {address[1:] for address in reader.addresses if address.startswith("#")} <= set(reader.anchors)
    outside = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", page)
    assert not re.search(r"https?://|@import|url\(|<script", outside)


def test_the_page_says_how_the_run_was_made(page):
    text = words(page)
    for word in ("smollm2", "LlamaForCausalLM", "float32, eager, cpu", "quick", "items 0, probe 0", "3f8e2c9a51d0…"):
        assert word in text
    assert "latentkt study smollm2 --out runs/example" in text
    assert "70 asked" in text
    assert "versions.numpy" in text


def test_every_section_is_there_in_order(page):
    absent = {"attribution", "placebo", "components", "tokens", "join", "construction", "synthetic"}
    absent |= {"synthetic_inside", "gradients", "knockout", "faithfulness"}
    absent |= {"phantom", "phantom_inside"}  # this run has no such tables
    measured = [name for name in SECTIONS if name not in absent]
    anchors = [anchor for anchor in read(page).anchors if anchor in {*SECTIONS, "skipped", "provenance"}]
    assert anchors == [*measured, "skipped", "provenance"]


def test_what_was_skipped_is_counted_and_listed(page):
    text = words(page)
    assert "3 things were skipped" in text and "nobel_physics-0" in text
    assert "4,032 cells 48 do not exist" in text


def test_a_mechanism_that_is_there_is_found(run, undrawn):
    texts = found(answers.section(run))
    assert any("moves the log-odds of y* by +0.6" in text and verdict is True for text, verdict in texts.items())
    assert any(
        "17 of 36 cells move" in text or "cells move the answer" in text for text in found(patching.section(run))
    )
    assert any("reads more than a bag" in text and verdict for text, verdict in found(probes.section(run)).items())
    assert any("differ in" in text and verdict for text, verdict in found(lens.section(run)).items())
    # An order is worth twice the bias of 1.49: exchanging options is held against exchanging item and control.
    assert any(
        "more than exchanging item and control does: 2.97 against 0.67" in text
        or "more than exchanging item and control does: 2.98 against 0.67" in text
        for text in found(position.section(run))
    )


def test_a_mechanism_that_is_not_there_is_said_not_to_be_found(tmp_path, undrawn):
    """No effect of the constraint, none of patching; a probe that reads what the bag reads."""
    probe = result_tables.probe()
    probe["score"] = probe["bag_score"] + np.random.default_rng(0).normal(0, 0.02, len(probe))
    flat = result_tables.lens()
    flat["first_token_log_odds"] = np.random.default_rng(1).normal(size=len(flat))
    path = result_tables.write_run(
        tmp_path / "run",
        answers=result_tables.answers(effect=0.0),
        patch=result_tables.patch(planted=0.0),
        probe=probe,
        probe_layers=result_tables.probe_layers(probe),
        lens=flat,
    )
    run = load_run(path)
    for module in (answers, lens, patching, probes):
        assert True not in found(module.section(run)).values(), module
    text = words(render(run))
    assert "not distinguishable from chance (50 %)" in text
    assert "none of 36 cells is distinguishable from no effect" in text
    assert "Item and control differ in no layer" in text
    assert "the probe reads no more than a bag of tokens" in text


def test_steering_verdicts_and_levels_are_put_into_words(run, undrawn):
    text = words(render(run))
    assert "add +1: more than any random direction of the same length" in text
    assert "of 28 items: 10 solved, 18 shortcut followed, 0 undecided" in text.lower()
    assert "Of 2 items whose constraint could be measured: 0 unread, 1 read but outweighed, 1 read and decisive" in text
    assert "The effect of the constraint (item − control): change a level +0.10" in text


def test_steering_without_random_directions_says_so(tmp_path, undrawn):
    own = result_tables.steer()
    run = load_run(result_tables.write_run(tmp_path / "run", steer=own[own["control"] == ""].reset_index(drop=True)))
    findings = [finding for finding in steering.section(run).findings if "add" in finding.text]
    assert findings
    assert all(each.found is None and "no random direction was run" in each.text for each in findings)


def test_items_at_one_level_each_have_no_section_on_levels(tmp_path):
    table = result_tables.explicitness()
    table.loc[table["statistic"] == "change", ["value", "low", "high", "n_groups"]] = [np.nan, np.nan, np.nan, 0]
    assert explicitness.section(load_run(result_tables.write_run(tmp_path / "run", explicitness=table))) is None


def test_few_families_are_described_and_not_tested(tmp_path, undrawn):
    patch = result_tables.patch()
    patch = patch[patch["family"].isin(["nobel_physics", "timing_order", "died_after"])].reset_index(drop=True)
    run = load_run(result_tables.write_run(tmp_path / "run", patch=patch))
    assert all("with 3 families no cell can reach" in text for text in found(patching.section(run)))


def test_near_chance_is_worded_as_such():
    at_chance = share("The model answers", Interval(0.51, 0.45, 0.57, 0.95, "", 104, 14))
    assert at_chance.found is False and "not distinguishable from chance (50 %)" in at_chance.text
    below = share("The model answers", Interval(0.31, 0.25, 0.37, 0.95, "", 104, 14))
    assert below.found is True and below.text.endswith("below chance (50 %).")
    alone = share("The model answers", Interval(0.5, np.nan, np.nan, 0.95, "", 1, 1))
    assert alone.found is None and alone.text.endswith("(1 item, 1 family): too few for an interval.")
    assert effect("It moves by", Interval(0.5, np.nan, np.nan, 0.95, "", 1, 1)).found is None


def test_sections_without_tables_are_named_as_not_measured(tmp_path, undrawn):
    run = load_run(result_tables.write_run(tmp_path / "run", leave_out=("lens", "patch", *READING, "skipped")))
    text = words(render(run))
    absent = (
        "Logit lens, Direct logit attribution, Patching by role, Patching against placebo, Patching of components, "
        "Token by token, Attribution patching, Attention knockout, Faithfulness, Probes, Steering, Verdict by item, "
        "Prior and dominance."
    )
    assert f"Not measured in this run: {absent}" in text
    assert "This run kept no list of skipped things." in text


def test_items_without_controls_are_reported_as_far_as_they_go(tmp_path, undrawn):
    path = result_tables.write_run(
        tmp_path / "run",
        leave_out=("patch", *READING),
        answers=result_tables.answers().query("which == 'item'").reset_index(drop=True),
        lens=result_tables.lens().query("which == 'item'").reset_index(drop=True),
    )
    text = words(render(load_run(path)))
    assert (
        "In the items the model answers" in text and "In the controls" not in text and not re.search(r"\bnan\b", text)
    )
    assert "Not measured in this run: Logit lens" in text


def test_one_order_gives_no_position_section(tmp_path, undrawn):
    table = result_tables.answers()
    table = table[table["order"] == "correct_first"].reset_index(drop=True)
    run = load_run(result_tables.write_run(tmp_path / "run", leave_out=("lens", "patch"), answers=table))
    assert position.section(run) is None
    absent = (
        "Option position, Logit lens, Direct logit attribution, Patching by role, Patching against placebo, "
        "Patching of components, Token by token, Attribution patching, Attention knockout, Faithfulness, Prior and "
        "dominance."
    )
    assert f"Not measured in this run: {absent}" in words(render(run))


def test_a_table_that_lacks_a_column_is_refused_by_name(tmp_path, undrawn):
    table = result_tables.probe_layers().drop(columns="bag_score")
    run = load_run(result_tables.write_run(tmp_path / "run", probe_layers=table))
    with pytest.raises(DataError, match="'probe_layers' lacks columns: bag_score"):
        render(run)


def test_a_run_without_known_tables_is_refused(tmp_path):
    with create_run(tmp_path / "run", metadata={}) as run:
        run.save("other", pd.DataFrame({"x": [1]}))
        run.finish()
    with pytest.raises(RunError, match="nothing to report"):
        build(load_run(tmp_path / "run"))
    assert not (tmp_path / "run" / "report.html").exists()


def test_an_unfinished_run_says_so(tmp_path, undrawn):
    with create_run(tmp_path / "run", metadata={"model": "m"}, plan={"answers": 2}) as run:
        run.write("answers", 0, result_tables.answers())
    text = words(render(load_run(tmp_path / "run", partial=True)))
    assert "The run is not finished: batches written are answers 1 of 2." in text


def test_text_from_tables_is_escaped(tmp_path, undrawn):
    table = pd.DataFrame({"item": ["<script>alert(1)</script>"], "stage": ["answers"], "reason": ["a & b"]})
    page = render(
        load_run(result_tables.write_run(tmp_path / "run", leave_out=("lens", "patch", *READING), skipped=table))
    )
    assert "<script" not in page and "&lt;script&gt;" in page


def test_every_module_of_a_section_has_its_title():
    assert all(isinstance(module.TITLE, str) for module in modules())


def test_the_commands_write_the_same_page_each_time_and_show_the_run(tmp_path, capsys):
    path = result_tables.write_run(tmp_path / "run", leave_out=("lens", "patch", *READING))
    assert main(["report", str(path)]) == 0
    assert capsys.readouterr().out.strip() == str(path / "report.html")
    assert main(["report", str(path), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == (path / "report.html").read_bytes()
    capsys.readouterr()
    assert main(["runs", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "finished" in shown and "420 rows" in shown and "latentkt study smollm2" in shown
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "no run directory" in capsys.readouterr().err
