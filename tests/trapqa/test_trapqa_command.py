"""`latentkt trapqa`, from items to records to the page."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from latentkt.cli import main
from latentkt.report.sections import trapqa as trapqa_section
from latentkt.results import load_run
from latentkt.trapqa.running import Record, read_records, write_records
from latentkt.trapqa.running.tables import save_run
from tests.models.tiny import tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    tiny_model("llama").save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return str(path)


def test_run_resume_and_report(folder, small_path, tmp_path, capsys):
    records = str(tmp_path / "r.jsonl")
    command = [
        "trapqa",
        "run",
        folder,
        "--items",
        str(small_path),
        "--orders",
        "both",
        "--setting",
        "tiny",
        "--out",
        records,
    ]
    assert main([*command, "--condition", "names", "profiles", "neutral"]) == 0
    assert "records" in capsys.readouterr().out
    assert main([*command, "--condition", "probes"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main([*command, "--condition", "probes", "real_life", "--resume"]) == 0
    assert {record.setting for record in read_records(records)} == {"tiny"}
    assert main(["trapqa", "report", records, "--out", str(tmp_path / "run")]) == 0
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "With names only it answers" in page and "Evidence is dominance" in page
    run = load_run(tmp_path / "run")
    assert len(run.tables["trapqa"]) == len(read_records(records))
    assert set(run.tables["skipped"]["stage"]) == {
        "trapqa names",
        "trapqa profiles",
        "trapqa probes",
        "trapqa real_life",
    }
    assert run.identity["model"]["weight_hash"]


def test_generation_with_a_field_map(folder, tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"n": 1, "q": "Who?", "a": "Ada Byron", "b": "Emmy Noether"}) + "\n")
    fields = ["--field", "id=n", "--field", "question=q", "--field", "correct=a", "--field", "shortcut=b"]
    command = ["trapqa", "run", folder, "--condition", "names", "--items", str(rows), "--mode", "generate"]
    out = str(tmp_path / "r.jsonl")
    assert main([*command, *fields, "--confidence", "--max-new-tokens", "4", "--out", out]) == 0
    (record,) = read_records(out)
    assert record.raw is not None and record.meta["truncated"] is not None and "confidence_raw" in record.meta
    assert main([*command, "--out", str(tmp_path / "s.jsonl")]) == 2
    assert "the fields n, q, a, b" in capsys.readouterr().err


def _records(right: float, evidence: float, n: int = 40) -> list[Record]:
    found = []
    for k in range(n):
        for order in ("correct_first", "shortcut_first"):
            facts = {"family": f"f{k % 8}", "order": order, "meta": {"kind": "scientist", "truncated": False}}
            full = 1.0 if k < right * n else -1.0
            neutral = full - evidence + 0.1 * (k % 3 - 1)
            found.append(Record(f"q{k}", "m", "names", answer="correct" if full > 0 else "off", log_odds=full, **facts))
            found.append(Record(f"q{k}", "m", "neutral", answer="shortcut", log_odds=neutral, **facts))
        found.append(
            Record(
                f"q{k}",
                "m",
                "probes",
                None,
                None,
                k % 2 == 0,
                k % 4 < 2,
                family=f"f{k % 8}",
                meta={"kind": "scientist"},
            )
        )
    return found


def _section(records, tmp_path, monkeypatch):
    monkeypatch.setattr("latentkt.report.blocks.to_svg", lambda figure: "<svg/>")
    write_records(records, tmp_path / "r.jsonl")
    return trapqa_section.section(load_run(save_run([tmp_path / "r.jsonl"], tmp_path / "run")))


def test_the_section_finds_what_was_planted_and_no_more(tmp_path, monkeypatch):
    section = _section(_records(right=1.0, evidence=0.8), tmp_path, monkeypatch)
    words = {finding.text: finding.found for finding in section.findings}
    assert words[
        "With names only it answers 100 % [68, 100] of prompts rightly (40 items, 8 families): above chance (50 %)."
    ]
    (added,) = [text for text in words if "the question adds" in text]
    assert "+0.8" in added and words[added] is True
    assert "Of 40 questions it knows both 10, one 20, neither 10 of the two facts." in words
    assert any("probe questions right: 50 %" in text and found is False for text, found in words.items())
    grid = section.blocks[0]
    assert ("m", "names", "80", "80", "0", "0", "0") in grid.rows and (
        "m",
        "neutral",
        "80",
        "0",
        "80",
        "0",
        "0",
    ) in grid.rows


def test_the_section_says_where_nothing_is(tmp_path, monkeypatch):
    section = _section(_records(right=0.5, evidence=0.0), tmp_path, monkeypatch)
    words = {finding.text: finding.found for finding in section.findings}
    assert [found for text, found in words.items() if "the question adds" in text] == [False]
    assert ("m", "names", "80", "40", "0", "40", "0") in section.blocks[0].rows


def test_written_answers_have_no_evidence_and_several_settings_are_named(tmp_path, monkeypatch):
    records = [
        Record("q", name, "names", "correct_first", "correct", raw="x", family="f") for name in ("m low", "m high")
    ]
    section = _section(records, tmp_path, monkeypatch)
    texts = [finding.text for finding in section.findings]
    assert any(text.startswith("m low: With names only") for text in texts)
    assert not any("evidence" in text for text in texts)
    assert trapqa_section.section(_Empty()) is None


class _Empty:
    tables: dict[str, pd.DataFrame] = {}  # noqa: RUF012
