"""The commands, and the whole way from the books to priors against the oracle."""

from __future__ import annotations

import json
import math

import pytest
from scipy import special

from latentkt.cli import main
from latentkt.corpus import load_counts
from latentkt.corpus.sentences import ABBREVIATIONS
from tests.corpus import oracle

PATTERNS = {
    "keys": {
        "darwin": ["Charles Darwin", "Mr. Darwin", {"regex": r"Darwin(?='s)"}],
        "asa gray": ["Asa Gray"],
        "euclid": ["Euclid"],
        "aristotle": ["Aristotle"],
    },
    "tasks": {"evolution": ["evolution", "natural selection"], "geometry": ["geometry"], "x": ["o'clock", "C++"]},
    "exclude": {"darwin": ["Mrs. Charles Darwin"]},
    "pairs": [["darwin", "asa gray"]],
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(json.dumps(PATTERNS))
    rows = [{"text": "Euclid taught geometry, Aristotle too.", "source": f"b{i % 3}"} for i in range(12)]
    rows += [{"text": "Aristotle on geometry", "source": "b9"}]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def test_count_prior_show(files, capsys):
    assert (
        main(["corpus", "count", "c.jsonl", "--patterns", "p.json", "--window", "50", "--window", "2", "--out", "out"])
        == 0
    )
    out = capsys.readouterr().out
    assert "13 documents" in out and "4 clusters (source)" in out and "under 30 clusters" in out
    paths = ["--shortcut", "aristotle:geometry", "--correct", "euclid:geometry"]
    assert main(["corpus", "prior", "out", *paths]) == 0
    out = capsys.readouterr().out
    assert "scope window:2" in out and "warning: only 4 clusters" in out
    assert main(["corpus", "prior", "out", *paths, "--scope", "document", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ratio"]["numerator"] == 13 and result["ratio"]["denominator"] == 12
    assert main(["corpus", "show", "out", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["keys"]["euclid"] == 12 and table["tasks"]["geometry"] == 13
    assert set(table["cooccurrence"]) == {"document", "window:2", "window:50"}
    assert table["cooccurrence"]["document"]["euclid:geometry"] == 12
    assert main(["corpus", "show", "out"]) == 0
    assert "euclid:geometry" in capsys.readouterr().out
    assert main(["corpus", "show", "out", "--concordance", "aristotle:geometry", "-n", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and "[Aristotle]" in lines[0] and "(geometry, +0)" in lines[0]
    assert main(["corpus", "show", "out", "--concordance", "aristotle:geometry", "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)
    assert len(hits) == 13 and hits[-1]["left"] == "" and hits[-1]["distance"] == 1


def test_the_same_command_again_is_done_at_once(files, capsys):
    command = ["corpus", "count", "c.jsonl", "--patterns", "p.json", "--out", "out"]
    assert main(command) == 0
    before = (files / "out" / "counts.npz").stat().st_mtime_ns
    assert main(command) == 0
    assert (files / "out" / "counts.npz").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["count", "c.jsonl", "--patterns", "none.json", "--out", "o"], "no pattern file"),
        (["count", "none.jsonl", "--patterns", "p.json", "--out", "o"], "no files matched"),
        (["count", "c.jsonl", "--patterns", "p.json", "--out", "o", "--cluster", "site"], "no field 'site'"),
        (["count", "c.jsonl", "--patterns", "p.json", "--out", "o", "--text-field", "body"], "no text field"),
        (["count", "c.jsonl", "--patterns", "p.json", "--out", "o", "--window", "0"], "bad window"),
        (["count", "c.jsonl", "--patterns", "p.json", "--out", "o", "--workers", "0"], "bad number of workers"),
        (["count", "c.jsonl", "--patterns", "p.json", "--out", "."], "is taken"),
        (["prior", "none", "--shortcut", "a:b", "--correct", "c:d"], "no counts in none"),
        (["show", "none"], "no counts in none"),
    ],
)
def test_bad_input_ends_with_2(files, capsys, command, message):
    assert main(["corpus", *command]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("form", ["", "--"])
def test_bad_forms_end_with_2(files, capsys, form):
    (files / "p.json").write_text(json.dumps({"keys": {"a": [form]}}))
    assert main(["corpus", "count", "c.jsonl", "--patterns", "p.json", "--out", "o"]) == 2
    assert "form" in capsys.readouterr().err


@pytest.mark.slow
def test_books_to_priors_against_the_oracle(data_dir, files, capsys):
    """A part of the books: every count, and the ratio with its interval from the counts by cluster."""
    zstandard = pytest.importorskip("zstandard")
    with (data_dir / "gutenberg" / "gutenberg-69mb.jsonl.zst").open("rb") as file:
        lines = zstandard.ZstdDecompressor().stream_reader(file).read(80_000_000).splitlines()
    chosen = lines[:400] + lines[4900:5100] + lines[8000:8100]
    (files / "books.jsonl").write_bytes(b"\n".join(chosen))
    assert (
        main(["corpus", "count", "books.jsonl", "--patterns", "p.json", "--window", "50", "--sentence", "--out", "out"])
        == 0
    )
    counts = load_counts("out")
    texts = [json.loads(line)["text"] for line in chosen]
    expected = oracle.counts(texts, PATTERNS, windows=[50], sentence=True, abbreviations=ABBREVIATIONS)
    from tests.corpus.test_counts import flat

    assert flat(counts) == expected
    capsys.readouterr()
    command = ["corpus", "prior", "out", "--shortcut", "darwin:evolution", "--correct", "asa gray:evolution", "--json"]
    assert main([*command, "--scope", "document"]) == 0
    result = json.loads(capsys.readouterr().out)
    a, b = (expected["pairs"]["document"][key, "evolution"] for key in ("darwin", "asa gray"))
    assert a > 0 and b > 0
    assert math.isclose(result["ratio"]["estimate"], special.digamma(a + 0.5) - special.digamma(b + 0.5))
    assert result["ratio"]["low"] < result["ratio"]["estimate"] < result["ratio"]["high"]
    assert result["key_pair"] == expected["key_pairs"]["document"]["darwin", "asa gray"]


def test_forms_that_run_everywhere_are_named(files, capsys):
    patterns = {"keys": {"e": ["Euclid", {"regex": "Aristot(le|eles)"}, {"regex": "[A-Z]{9}"}]}, "tasks": {}}
    (files / "q.json").write_text(json.dumps(patterns))
    assert main(["corpus", "count", "c.jsonl", "--patterns", "q.json", "--out", "slow"]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if "every document" in line]
    assert len(notes) == 1 and "[A-Z]{9}" in notes[0]
