"""Verification: counts against the oracle, bounds in closed form, journals that resume, servers that misbehave."""

from __future__ import annotations

import io
import json
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.corpus import Matching
from latentkt.corpus.infinigram import IndexCount
from latentkt.errors import DataError, InputError, RunError
from latentkt.phantom import Concept, IndexSearch, Limits, ScanSearch, Seeds, make_concepts, verify
from latentkt.phantom.search.found import rate_bounds
from latentkt.phantom.search.journal import Journal
from tests.corpus import oracle, trouble
from tests.corpus.test_infinigram import server


def concept(text, method="recombined", parents=("cell wall",), **more):
    return Concept.make(text, kind="term", category="c", parents=parents, method=method, **more)


def real(text):
    return Concept.make(text, kind="term", category="c")


def folder_of(tmp_path, texts):
    (tmp_path / "corpus").mkdir(exist_ok=True)
    for number, part in enumerate((texts[::2], texts[1::2])):
        lines = (json.dumps({"text": text}) + "\n" for text in part)
        (tmp_path / "corpus" / f"{number}.jsonl").write_text("".join(lines))
    return str(tmp_path / "corpus")


def matches(outcome):
    rows = {c.concept: c.search["matches"] for c in outcome.concepts}
    return rows | {removed.concept.concept: removed.matches for removed in outcome.removed}


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_counts_equal_the_oracle(data, tmp_path_factory):
    texts = data.draw(st.lists(trouble.documents(), min_size=2, max_size=4))
    phrases = data.draw(st.lists(trouble.phrases(max_words=10), min_size=1, max_size=8, unique=True))
    phrases = [phrase for phrase in phrases if re.search(r"\w", phrase)] or ["x"]
    case = data.draw(st.sampled_from(["casings", "simple"]))
    path = folder_of(tmp_path_factory.mktemp("c"), texts)
    search = ScanSearch([path], matching=Matching(case=case))
    found = search.search(phrases, Journal(None, {}), lambda ticks: None)
    expected = [sum(len(oracle.literal_spans(phrase, text, case=case)) for text in texts) for phrase in phrases]
    assert found.matches.tolist() == expected
    assert found.searched.documents == len(texts)
    assert found.searched.tokens == sum(len(re.findall(r"\w+", oracle.normalised(text, case=case))) for text in texts)


def test_a_slice_of_real_books_equals_the_oracle(data_dir, tmp_path):
    """Made terms and real ones in four casings, on the first documents of the development corpus."""
    import zstandard

    with (data_dir / "gutenberg" / "gutenberg-69mb.jsonl.zst").open("rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8")
        texts = [json.loads(line)["text"] for line, _ in zip(lines, range(12), strict=False)]
    seeds = {
        k: tuple(v) for k, v in json.loads((data_dir / "wordnet" / "wn30_term_lists.json").read_text()).items() if v
    }
    everything = Seeds(seeds)
    made = make_concepts(everything, kind="term", n=300).concepts
    words = random.Random(0).sample(sorted({word for text in texts for word in text.split() if "\\" not in word}), 120)
    phrases = [c.concept for c in made] + [word for word in words if re.search(r"\w", word)] + ["St.", "(see", "of the"]
    phrases = list(dict.fromkeys(phrases))
    search = ScanSearch([folder_of(tmp_path, texts)])
    found = search.search(phrases, Journal(None, {}), lambda ticks: None)
    joined = "\n\0\n".join(texts)
    likely = [any(word in joined for word in Matching(case="casings").casings(phrase)) for phrase in phrases]
    expected = [
        sum(len(oracle.literal_spans(phrase, text, case="casings")) for text in texts) if there else 0
        for phrase, there in zip(phrases, likely, strict=True)
    ]
    assert found.matches.tolist() == expected and sum(count > 0 for count in expected) > 100


def test_made_ones_that_are_there_go_and_real_ones_are_sorted(tmp_path):
    texts = ["cell wall " * 40, "CELL WAVE, Cell Theory. " + "the cell theory " * 3, "wave and half-life"]
    concepts = [
        concept("cell wave"), concept("cell\u0301 wave"), concept("wall theory"), concept("half life"),
        concept("cellwallation wave", method="blended", parents=("cell wave", "cell", "wallation")),
        concept("wave wall", method="blended", parents=("cell wall", "w", "ave")),
        real("cell wall"), real("cell theory"), real("phlogiston"), real("C++ wall"),
    ]  # fmt: skip
    outcome = verify(
        concepts, ScanSearch([folder_of(tmp_path, texts)]), limits=Limits(common=40, rare=4), headwords=["Half-Life"]
    )
    assert {r.concept.concept: (r.reason, r.matches) for r in outcome.removed} == {
        "cell wave": ("in the corpus", 1),
        "half life": ("a dictionary headword", 0),
    }
    assert {c.concept: c.existence for c in outcome.concepts} == {
        "cell\u0301 wave": "phantom", "wall theory": "phantom", "cellwallation wave": "phantom", "wave wall": "phantom",
        "cell wall": "common", "cell theory": "rare", "phlogiston": "unattested", "C++ wall": "unattested",
    }  # fmt: skip
    row = {c.concept: c.search for c in outcome.concepts}
    tokens = sum(len(re.findall(r"\w+", text)) for text in texts)
    assert {name: value for name, value in row["cell theory"].items() if name != "upper_per_million"} == {
        "corpus": "corpus",
        "tokens": tokens,
        "matches": 4,
        "per_million": pytest.approx(4e6 / tokens),
    }
    assert row["cell theory"]["upper_per_million"] == pytest.approx(rate_bounds(np.array([4]), tokens)[0])
    # A made word that is in the corpus by itself is told.
    assert row["cellwallation wave"]["made_word_matches"] == 0 and row["wave wall"]["made_word_matches"] == 2
    about = outcome.to_dict()
    assert about["searched"]["tokens"] == tokens and about["searched"]["documents"] == 3
    assert about["zero_matches_allow"]["per_million_tokens"] == pytest.approx(1e6 * (1 - 0.05 ** (1 / tokens)))
    assert about["zero_matches_allow"]["share_of_documents"] == pytest.approx(1 - 0.05 ** (1 / 3))
    assert about["categories"]["c"]["phantom"] == 4 and about["categories"]["c"]["in the corpus"] == 1
    assert outcome.searched.corpus == "corpus"  # no path of the machine


def test_bounds_are_clopper_pearson():
    from scipy.stats import binom

    found = np.array([0, 1, 15, 15, 400])
    bounds = rate_bounds(found, 10_000, 0.9) / 1e6
    assert binom.cdf(found, 10_000, bounds) == pytest.approx(0.1)
    assert np.isnan(rate_bounds(found, None)).all()
    assert rate_bounds(np.array([0]), 12_460_708)[0] == pytest.approx(3e6 / 12_460_708, rel=0.01)
    with pytest.raises(InputError, match="level"):
        rate_bounds(found, 10, 1.0)


def test_limits():
    limits = Limits(common=2.0, rare=0.5, per_million=True)
    assert [limits.existence(n, tokens=10**7) for n in (0, 5, 6, 20)] == ["unattested", "rare", "between", "common"]
    with pytest.raises(InputError, match="number of tokens"):
        limits.existence(3, tokens=None)
    for bad in ((5, 5), (0, 15), (10, 0), (float("nan"), 1)):
        with pytest.raises(InputError, match="common and rare"):
            Limits(*bad)
    with pytest.raises(InputError, match="nothing to verify"):
        verify([], ScanSearch.__new__(ScanSearch))


def test_what_has_no_word_is_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be searched for"):
        verify([real("...")], ScanSearch([folder_of(tmp_path, ["a", "b"])]))


def test_a_scan_goes_on_shard_by_shard(tmp_path, monkeypatch):
    path = folder_of(tmp_path, ["cell wall", "wave wall", "cell wall wave", "x"])
    whole = verify([real("cell wall"), real("wave")], ScanSearch([path]))
    journal = tmp_path / "out.journal"
    counted, count = [], ScanSearch._count

    def stopping(self, shard, texts):
        counted.append(shard.name)
        if len(counted) == 2:
            raise KeyboardInterrupt
        return count(self, shard, texts)

    monkeypatch.setattr(ScanSearch, "_count", stopping)
    with pytest.raises(KeyboardInterrupt):
        verify([real("cell wall"), real("wave")], ScanSearch([path]), journal=journal)
    with pytest.raises(RunError, match="unfinished search"):
        verify([real("cell wall"), real("wave")], ScanSearch([path]), journal=journal)
    with pytest.raises(RunError, match="another search"):
        verify([real("cell wall"), real("wall")], ScanSearch([path]), journal=journal, resume=True)
    with journal.open("ab") as file:
        file.write(b'{"unit": "half a li')
    again = verify([real("cell wall"), real("wave")], ScanSearch([path]), journal=journal, resume=True)
    assert again.concepts == whole.concepts and counted == ["0.jsonl", "1.jsonl", "1.jsonl"] and not journal.exists()


def test_the_http_index_is_asked_in_four_casings_and_resumes(tmp_path):
    good = '{"count": %d, "approx": %s}'
    answers = [
        (200, good % (1, "false")),
        (429, ""),
        (200, good % (2, "true")),
        None,
        (200, good % (4, "false")),
        (200, good % (8, "false")),
    ]
    concepts = [real("iPhone case"), concept("cell wave")]
    with server(*answers, (200, '{"error": "index not found"}')) as (client, seen):
        search = IndexSearch(client, "test", "http", tokens=10**6, documents=10)
        with pytest.raises(RunError, match="not found"):
            verify(concepts, search, journal=tmp_path / "j")
    assert [q["query"] for q in seen] == [
        "iPhone case", "IPHONE CASE", "IPHONE CASE", "Iphone Case", "Iphone Case", "iphone case", "cell wave",
    ]  # fmt: skip
    with server((200, good % (0, "false"))) as (client, seen):
        search = IndexSearch(client, "test", "http", tokens=10**6, documents=10)
        outcome = verify(concepts, search, journal=tmp_path / "j", resume=True)
    assert [q["query"] for q in seen] == ["cell wave", "CELL WAVE", "Cell Wave"]
    assert matches(outcome) == {"iPhone case": 15, "cell wave": 0}
    found, made = outcome.concepts
    assert found.existence == "rare" and found.search["approximate"] is True and "approximate" not in made.search
    assert made.existence == "phantom" and outcome.upper_per_million == pytest.approx(3.0, rel=0.01)
    assert "no word boundaries" in outcome.searched.quantity and outcome.searched.engine == "http"


class Byhand:
    def count(self, text):
        return IndexCount(3 if text == "cell wave" else 0, False)


def test_an_index_of_unknown_size_gives_no_rate():
    outcome = verify([concept("cell wave"), concept("wave wall")], IndexSearch(Byhand(), "mine", casings=False))
    assert [r.matches for r in outcome.removed] == [3]
    [kept] = outcome.concepts
    assert kept.search["per_million"] is None and kept.search["upper_per_million"] is None
    assert outcome.to_dict()["zero_matches_allow"]["per_million_tokens"] is None
    json.dumps(outcome.to_dict(), allow_nan=False)
