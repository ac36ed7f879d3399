from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa.build.everyday.bank import Bank, Cleaning, clean
from latentkt.trapqa.build.everyday.builtin_words import lemma
from latentkt.trapqa.build.everyday.families import Family, families
from latentkt.trapqa.build.everyday.seeds import SeedLimits, choose_seeds, load_seeds, save_seeds
from latentkt.trapqa.build.everyday.strengths import Strength, read_strengths
from latentkt.trapqa.build.everyday.words import WordTools, word_tools
from latentkt.trapqa.build.log import StageLog
from tests.trapqa.build.everyday.conftest import HEADER, row


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "strength.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def rules(log: StageLog) -> dict[str, str]:
    return {removal.name: removal.rule for removal in log}


def bank_of(*rows: Strength, limits: Cleaning | None = None, log: StageLog | None = None) -> Bank:
    words = {word for each in rows for word in (each.cue.lower(), each.response.lower())}
    return clean(rows, word_tools(words, use="builtin"), StageLog() if log is None else log, limits)


def test_a_file_is_read_and_its_noise_is_counted_line_by_line(tmp_path: Path) -> None:
    log = StageLog()
    path = written(
        tmp_path,
        row("nail", "hammer", 62),
        "nail\t\t3\t100\t0.03",
        "nail\ttack\tmany\t100\t0.03",
        "nail\ttack",
        row("nail", "tack", 120),
        "nail\ttack\t3\t100\t0.9",
        "",
        'nail\t"null"\t3\t100\t0.03',
    )
    assert read_strengths(path, log) == [Strength("nail", "hammer", 62, 100), Strength("nail", "null", 3, 100)]
    assert rules(log) == {
        "line 3": "empty cue or response",
        "line 4": "count is no number",
        "line 5": "too few fields",
        "line 6": "impossible count",
        "line 7": "strength is not count / N",
    }
    assert log.table()[0]["kept"] == 2


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("cue,response,R123,N,R123.Strength", "nail,hammer,62,100,0.62"),
        ("cue;response;R1;N", '"nail";hammer;62;100'),
        ("\ufeffCue\tResponse\tR1\tN\tR1.Strength", "nail\thammer\t62\t100\t0.62"),
    ],
)
def test_other_layouts_are_read(tmp_path: Path, header: str, line: str) -> None:
    assert read_strengths(written(tmp_path, line, header=header), StageLog()) == [Strength("nail", "hammer", 62, 100)]


def test_what_is_no_strength_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no association file"):
        read_strengths(tmp_path / "none.csv", StageLog())
    with pytest.raises(DataError, match="the columns cue, response"):
        read_strengths(written(tmp_path, "a\tb", header="x\ty"), StageLog())
    with pytest.raises(DataError, match="no association"):
        read_strengths(written(tmp_path, "nail\t\t1\t2\t0.5"), StageLog())


def test_latin_1_is_read_where_utf_8_fails(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes((HEADER + "\n" + row("café", "coffee", 5) + "\n").encode("latin-1"))
    assert read_strengths(path, StageLog())[0].cue == "café"


def test_forms_of_a_word_are_merged_and_strengths_are_of_all_who_were_asked() -> None:
    log = StageLog()
    bank = bank_of(
        Strength("Nail", "Hammer", 60, 100),
        Strength("nails", "hammers", 20, 100),
        Strength("nails", "toe", 5, 100),
        log=log,
    )
    found = bank.find("nails", "HAMMER")
    assert found is not None and (found.count, found.n, found.strength) == (80, 200, 0.4)
    assert found.cue_forms == ("nail", "nails") and found.response_forms == ("hammer", "hammers")
    assert rules(log) == {"nails -> hammers": "merged with another form"}
    toe = bank.find("nail", "toe")
    assert toe is not None and toe.n == 200  # those who were asked with "nail" could have said it too
    assert sum(each.strength for each in bank.associations if each.cue == "nail") <= 1


def test_noise_is_removed_by_rule() -> None:
    log = StageLog()
    tools = WordTools(lambda w: w, lambda w: w == "the", lambda w: None, lambda w: {"go": 7.0, "luthier": 0.5}.get(w))
    counts = {"the": 30, "x9": 10, "hangnail": 1, "nail": 9, "go": 9, "luthier": 9, "hammer": 60}
    rows = [Strength("nail", response, count, 100) for response, count in counts.items()]
    rows.append(rows[-1])
    bank = clean(rows, tools, log)
    assert [(each.cue, each.response) for each in bank.associations] == [("nail", "hammer")]
    assert {name.partition("-> ")[2]: rule for name, rule in rules(log).items()} == {
        "the": "generic response",
        "x9": "response is no word",
        "hangnail": "too few people",
        "nail": "response is the cue",
        "go": "response too frequent",
        "luthier": "response too rare",
        "hammer": "row stands twice",
    }


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("nails", {"nail"}, "nail"),
        ("nails", {"snail"}, "nails"),
        ("boxes", {"box"}, "box"),
        ("stories", {"story"}, "story"),
        ("running", {"run"}, "run"),
        ("baking", {"bake"}, "bake"),
        ("stopped", {"stop"}, "stop"),
        ("knives", {"knife"}, "knife"),
        ("tool boxes", {"box"}, "tool box"),
        ("scissors", {"scissor"}, "scissors"),
        ("glass", {"glas"}, "glass"),
        ("earring", {"ear"}, "earring"),
        ("tired", {"tire"}, "tired"),
    ],
)
def test_built_in_lemmas(word: str, known: set[str], expected: str) -> None:
    assert lemma(word, frozenset(known)) == expected


def test_the_tools_say_where_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = word_tools({"nail"}, use="builtin").sources
    assert plain["lemmas"] == "built-in endings" and plain["frequencies"].startswith("none")
    for name in ("spacy", "nltk", "wordfreq"):
        monkeypatch.setitem(sys.modules, name, None)
    assert word_tools({"nail"}).sources == plain


def test_installed_packages_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins of the same interface: spaCy's tokens, NLTK's synsets."""

    class Token(SimpleNamespace):
        pass

    class Nlp:
        meta = {"version": "3.8.0"}  # noqa: RUF012

        def __call__(self, text: str) -> list[Token]:
            return [
                Token(text=w, lemma_=w.upper().rstrip("S"), is_stop=w == "the", is_punct=False) for w in text.split()
            ]

        def pipe(self, texts: list[str]) -> list[list[Token]]:
            return [self(text) for text in texts]

    asked: dict[str, object] = {}

    def load(name: str, disable: list[str]) -> Nlp:
        asked.update(name=name, disable=disable)
        return Nlp()

    spacy = ModuleType("spacy")
    spacy.load, spacy.__version__ = load, "3.8.0"  # type: ignore[attr-defined]
    nltk, corpus = ModuleType("nltk"), ModuleType("nltk.corpus")
    nltk.__version__ = "3.9"  # type: ignore[attr-defined]
    corpus.wordnet = SimpleNamespace(  # type: ignore[attr-defined]
        synsets=lambda word: [SimpleNamespace(lexname=lambda: "noun.artifact")] if word == "nail" else []
    )
    for name, module in (("spacy", spacy), ("nltk", nltk), ("nltk.corpus", corpus)):
        monkeypatch.setitem(sys.modules, name, module)
    tools = word_tools({"nails", "tool boxes"})
    assert tools.lemma("nails") == "nail" and tools.lemma("tool boxes") == "tool boxe"
    assert tools.empty("the") and not tools.empty("nails")
    assert tools.kind("nail") == "artifact" and tools.kind("unheard") is None
    assert asked == {"name": "en_core_web_sm", "disable": ["parser", "ner"]}
    assert tools.sources["lemmas"].startswith("spaCy 3.8.0") and "NLTK 3.9" in tools.sources["kinds"]


def family(anchors: tuple[str, ...]) -> Family:
    return Family("tool_required", "role", "constraint", "right", "shortcut", anchors, ())


def test_seeds_are_strong_and_capped_by_lemma() -> None:
    log = StageLog()
    rows = [Strength(f"cue{chr(97 + n)}", "hammer", 20 + n, 100) for n in range(5)] + [
        Strength("weak", "hammer", 2, 100)
    ]
    bank = bank_of(*rows)
    seeds = choose_seeds(bank, [family(("hammer",))], log, SeedLimits(per_response=3))
    assert [seed.association.cue for seed in seeds] == ["cuee", "cued", "cuec"]
    assert sorted(rules(log).values()) == ["cap of its response", "cap of its response", "too weak for a shortcut"]


def test_a_bank_with_seeds_is_saved_and_loaded(tmp_path: Path) -> None:
    bank = bank_of(Strength("nails", "hammer", 60, 100), Strength("nail", "board", 10, 100))
    bank.about = {"source": "here"}
    known = [family(("hammer",))]
    seeds = choose_seeds(bank, known, StageLog())
    save_seeds(tmp_path / "seeds.jsonl", bank, seeds, known)
    again, loaded = load_seeds(tmp_path / "seeds.jsonl")
    assert again.associations == bank.associations and again.about == bank.about and loaded == seeds
    assert again.pull(["nails", "wood"], "hammer") == 0.3  # 60 of the 200 who were asked with either form
    with pytest.raises(DataError, match="not JSON"):
        Bank.load(__file__)
    (tmp_path / "other.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(DataError, match="no bank of associations"):
        Bank.load(tmp_path / "other.jsonl")


def test_written_scenes_are_seeds_first() -> None:
    bank = bank_of(Strength("nail", "hammer", 9, 100), Strength("anvil", "hammer", 90, 100))
    tools = [each for each in families() if each.name == "tool_required"]
    log = StageLog()
    seeds = choose_seeds(bank, tools, log, SeedLimits(per_response=1))
    assert [(seed.association.cue, seed.scenes) for seed in seeds] == [("nail", ("plank.a",))]
    assert rules(log) == {"tool_required: anvil -> hammer": "cap of its response"}
