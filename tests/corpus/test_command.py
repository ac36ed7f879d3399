"""The commands, and the whole way from the books to priors against the oracle."""

from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pytest
from scipy import special, stats

from latentkt.cli import main
from latentkt.corpus import estimate_priors, load_counts
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


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("", "empty form"),
        (" \t", "empty form"),
        ({"regex": ""}, "empty"),
        ("--", "punctuation"),
        ("?!", "punctuation"),
    ],
)
def test_bad_forms_end_with_2(files, capsys, form, message):
    (files / "p.json").write_text(json.dumps({"keys": {"a": ["Ann", form]}}))
    assert main(["corpus", "count", "c.jsonl", "--patterns", "p.json", "--out", "o"]) == 2
    said = capsys.readouterr().err
    assert message in said and "keys: a:" in said and not (files / "o").exists()


def test_an_unreadable_shard_ends_with_2_and_the_run_goes_on_once_it_is_mended(files, capsys):
    (files / "in").mkdir()
    for name in ("a", "b", "d"):
        (files / "in" / f"{name}.jsonl").write_bytes((files / "c.jsonl").read_bytes())
    (files / "in" / "c.jsonl.gz").write_bytes(gzip.compress((files / "c.jsonl").read_bytes())[:-20])
    command = ["corpus", "count", "in", "--patterns", "p.json", "--out", "o"]
    assert main(command) == 2
    assert "c.jsonl.gz" in capsys.readouterr().err
    kept = {path.name: path.stat().st_mtime_ns for path in (files / "o" / "parts").iterdir()}
    assert sorted(kept) == ["000000.npz", "000001.npz"]
    (files / "in" / "c.jsonl.gz").write_bytes(gzip.compress((files / "c.jsonl").read_bytes()))
    assert main(command) == 0
    assert {name: (files / "o" / "parts" / name).stat().st_mtime_ns for name in kept} == kept
    assert load_counts("o").occurrences("euclid") == 4 * 12
    (files / "in" / "a.jsonl").write_text("")
    assert main(command) == 2  # but what was counted must not change
    assert "is taken" in capsys.readouterr().err


@pytest.mark.slow
def test_books_to_priors_against_the_oracle(data_dir, files, capsys):
    """A part of the books: every count, and the ratio with its interval from the counts by cluster."""
    zstandard = pytest.importorskip("zstandard")
    with (data_dir / "gutenberg" / "gutenberg-69mb.jsonl.zst").open("rb") as file:
        lines = zstandard.ZstdDecompressor().stream_reader(file).read(80_000_000).splitlines()
    darwin = [line for line in lines if b"Darwin" in line and (b"evolution" in line or b"natural selection" in line)]
    shapes = [line for line in lines if b"geometry" in line and (b"Euclid" in line or b"Aristotle" in line)]
    chosen = list(dict.fromkeys([*darwin, *shapes, *lines[::150]]))
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
    assert a > 50 and b > 5
    assert math.isclose(result["ratio"]["estimate"], special.digamma(a + 0.5) - special.digamma(b + 0.5))
    assert result["key_pair"] == expected["key_pairs"]["document"]["darwin", "asa gray"]
    books = _by_book([json.loads(line) for line in chosen], "evolution", ("darwin", "asa gray"))
    assert tuple(books.sum(axis=0)) == (a, b) and len(books) == result["ratio"]["clusters"] >= 5
    assert (result["ratio"]["low"], result["ratio"]["high"]) == pytest.approx(_interval(books), abs=0.15)
    table = estimate_priors(counts, scope="document")
    pairs = np.array([[expected["pairs"]["document"][k, t] for t in PATTERNS["tasks"]] for k in PATTERNS["keys"]]) + 0.5
    np.testing.assert_allclose(table.task_given_key, pairs / pairs.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(table.joint, pairs / pairs.sum())


def _by_book(records, task, keys):
    """Documents with key and task, by book and key, from the oracle."""
    forms, exclude, books = {**PATTERNS["keys"], **PATTERNS["tasks"]}, PATTERNS["exclude"], {}
    for record in records:
        there = {n: bool(oracle.name_spans(forms[n], exclude.get(n, []), record["text"])) for n in (task, *keys)}
        found = np.array([there[key] and there[task] for key in keys], int)
        if found.any():
            books[record["source"]] = books.get(record["source"], 0) + found
    return np.array(list(books.values()))


def _interval(books):
    """The wider of Jeffreys' interval and Student's over books, from the definitions and other random numbers."""
    a, b = books.sum(axis=0)
    weights = np.random.default_rng(7).poisson(1.0, (200_000, len(books))) @ books
    ratios = special.digamma(weights[:, 0] + 0.5) - special.digamma(weights[:, 1] + 0.5)
    middle = np.percentile(ratios, [15.866, 84.134])
    gap = (books / [a, b]) @ [1, -1]
    degrees = min(2 * (gap**2).sum() ** 2 / (gap**4).sum(), len(books) - 1)
    half = stats.t.ppf(0.975, degrees) * np.diff(middle)[0] / 2
    estimate = special.digamma(a + 0.5) - special.digamma(b + 0.5)
    plain = special.logit(stats.beta.ppf([0.025, 0.975], a + 0.5, b + 0.5))
    return (estimate - half, estimate + half) if 2 * half > np.diff(plain)[0] else tuple(plain)


def test_forms_that_run_everywhere_are_named(files, capsys):
    patterns = {"keys": {"e": ["Euclid", {"regex": "Aristot(le|eles)"}, {"regex": "[A-Z]{9}"}]}, "tasks": {}}
    (files / "q.json").write_text(json.dumps(patterns))
    assert main(["corpus", "count", "c.jsonl", "--patterns", "q.json", "--out", "slow"]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if "every document" in line]
    assert len(notes) == 1 and "[A-Z]{9}" in notes[0]
