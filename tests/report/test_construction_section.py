"""The section on how items were made says what the tables say, and is absent where there are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from latentkt.report.sections.construction import section
from latentkt.results import create_run, load_run
from latentkt.trapqa import ItemSet, builtin_items, load_items, save_items
from latentkt.trapqa.build import ArtefactReport, Source, StageLog, artefact_tests, construction_tables, write_items


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, ArtefactReport]:
    items = builtin_items("scientist")
    log = StageLog()
    log.remove("profiles", "Q1", "no attributes")
    log.remove_many("pairs", "below the cut", 900)
    log.count("pairs", kept=60)
    log.count("proof", kept=len(items))
    tests = artefact_tests(items)
    made = write_items(items.items, log, out=tmp_path / "i.jsonl", sources=[Source("s", "CC0", "all")],
                       patterns=items.patterns, tests=tests)  # fmt: skip
    return made.items, tests


def run_with(tables: dict[str, pd.DataFrame], folder: Path) -> Path:
    with create_run(folder, metadata={"model": {"model": "none"}}) as run:
        for name, table in tables.items():
            run.save(name, table)
        run.finish()
    return folder


def test_what_the_tables_say(written: tuple[Path, ArtefactReport], tmp_path: Path) -> None:
    path, tests = written
    tables = construction_tables(path, load_items(path).sha256)
    assert list(tables) == ["construction_stages", "construction_balance", "construction_tests"]
    made = section(load_run(run_with(tables, tmp_path / "run")))
    assert made is not None
    words = " ".join(finding.text for finding in made.findings)
    assert "left 50 items; its 3 stages removed 901 things" in words
    assert ("None of" in words) is tests.passed
    stages, balance, tried = (block.rows for block in made.blocks[:3])  # type: ignore[union-attr]
    assert ("pairs", "960", "900", "60", "below the cut 900") in stages
    assert ("polarity: negated", "25", "50", "50%") in balance
    assert len(tried) == len(tests.table)


def test_a_set_that_gives_its_answers_away(written: tuple[Path, ArtefactReport], tmp_path: Path) -> None:
    path, _ = written
    tables = construction_tables(path, load_items(path).sha256)
    tables["construction_tests"].loc[0, ["gives away", "right"]] = ["yes", 0.91]
    made = section(load_run(run_with(tables, tmp_path / "run")))
    assert made is not None
    refused = [f for f in made.findings if "refused as a benchmark" in f.text]
    assert len(refused) == 1 and "91 %" in refused[0].text and refused[0].found is True


def test_changed_items_are_not_what_was_constructed(written: tuple[Path, ArtefactReport], tmp_path: Path) -> None:
    path, _ = written
    item_set = load_items(path)
    changed = (replace(item_set.items[0], aspect="other"), *item_set.items[1:])
    save_items(ItemSet(changed, item_set.patterns), path)
    assert construction_tables(path, load_items(path).sha256) == {}
    assert construction_tables(tmp_path / "none.jsonl", "x") == {}
    other = run_with({"other": pd.DataFrame({"a": [1]})}, tmp_path / "run")
    assert section(load_run(other)) is None
