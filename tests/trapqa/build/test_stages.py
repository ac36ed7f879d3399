"""Both stages from the command line: files, cards, resuming, same seed same bytes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from latentkt.cli import main
from latentkt.errors import InputError, RunError
from latentkt.trapqa import load_items
from latentkt.trapqa.build import StageLog, load_pairs, make_pairs
from latentkt.trapqa.build import pair_stage as stage
from latentkt.trapqa.build.embedding import embedder
from latentkt.trapqa.build.log import log_beside
from latentkt.trapqa.build.output import Source, write_items
from tests.trapqa.build.people import AWARD, great_prize, people


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    everybody = people()
    with (tmp_path / "people.jsonl").open("w") as file:
        for person in everybody:
            record = {**person.to_dict(), "birth_date": person.born, "death_date": person.died}
            file.write(
                json.dumps({name: value for name, value in record.items() if name not in ("born", "died")}) + "\n"
            )
        file.write(json.dumps({"id": "bare", "name": "Bare Name", "attributes": {}}) + "\n")
        file.write(json.dumps({"id": "own", "name": "Own Kork", "attributes": {"known_for": ["Kork"]}}) + "\n")
    with (tmp_path / "list.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "born", "kind", "year"])
        rows.writerows(
            [
                [e.names[0], e.born, e.award.removeprefix("Great Prize of "), e.year]
                for e in great_prize(everybody).entries
            ]
        )
    return tmp_path


def pairs_command(folder: Path, name: str, *more: str) -> int:
    words = ["trapqa", "pairs", str(folder / "people.jsonl"), "--out", str(folder / name), "--embedding", "tfidf"]
    return main([*words, *(more or ("--fraction", "0.05"))])


def questions_command(folder: Path, name: str, out: str, *more: str) -> int:
    words = ["trapqa", "questions", str(folder / name), "--out", str(folder / out), "--list", str(folder / "list.csv")]
    return main([*words, "--list-award", "Great Prize of {kind}", "--list-licence", "CC0", "--noun", "painter", *more])


def test_the_chain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pairs_command(folder, "pairs.jsonl") == 0
    said = capsys.readouterr().out
    assert "150 of 152 usable" in said and "no attributes 1" in said and "no attributes but the name 1" in said
    assert "pairs: 559 of 11,175 (5.002 %), lambda 3" in said and "TF-IDF" in said
    code = questions_command(folder, "pairs.jsonl", "items.jsonl", "--aspect", "art")
    said = capsys.readouterr().out
    assert code == (0 if "artefact tests: passed" in said else 2)
    assert main(["items", "check", str(folder / "items.jsonl")]) == 0
    found = load_items(folder / "items.jsonl")
    assert len(found) > 50 and found.patterns is not None and all(item.paths for item in found)
    assert {item.aspect for item in found} == {"art"} and {item.kind for item in found} == {"scientist"}
    card = (folder / "items.card.md").read_text()
    for words in ("| profiles | 152 | 2 | 150 |", "| pairs | 11175 |", "| plans |", "| choice |", "| proof |",
                  "## Balance", "## Artefact tests", "| list | CC0 |", found.sha256, "5.002 %"):  # fmt: skip
        assert words in card, words
    log = StageLog.load(log_beside(folder / "items.jsonl"))
    assert [row["stage"] for row in log.table()] == [
        "dates",
        "profiles",
        "pairs",
        "plans",
        "choice",
        "questions",
        "proof",
    ]
    assert AWARD in found.patterns.tasks


def test_same_seed_same_bytes_and_another_seed_others(folder: Path) -> None:
    for name in ("one", "two"):
        pairs_command(folder, f"{name}.jsonl")
        questions_command(folder, f"{name}.jsonl", f"{name}-items.jsonl", "--limit", "30", "--seed", "7")
    questions_command(folder, "one.jsonl", "other-items.jsonl", "--limit", "30", "--seed", "8")
    for suffix in (".jsonl", ".profiles.jsonl", ".removed.jsonl"):
        assert (folder / f"one{suffix}").read_bytes() == (folder / f"two{suffix}").read_bytes()
    for suffix in (".jsonl", ".patterns.json", ".removed.jsonl", ".card.md"):
        assert (folder / f"one-items{suffix}").read_bytes() == (folder / f"two-items{suffix}").read_bytes()
    assert (folder / "one-items.jsonl").read_bytes() != (folder / "other-items.jsonl").read_bytes()


def test_a_finished_stage_is_left_alone_and_the_embedding_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs_command(folder, "pairs.jsonl", "--top", "40")
    before = (folder / "pairs.jsonl").read_bytes()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("embedded again")

    monkeypatch.setattr(stage, "embedder", never)
    assert pairs_command(folder, "pairs.jsonl", "--top", "40") == 0
    assert "there already: 40 pairs" in capsys.readouterr().out
    monkeypatch.setattr(stage, "embedder", lambda *a, **k: stage.Embedder(embedder("tfidf").name, "", never))
    (folder / "pairs.meta.json").unlink()  # stopped before the end
    assert pairs_command(folder, "pairs.jsonl", "--top", "40") == 0
    assert (folder / "pairs.jsonl").read_bytes() == before
    with pytest.raises(RunError, match="other options"):
        make_pairs(folder / "people.jsonl", out=folder / "pairs.jsonl", top=41, embed="tfidf")


def test_what_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="no pairs"):
        load_pairs(folder / "none.jsonl")
    assert questions_command(folder, "none.jsonl", "items.jsonl") == 2
    assert pairs_command(folder, "pairs.txt") == 2
    assert pairs_command(folder, "pairs.jsonl", "--fraction", "2") == 2
    pairs_command(folder, "pairs.jsonl", "--top", "3")
    assert questions_command(folder, "pairs.jsonl", "pairs.jsonl") == 2, "items do not overwrite pairs"
    with pytest.raises(InputError, match="no item is left"):
        write_items([], StageLog(), out=folder / "x.jsonl", sources=[Source("a", "b", "c")])


def test_where_nothing_is_left_the_log_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": f"Q{n}", "name": f"Ann {name}", "attributes": {"club": ["Reds"]}} for n, name in enumerate(["Lee", "Ek"])
    ]
    (folder / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs_command(folder, "pairs.jsonl", "--top", "1")
    assert questions_command(folder, "pairs.jsonl", "items.jsonl") == 2
    assert "no item is left" in capsys.readouterr().err
    log = StageLog.load(log_beside(folder / "items.jsonl"))
    assert [r.rule for r in log] == ["nothing to describe both with"] and not (folder / "items.jsonl").exists()


def test_a_log_that_is_none(tmp_path: Path) -> None:
    from latentkt.errors import DataError

    (tmp_path / "x.removed.jsonl").write_text('{"stage": "a", "kept": 1}\n{"stage": "a"}\n')
    with pytest.raises(DataError, match="line 2"):
        StageLog.load(tmp_path / "x.removed.jsonl")


def test_physicists(data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the 1,058 physicists, by words alone: at least 300 items that pass every rule and every artefact test."""
    folder = data_dir / "physicists"
    words = ["trapqa", "pairs", str(folder / "physicists.jsonl"), "--out", str(tmp_path / "p.jsonl")]
    assert main([*words, "--embedding", "tfidf", "--top", "2500"]) == 0
    laureates = str(data_dir / "nobel" / "nobel_science_laureates_1901_2025.csv")
    words = ["trapqa", "questions", str(tmp_path / "p.jsonl"), "--out", str(tmp_path / "i.jsonl"), "--list", laureates]
    assert main([*words, "--list-award", "Nobel Prize in {category}", "--noun", "physicist"]) == 0
    assert "artefact tests: passed" in capsys.readouterr().out
    assert len(load_items(tmp_path / "i.jsonl")) >= 300
    assert main(["items", "check", "--strict", str(tmp_path / "i.jsonl")]) == 0


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["trapqa", *map(str, words)]) == 2
    return capsys.readouterr().err


def test_no_stage_writes_over_what_it_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder / "people.jsonl"
    before = source.read_bytes()
    small = ("--embedding", "tfidf", "--top", 9)
    assert "is read" in refused(capsys, "pairs", source, "--out", source, *small)
    (folder / "x.profiles.jsonl").write_bytes(before)
    assert "is read" in refused(capsys, "pairs", folder / "x.profiles.jsonl", "--out", folder / "x.jsonl", *small)
    assert source.read_bytes() == (folder / "x.profiles.jsonl").read_bytes() == before
    assert pairs_command(folder, "pairs.jsonl", "--top", "9") == 0
    kept = (folder / "pairs.profiles.jsonl").read_bytes()
    for name in ("pairs.jsonl", "pairs.profiles.jsonl"):
        assert "is read" in refused(capsys, "questions", folder / "pairs.jsonl", "--out", folder / name)
    assert (folder / "pairs.profiles.jsonl").read_bytes() == kept


def test_odd_options_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = ("pairs", folder / "people.jsonl", "--out", folder / "p.jsonl", "--embedding", "tfidf")
    assert "at least 1" in refused(capsys, *pairs, "--top", 0)
    assert "more than 0" in refused(capsys, *pairs, "--fraction", 0)
    with pytest.raises(SystemExit):
        main(["trapqa", *map(str, pairs), "--seed", "-1"])
    assert pairs_command(folder, "pairs.jsonl", "--top", "9") == 0
    ask = ("questions", folder / "pairs.jsonl", "--out", folder / "i.jsonl")
    assert "no profile has that attribute" in refused(capsys, *ask, "--unverified", "nosuch")
    assert "not JSON" in refused(capsys, *ask, "--wordings", folder / "list.csv")
    (folder / "words.json").write_text("[]")
    assert "not an object" in refused(capsys, *ask, "--wordings", folder / "words.json")
