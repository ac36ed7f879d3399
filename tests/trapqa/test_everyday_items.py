"""The built-in everyday items: their clauses one by one, and what could be exploited without reading them.

The files are read as plain JSON, so that these checks share no code with the loader.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

import latentkt

Item = dict[str, Any]

DATA = Path(latentkt.__file__).parent / "trapqa" / "data"
FAMILIES = {
    "vehicle_required",
    "delivery_medium",
    "recording_medium",
    "tool_required",
    "presence_required",
    "timing_order",
    "capacity_or_fit",
    "power_or_connection",
}
ASPECTS = {
    "transport",
    "home repair",
    "cleaning",
    "cooking",
    "health",
    "pets",
    "work",
    "school",
    "travel",
    "shopping",
    "sports",
    "music and arts",
    "paperwork",
}
SIDES = ("correct", "shortcut")
SLOTS = ("{option_a}", "{option_b}")

ITEMS: list[Item] = [json.loads(line) for line in (DATA / "everyday.jsonl").read_text("utf-8").splitlines()]
PATTERNS: dict[str, Any] = json.loads((DATA / "everyday.patterns.json").read_text("utf-8"))
SINGLE = [item for item in ITEMS if item["group"] is None]
each_item = pytest.mark.parametrize("item", ITEMS, ids=[item["id"] for item in ITEMS])


def faces(item: Item) -> tuple[Item, Item]:
    """The item and its control, each with text and spans."""
    return item, item["control"]


def span_text(face: Item, role: str) -> str:
    ((start, end),) = face["spans"][role]
    return face["text"][start:end]


def outside(face: Item) -> tuple[list[str], list[str]]:
    """The stretches of text between the spans, and the roles in their order."""
    marks = sorted((start, end, role) for role, ranges in face["spans"].items() for start, end in ranges)
    edges = [(0, 0, ""), *marks, (len(face["text"]), 0, "")]
    return [face["text"][before[1] : after[0]] for before, after in pairwise(edges)], [role for _, _, role in marks]


def filled(face: Item, item: Item, *, swapped: bool) -> str:
    """The text with the answers in the slots."""
    answers = [item[side]["text"] for side in (SIDES[::-1] if swapped else SIDES)]
    text: str = face["text"]
    for slot, answer in zip(SLOTS, answers, strict=True):
        text = text.replace(slot, answer)
    return text


def sentences(text: str) -> set[str]:
    """Sentences in small letters, numbers masked."""
    return {re.sub(r"\d+", "0", part.casefold()) for part in re.split(r"(?<=[.!?])\s+", text)}


def answer_pairs(items: list[Item]) -> list[Item]:
    """One item for each pair of answers: the levels of a group share theirs."""
    return list({(item["correct"]["text"], item["shortcut"]["text"]): item for item in items}.values())


# --- composition ---------------------------------------------------------------------------------------------------


def test_families_aspects_and_counts() -> None:
    counts = Counter(item["family"] for item in SINGLE)
    assert counts.keys() == FAMILIES
    assert min(counts.values()) >= 8
    assert len(SINGLE) >= 64
    assert {item["aspect"] for item in SINGLE} == ASPECTS
    assert {item["kind"] for item in ITEMS} == {"action"}
    assert {item["constraint_kind"] for item in ITEMS} == {"physical", "spatial", "procedural", "medium"}
    assert {item["polarity"] for item in ITEMS} == {"negated", "affirmed", "none"}
    assert len({item["id"] for item in ITEMS}) == len(ITEMS)


def test_no_family_is_one_aspect() -> None:
    aspects = defaultdict(set)
    for item in SINGLE:
        aspects[item["family"]].add(item["aspect"])
    assert min(map(len, aspects.values())) >= 8


def test_groups_hold_one_item_a_level_with_the_same_answers() -> None:
    groups = defaultdict(list)
    for item in ITEMS:
        assert (item["group"] is None) == (item["level"] is None)
        if item["group"] is not None:
            groups[item["group"]].append(item)
    assert len(groups) == 3
    for members in groups.values():
        assert [item["level"] for item in members] == [0, 1, 2, 3]
        assert len({(i["family"], i["correct"]["text"], i["shortcut"]["text"]) for i in members}) == 1


# --- each item -----------------------------------------------------------------------------------------------------


@each_item
def test_spans_and_slots(item: Item) -> None:
    for face in faces(item):
        text = face["text"]
        assert re.findall(r"\{option_\w+\}", text) == list(SLOTS)
        for role in ("shortcut", "constraint"):
            marked = span_text(face, role)
            assert marked and marked == marked.strip()
            assert "{" not in marked
            ((start, end),) = face["spans"][role]
            assert not re.match(r"\w", text[end : end + 1]) and not re.match(r"\w", text[start - 1 : start])
        for side in SIDES:
            assert item[side]["text"].casefold() not in text.casefold()


@each_item
def test_the_control_changes_the_constraint_and_nothing_else(item: Item) -> None:
    control = item["control"]
    assert control["kind"] == "flip"
    assert outside(item) == outside(control)
    assert span_text(item, "shortcut") == span_text(control, "shortcut")
    assert span_text(item, "constraint") != span_text(control, "constraint")


@each_item
def test_it_says_how_it_was_made_and_checked(item: Item) -> None:
    assert any("shortcut is favored" in reason for reason in item["source"])
    assert item["meta"]["why_the_constraint_decides"] and item["meta"]["checked_by"]
    assert re.search(r"\b(?:I|my|our|we)\b", item["text"], re.IGNORECASE), "not in the first person"


def test_probe_questions_have_balanced_answers() -> None:
    texts = [probe["text"] for item in ITEMS for probe in item["probe_questions"]]
    assert len(set(texts)) == len(texts) == 2 * len(ITEMS)
    for group in (SINGLE, [item for item in ITEMS if item["group"] is not None]):
        golds = Counter((p["role"], p["answer"]) for item in group for p in item["probe_questions"])
        for role in ("eliminative", "compatibility"):
            assert golds[role, True] == golds[role, False] == len(group) // 2
    joint = Counter(tuple(probe["answer"] for probe in item["probe_questions"]) for item in ITEMS)
    assert len(joint) == 4, "the answer of one role follows from the other's"


def test_no_sentence_stands_in_more_than_three_items() -> None:
    holders = defaultdict(set)
    for item in ITEMS:
        for face in faces(item):
            for sentence in sentences(face["text"]):
                holders[sentence].add(item["id"])
    assert max(map(len, holders.values())) <= 3


# --- what could be exploited ---------------------------------------------------------------------------------------


def test_neither_answer_is_systematically_longer() -> None:
    pairs = answer_pairs(ITEMS)
    for measure in (len, lambda text: len(text.split())):
        sizes = [(measure(item["correct"]["text"]), measure(item["shortcut"]["text"])) for item in pairs]
        longer, shorter = sum(a > b for a, b in sizes), sum(a < b for a, b in sizes)
        assert binomtest(longer, longer + shorter).pvalue > 0.05
        assert max(max(pair) / min(pair) for pair in sizes) <= 3


def test_the_constraint_stands_before_and_after_the_shortcut() -> None:
    after = sum(item["spans"]["constraint"] > item["spans"]["shortcut"] for item in ITEMS)
    assert binomtest(after, len(ITEMS)).pvalue > 0.05


def words_alone(items: list[Item]) -> tuple[int, int]:
    """Pairs of answers that a logistic regression on their words gets right, trained on all other families.

    A pair is told by the difference of its two bags of words, shown both ways round; a pair of which no word was seen
    in training scores zero and counts as wrong for every second one, so that chance stays one half.
    """
    pairs = answer_pairs(items)
    texts = [[item[side]["text"] for item in pairs] for side in SIDES]
    vectorizer = CountVectorizer(token_pattern=r"\w+").fit(texts[0] + texts[1])
    difference = (vectorizer.transform(texts[0]) - vectorizer.transform(texts[1])).toarray()
    families = np.array([item["family"] for item in pairs])
    scores = np.zeros(len(pairs))
    for family in sorted(set(families)):
        train = difference[families != family]
        model = LogisticRegression(fit_intercept=False)
        model.fit(np.vstack([train, -train]), np.repeat([1, 0], len(train)))
        scores[families == family] = difference[families == family] @ model.coef_[0]
    ties = np.isclose(scores, 0)
    return int((scores > 0)[~ties].sum() + ties.sum() // 2), len(pairs)


def test_the_words_of_the_options_do_not_give_the_answer_away(capsys: pytest.CaptureFixture[str]) -> None:
    right, total = words_alone(ITEMS)
    interval = binomtest(right, total).proportion_ci(method="wilson")
    with capsys.disabled():
        sys.stdout.write(
            f"\neveryday options alone, leave-family-out: {right} of {total} right "
            f"({right / total:.2f}, 95 % interval {interval.low:.2f} to {interval.high:.2f}; chance 0.50)\n"
        )
    assert interval.low < 0.5


def test_words_that_give_the_answer_away_are_found() -> None:
    rigged = copy.deepcopy(ITEMS)
    for item in rigged:
        item["correct"]["text"] += " carefully"
    right, total = words_alone(rigged)
    assert right / total > 0.9


@pytest.mark.data
def test_no_wording_is_shared_with_the_development_traps(data_dir: Path) -> None:
    def grams(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", text.casefold())
        return {tuple(words[i : i + 6]) for i in range(len(words) - 5)}

    theirs: set[tuple[str, ...]] = set()
    for line in (data_dir / "igr_traps.jsonl").read_text("utf-8").splitlines():
        trap = json.loads(line)
        for text in (*trap["levels"].values(), trap["control"]["question"]):
            theirs |= grams(text)
    shared = {gram for item in ITEMS for face in faces(item) for gram in grams(face["text"])} & theirs
    assert theirs and not shared


# --- paths and patterns --------------------------------------------------------------------------------------------


def matches(forms: list[str], text: str) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text, re.IGNORECASE) for form in forms)


def paths(item: Item) -> dict[str, tuple[str, str]]:
    return {side: tuple(item["paths"][side].split(":")) for side in SIDES} if item["paths"] else {}


def test_every_name_of_a_path_has_forms_and_exclusions() -> None:
    keys = {key for item in ITEMS for key, _ in paths(item).values()}
    tasks = {task for item in ITEMS for _, task in paths(item).values()}
    assert sum(bool(item["paths"]) for item in ITEMS) >= len(ITEMS) / 2
    assert PATTERNS["keys"].keys() == keys
    assert PATTERNS["tasks"].keys() == tasks
    assert not keys & tasks
    assert PATTERNS["exclude"].keys() == keys | tasks
    named = {tuple(paths(item)[side][0] for side in SIDES) for item in ITEMS if item["paths"]}
    assert {tuple(pair) for pair in PATTERNS["pairs"]} == named


def test_every_exclusion_overlaps_a_form() -> None:
    for name, exclusions in PATTERNS["exclude"].items():
        forms = PATTERNS["keys"].get(name) or PATTERNS["tasks"][name]
        assert len({form.casefold() for form in forms}) == len(forms)
        for exclusion in exclusions:
            assert matches(forms, exclusion), f"{name}: {exclusion!r} can cancel nothing"
            assert exclusion not in forms


@each_item
def test_its_own_words_are_forms_of_its_paths(item: Item) -> None:
    for side, (key, task) in paths(item).items():
        cue = item["text"] if side == "correct" else span_text(item, "shortcut")
        assert matches(PATTERNS["keys"][key], cue), f"{key} is not in {cue!r}"
        assert matches(PATTERNS["tasks"][task], item[side]["text"]), f"{task} is not in {item[side]['text']!r}"


# --- tokens --------------------------------------------------------------------------------------------------------


@pytest.mark.smollm2
def test_item_and_control_have_equally_many_tokens() -> None:
    models = pytest.importorskip("latentkt.models", reason="needs latentkt.models to open SmolLM2")
    tokenizer = models.open_model("smollm2").tokenizer
    equal = 0
    for item in ITEMS:
        lengths = [
            [len(tokenizer(filled(face, item, swapped=swapped))["input_ids"]) for face in faces(item)]
            for swapped in (False, True)
        ]
        equal += all(own == control for own, control in lengths)
    assert equal >= 0.9 * len(ITEMS)
