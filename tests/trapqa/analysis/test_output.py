"""What is saved: parquet, Markdown, LaTeX, JSON, figures and the page; and the command."""

from __future__ import annotations

import argparse
import json
import re

import pandas as pd
import pytest

from latentkt.cli import main
from latentkt.commands import trapqa_analyse
from latentkt.errors import InputError, RunError
from latentkt.report.sections import trapqa_tables
from latentkt.results import load_run
from latentkt.trapqa import builtin_items
from latentkt.trapqa.analysis import analyse, records_from_frame, write_analysis
from latentkt.trapqa.analysis.analysis import MORE_TABLES, PAPER_TABLES
from latentkt.trapqa.analysis.layouts import LAYOUTS
from latentkt.trapqa.analysis.typeset import cells, latex, markdown
from tests.trapqa.analysis.rows import records


@pytest.fixture(scope="module")
def analysis():
    return analyse(records_from_frame(pd.DataFrame(records(settings=("m_a/low", "m_a/high"), missing=0.05))))


@pytest.fixture(scope="module")
def folder(analysis, tmp_path_factory):
    return write_analysis(analysis, tmp_path_factory.mktemp("out") / "run")


def test_every_table_has_a_layout_whose_columns_it_has(analysis):
    assert {*PAPER_TABLES, *MORE_TABLES} <= set(LAYOUTS)
    for name, table in analysis.tables.items():
        if name != "question_difficulty":
            missing = {column.key for column in LAYOUTS[name].columns} - set(table.columns)
            assert missing <= {"top1.fisher_p", "correct_name", "shortcut_name"}, (name, missing)


def test_tables_come_back_as_they_were(analysis, folder):
    tables = load_run(folder).tables
    for name, table in analysis.tables.items():
        pd.testing.assert_frame_equal(tables[f"trapqa_{name}"], table, check_dtype=False)
    assert len(tables["trapqa_left_out"]) == len(analysis.ledger.frame())


def test_an_existing_folder_is_refused(analysis, folder):
    with pytest.raises(RunError):
        write_analysis(analysis, folder)


def test_json_is_by_setting_and_table_and_says_what_is_not_there(analysis, folder):
    found = json.loads((folder / "analysis.json").read_text())
    assert list(found) == sorted(["m_a/low", "m_a/high"]) and found == analysis.to_json()
    assert set(found["m_a/low"]) == set(PAPER_TABLES)
    assert found["m_a/low"]["table11"] == {"not_available": "no record of condition real_life"}
    assert set(found["m_a/low"]["table5"]["derived_counts"]) >= {"miss_elim_wrong", "fisher_p_two_sided"}
    across = json.loads((folder / "across_settings.json").read_text())
    assert set(across) == {"consensus", "off_option"}


def test_markdown_has_every_table_and_what_was_left_out(analysis, folder):
    text = (folder / "tables.md").read_text()
    for name in analysis.tables:
        if name in LAYOUTS:
            assert LAYOUTS[name].title in text
    assert "no answer is recorded" in text and "not available: no record of condition real_life" in text
    row = analysis.tables["table1"].iloc[0]
    ends = f"{row['names_rate_pct']:.2f} [{row['names_rate_pct_low']:.2f}, {row['names_rate_pct_high']:.2f}]"
    assert ends in text


def test_markdown_and_latex_hold_the_same_cells(analysis):
    table = analysis.tables["table4"]
    headings, rows = cells("table4", table)
    lines = [line for line in markdown("table4", table).splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == rows[0]
    tex = latex("table4", table)
    body = tex.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert len(body) == len(rows) and all(line.count("&") == len(headings) - 1 for line in body)
    assert r"m\_a/low" in body[0] and not re.search(r"(?<!\\)[_%#]", tex.split(r"\label")[0])


def test_absent_numbers_are_dashes_not_zeros():
    rows = records(settings=("m",), n=12)
    for row in rows:
        if row["condition"] == "names":
            row["probe_eliminative_correct"] = row["probe_compatibility_correct"] = True
            row["probe_eliminative_predicted"] = row["probe_compatibility_predicted"] = None
    table = analyse(records_from_frame(pd.DataFrame(rows)), only=["table4"]).tables["table4"]
    assert cells("table4", table)[1][0][-3:] == ["0", "0", "–"]


def arguments(*words):
    parser = argparse.ArgumentParser()
    trapqa_analyse.configure(parser)
    parser.set_defaults(command_line=None)  # the command line sets it
    return parser.parse_args(list(map(str, words)))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records(settings=("m",), n=40)))
    return path


def test_the_command_writes_everything_and_prints_what_is_left_out(file, tmp_path, capsys):
    assert main(["trapqa", "analyse", str(file), "--out", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert "table11" in text and "not available: no record of condition real_life" in text
    run = load_run(tmp_path / "run")
    assert run.identity["options"]["records"][0][0] == "records.jsonl"
    page = (tmp_path / "run" / "report.html").read_text()
    assert trapqa_tables.TITLE in page and "Table 9. Direction of fame" in page
    assert {path.name for path in (tmp_path / "run" / "figures").iterdir()} == {
        "table1.svg", "table4.svg", "table9.svg", "calibration.svg"
    }  # fmt: skip


def test_json_is_all_that_is_printed(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("latentkt.report.blocks.to_svg", lambda figure: "<svg xmlns='http://www.w3.org/2000/svg'/>")
    monkeypatch.setattr(trapqa_analyse, "_figures", lambda folder: None)
    assert trapqa_analyse.run(arguments(file, "--out", tmp_path / "run", "--json")) == 0
    printed = capsys.readouterr()
    assert set(json.loads(printed.out)) == {"m"} and "not available" in printed.err


def test_fame_and_priors_are_joined_and_named_in_the_metadata(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("latentkt.report.blocks.to_svg", lambda figure: "<svg xmlns='http://www.w3.org/2000/svg'/>")
    monkeypatch.setattr(trapqa_analyse, "_figures", lambda folder: None)
    items = builtin_items("scientist").items
    rows = [
        {"question_id": item.id, "setting": "m", "condition": "names", "answer": "shortcut" if i % 3 else "correct"}
        for i, item in enumerate(items)
    ]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = list(dict.fromkeys(side.text for item in items for side in (item.correct, item.shortcut)))[2:]
    pages = pd.DataFrame({"name": names, "page_length": range(len(names))})
    pages.assign(page_views=pages["page_length"] % 7, external_links=pages["page_length"] % 3).to_csv(
        tmp_path / "pages.csv", index=False
    )
    priors = pd.DataFrame(
        {"question_id": [item.id for item in items], "log_prior_ratio": [0.5, -1.0] * (len(items) // 2)}
    )
    priors.to_csv(tmp_path / "priors.csv", index=False)
    words = ["trapqa", "analyse", "records.jsonl", "--out", "run", "--items", "builtin", "--fame", "pages.csv"]
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--norm", "rank", "--priors", "priors.csv"]) == 0
    assert "fame is not available for a candidate" in capsys.readouterr().out
    run = load_run("run")
    assert run.identity["options"]["fame"][0] == "pages.csv" and run.identity["options"]["norm"] == "rank"
    assert {"trapqa_fame_beside_priors", "trapqa_table9"} <= set(run.tables)


def test_fame_needs_the_names_of_the_candidates(file, tmp_path):
    with pytest.raises(InputError, match="--items"):
        trapqa_analyse.run(arguments(file, "--out", tmp_path / "run", "--fame", "pages.csv"))


def test_the_section_says_what_the_tables_say(analysis, folder, monkeypatch):
    monkeypatch.setattr("latentkt.report.blocks.to_svg", lambda figure: "<svg xmlns='http://www.w3.org/2000/svg'/>")
    section = trapqa_tables.section(load_run(folder))
    texts = [finding.text for finding in section.findings]
    row = analysis.tables["table1"].iloc[0]
    assert any(text.startswith(f"m_a/low, names only: {row['names_rate_pct']:.1f} % [") for text in texts)
    whole = analysis.tables["associations"]
    odds = whole[(whole["table"] == "table5") & (whole["setting"] == "all settings")]["odds_ratio"].iloc[0]
    assert any(f"the odds of an error are {odds:.2f} [" in text for text in texts)
    assert any("missed by all 2 settings" in text for text in texts)
    said = analysis.tables["probe_bias"].iloc[0]["eliminative_said_yes_pct"]
    assert any(text.startswith(f"m_a/low answers yes to {said:.0f} % of eliminative probes") for text in texts)
