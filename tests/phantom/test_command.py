"""The commands `phantom make`, `verify` and `sample`, from seeds to a sample."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from latentkt.cli import main
from latentkt.phantom import load_concepts
from tests.corpus.test_infinigram import server
from tests.phantom.test_entities import NAMES
from tests.phantom.test_terms import SCIENCE


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "science.txt").write_text("\n".join(SCIENCE))
    (tmp_path / "events.txt").write_text("\n".join(NAMES), encoding="utf-8")
    texts = ["The cell wall and cell capacity. " * 3, "Osmosis, osmosis, OSMOSIS in a cell wall.", "nothing"]
    (tmp_path / "books.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return tmp_path


def test_from_seeds_to_a_sample(here, capsys):
    options = ["--kind", "term", "--n", "60", "--seed", "3", "--with-seeds"]
    command = ["phantom", "make", "science.txt", *options, "--out", "t.jsonl"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "20 seeds in 1 categories" in printed and "60 concepts made" in printed
    rows = [json.loads(line) for line in (here / "t.jsonl").read_text().splitlines()]
    assert len(rows) == 80 and {"concept", "kind", "parents", "method"} <= rows[0].keys()
    assert {row["method"] for row in rows} == {"recombined", "blended", "real"}
    meta = json.loads((here / "t.meta.json").read_text())
    assert meta["made"] == {"science": 60} and meta["seed"] == 3 and meta["rules"]["most_words"] == 4
    first = (here / "t.jsonl").read_bytes()
    main(command)
    assert (here / "t.jsonl").read_bytes() == first

    (here / "heads.txt").write_text(f"{rows[0]['concept'].upper()}\n")
    verify = [
        "phantom",
        "verify",
        "t.jsonl",
        "--corpus",
        "books.jsonl",
        "--headwords",
        "heads.txt",
        "--common",
        "4",
        "--rare",
        "3",
    ]
    assert main(verify) == 0
    printed = capsys.readouterr().out
    assert "a dictionary headword" in printed and "per million words (one-sided 95%" in printed
    kept = {c.concept: c for c in load_concepts("t.verified.jsonl")}
    assert kept["cell wall"].existence == "common" and kept["osmosis"].existence == "rare"
    assert kept["cell division"].existence == "unattested" and rows[0]["concept"] not in kept
    removed = [json.loads(line) for line in (here / "t.verified.removed.jsonl").read_text().splitlines()]
    assert removed[0]["reason"] == "a dictionary headword" and removed[0]["concept"] == rows[0]["concept"]
    about = json.loads((here / "t.verified.search.json").read_text())
    assert about["searched"]["documents"] == 3 and not (here / "t.verified.journal").exists()

    assert (
        main(
            [
                "phantom",
                "sample",
                "t.verified.jsonl",
                "--subset",
                "T",
                "--size",
                "5",
                "--beside",
                "rare",
                "--out",
                "s.jsonl",
            ]
        )
        == 0
    )
    sample = load_concepts("s.jsonl")
    assert [c.existence for c in sample] == ["phantom"] * 5 + ["rare"] * (len(sample) - 5) and len(sample) > 5


def test_entities_and_lists_of_ones_own(here, capsys):
    make = ["phantom", "make", "events@events.txt", "--kind", "entity", "--threshold", "3", "--out", "e.jsonl"]
    assert main(make) == 0
    assert {c.method for c in load_concepts("e.jsonl")} == {"pattern"}
    (here / "lists.json").write_text('{"prepositions": ["zu"], "articles": ["der"]}')
    assert main([*make, "--lists", "lists.json", "--uses", "2"]) == 0
    assert "warning" not in capsys.readouterr().out


def test_a_shortfall_and_empty_categories_are_told(here, capsys):
    (here / "few.json").write_text('{"a": ["fair trial", "open writ", "long lease"], "b": ["1984"]}')
    assert main(["phantom", "make", "few.json", "--kind", "term", "--n", "500", "--out", "x.jsonl"]) == 0
    printed = capsys.readouterr().out
    assert "fewer than asked for" in printed and "nothing could be made in 1 categories: b" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["make", "none.txt", "--kind", "term", "--out", "x.jsonl"], "cannot read"),
        (["make", "science.txt", "--kind", "term", "--out", "x.txt"], "ending in .jsonl"),
        (["make", "science.txt", "--kind", "entity", "--out", "x.jsonl"], "no entity can be made"),
        (["verify", "none.jsonl", "--corpus", "books.jsonl"], "cannot read"),
        (["verify", "c.jsonl", "--corpus", "books.jsonl", "--out", "c.jsonl"], "is read"),
        (["verify", "c.jsonl", "--infinigram", "x", "--case", "simple"], "case-sensitive"),
        (["verify", "c.jsonl", "--corpus", "nowhere"], "no files matched"),
        (["sample", "c.jsonl", "--subset", "T", "--out", "s.jsonl"], "no concept for the subset"),
    ],
)
def test_refusals(here, capsys, words, message):
    (here / "c.jsonl").write_text('{"concept": "a", "kind": "term"}\n')
    assert main(["phantom", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_served_index(here, capsys):
    (here / "c.jsonl").write_text(
        '{"concept": "cell wave", "kind": "term", "method": "recombined", "parents": ["p"]}\n'
    )
    with server((200, '{"count": 0, "approx": false}')) as (client, seen):
        words = ["phantom", "verify", "c.jsonl", "--infinigram", "v4_dolma-v1_7_llama", "--url", client.url]
        assert main(words) == 0
    assert [q["query"] for q in seen] == ["cell wave", "CELL WAVE", "Cell Wave"]
    printed = capsys.readouterr().out
    assert "2,604,642,372,173 tokens of the index" in printed and "up to 1.15e-06 per million" in printed


def test_a_local_index_bounds_the_scan(here, capsys):
    pytest.importorskip("infini_gram")
    (here / "data").mkdir()
    (here / "index").mkdir()
    (here / "books.jsonl").rename(here / "data" / "books.jsonl")
    options = {"data_dir": here / "data", "save_dir": here / "index", "temp_dir": here / "index", "token_dtype": "u8",
               "version": 4, "cpus": 1, "mem": 1, "shards": 1, "ulimit": 1024}  # fmt: skip
    command = [sys.executable, "-m", "infini_gram.indexing", *(f"--{k}={v}" for k, v in options.items())]
    subprocess.run(command, check=True, capture_output=True)
    rows = [{"concept": "cell wal", "kind": "term", "method": "recombined"}, {"concept": "osmosis", "kind": "term"}]
    (here / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["phantom", "verify", "c.jsonl", "--index", "index", "--tokens", "150", "--out", "i.jsonl"]) == 0
    assert "bytes of the index" in capsys.readouterr().out
    [found] = load_concepts("i.jsonl")
    assert found.concept == "osmosis" and found.search["matches"] == 3
    removed = json.loads((here / "i.removed.jsonl").read_text())
    assert removed["concept"] == "cell wal" and removed["matches"] == 4  # an index knows no word boundaries
    assert main(["phantom", "verify", "c.jsonl", "--corpus", "data"]) == 0
    assert {c.concept: c.existence for c in load_concepts("c.verified.jsonl")}["cell wal"] == "phantom"


def refused(capsys, *words):
    assert main(["phantom", *words]) == 2
    return capsys.readouterr().err


def test_no_command_writes_over_what_it_reads(here, capsys):
    main(["phantom", "make", "science.txt", "--kind", "term", "--n", "9", "--out", "t.jsonl"])
    before = (here / "t.jsonl").read_bytes()
    absolute = str(here / "t.jsonl")
    assert "is read" in refused(capsys, "make", "t.jsonl", "--kind", "term", "--out", "./t.jsonl")
    assert "is read" in refused(capsys, "make", "x@t.jsonl", "--kind", "term", "--out", absolute)
    assert "is read" in refused(capsys, "verify", "t.jsonl", "--corpus", "books.jsonl", "--out", absolute)
    assert "is read" in refused(capsys, "verify", "t.jsonl", "--corpus", "books.jsonl", "--out", "books.jsonl")
    main(["phantom", "verify", "t.jsonl", "--corpus", "books.jsonl"])
    assert "is read" in refused(capsys, "sample", absolute, "--subset", "T", "--out", "t.jsonl")
    assert (here / "t.jsonl").read_bytes() == before


def test_an_empty_corpus_proves_nothing_and_leaves_no_journal(here, capsys):
    (here / "empty.txt").write_text("")
    main(["phantom", "make", "science.txt", "--kind", "term", "--n", "9", "--out", "t.jsonl"])
    assert "nothing was searched" in refused(capsys, "verify", "t.jsonl", "--corpus", "empty.txt")
    assert "confidence level" in refused(capsys, "verify", "t.jsonl", "--corpus", "books.jsonl", "--level", "2")
    assert not list(here.glob("*.journal")) and not list(here.glob("*.verified.*"))
    assert main(["phantom", "verify", "t.jsonl", "--corpus", "books.jsonl"]) == 0


@pytest.mark.parametrize(
    ("option", "value"), [("--blends", "-3"), ("--most-words", "0"), ("--affix-uses", "-1"), ("--uses", "0"),
                          ("--threshold", "-5")]
)  # fmt: skip
def test_numbers_that_would_make_nothing_are_refused(here, capsys, option, value):
    assert option in refused(capsys, "make", "science.txt", "--kind", "term", "--out", "t.jsonl", option, value)


def test_a_sample_takes_a_concept_once_and_says_what_it_lacks(here, capsys):
    main(["phantom", "make", "science.txt", "--kind", "term", "--n", "9", "--out", "t.jsonl"])
    main(["phantom", "verify", "t.jsonl", "--corpus", "books.jsonl"])
    (here / "copy.jsonl").write_bytes((here / "t.verified.jsonl").read_bytes())
    both = ("t.verified.jsonl", "copy.jsonl")
    assert "stands in t.verified.jsonl too" in refused(capsys, "sample", *both, "--subset", "T", "--out", "s.jsonl")
    assert main(["phantom", "sample", "t.verified.jsonl", "--subset", "T", "--out", "s.jsonl"]) == 0
    n = len(load_concepts(here / "s.jsonl"))
    assert f"warning: {1060 - n:,} fewer" in capsys.readouterr().out
