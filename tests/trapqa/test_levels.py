"""Questions at levels become items with the same answers; what cannot be split or paired is listed."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from latentkt.cli import main
from latentkt.errors import DataError, InputError
from latentkt.trapqa import import_levels, load_items, render, save_items

QUESTION = {
    "id": "wash",
    "domain": "car",
    "correct": "drive",
    "levels": {
        "L0": "The car wash is 50 meters from my home. Should I drive or walk there?",
        "L1": "My car is muddy, and the car wash is 50 meters from my home. Should I walk or drive?",
        "L2": "I want my car clean. The car wash is 50 meters away. Should I drive my car there or walk over?",
        "L3": "I need to bring my car to the car wash 50 meters away. Drive or walk?",
    },
    "control": {"question": "The bakery is 50 meters from my home. Should I drive or walk there?", "correct": "walk"},
}


def written(tmp_path, *questions):
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in questions), encoding="utf-8")
    return path


def test_one_item_a_level_with_the_same_answers(tmp_path):
    items = import_levels(written(tmp_path, QUESTION), source="made here").items
    assert [(item.id, item.group, item.level) for item in items] == [(f"wash-L{n}", "wash", n) for n in range(4)]
    assert {(item.correct.text, item.shortcut.text) for item in items} == {("drive there", "walk there")}
    first, last = items.items[0], items.items[3]
    assert first.text == "The car wash is 50 meters from my home. Should I {option_a} or {option_b}?"
    assert first.control.text == "The bakery is 50 meters from my home. Should I {option_a} or {option_b}?"
    spans = {role: [last.text[a:b] for a, b in ranges] for role, ranges in last.spans.items()}
    assert spans == {"shortcut": ["50 meters"], "constraint": ["I need to bring my car to the car wash", "away."]}
    assert last.source[0] == "made here" and last.meta["question"] == QUESTION["levels"]["L3"]
    prompt = render(last, order="shortcut_first", template="plain").text
    assert prompt.endswith("Should I walk there or drive there?\nAnswer:")


def test_an_errand_behind_the_options_stays_behind_them(tmp_path):
    errand = {
        **QUESTION,
        "levels": {"L0": "The shop is 50 meters away. Should I drive or walk to fetch my crate?"},
        "control": {
            "question": "The shop is 50 meters away. Should I drive or walk to buy treats?",
            "correct": "either",
        },
    }
    (item,) = import_levels(written(tmp_path, errand)).items
    assert item.text.endswith("Should I {option_a} or {option_b} to fetch my crate?")
    assert item.control.text.endswith("Should I {option_a} or {option_b} to buy treats?")
    assert item.control.kind == "neutral" and item.text[slice(*item.spans["constraint"][0])] == "fetch my crate?"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The car wash is 50 meters away. Should I go now?", "does not end with one or another"),
        ("The car wash is 50 meters away. Should I go now or later?", "neither of them says 'drive'"),
        ("The car wash is 50 meters away. Should I drive or take the elevator?", "none of them says 'walk'"),
        ("The car wash is 50 meters away. Should I drive fast or drive slowly?", "both of them says 'drive'"),
        ("The car wash is close. Should I drive or walk?", "no phrase of nearness"),
    ],
)
def test_what_gives_no_item_is_listed_with_the_reason(tmp_path, text, reason):
    found = import_levels(written(tmp_path, {**QUESTION, "levels": {**QUESTION["levels"], "L1": text}}))
    assert [item.level for item in found.items] == [0, 2, 3]
    (row,) = found.skipped
    assert row["question"] == "wash" and row["level"] == "L1" and reason in row["reason"]


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        import_levels(tmp_path / "nowhere.jsonl")
    for bad in (
        {"id": "x"},
        {**QUESTION, "levels": {"L9": "a"}},
        {**QUESTION, "correct": 3},
        {**QUESTION, "levels": {}},
    ):
        with pytest.raises(DataError, match="line 1: no question at levels"):
            import_levels(written(tmp_path, bad))
    with pytest.raises(DataError, match="no item comes of"):
        import_levels(written(tmp_path, {**QUESTION, "levels": {"L0": "What now?"}}))


def test_the_pilot_of_igr_bench(data_dir, tmp_path, capsys):
    path = data_dir / "igr_traps.jsonl"
    found = import_levels(path)
    assert Counter(item.level for item in found.items) == {0: 27, 1: 27, 2: 27, 3: 27}
    assert Counter(row["question"] for row in found.skipped) == {"pet_10": 4, "sport_03": 4, "sport_10": 4}
    assert all("cannot be split" in row["reason"] for row in found.skipped)
    assert {item.control.kind for item in found.items if item.group == "sport_01"} == {"neutral"}
    save_items(found.items, tmp_path / "items.jsonl")
    assert load_items(tmp_path / "items.jsonl").sha256 == found.items.sha256
    assert main(["items", "levels", str(path), str(tmp_path / "again.jsonl")]) == 0
    said = capsys.readouterr().out
    assert "108 items; level 0: 27, 1: 27, 2: 27, 3: 27" in said and "left out: 12" in said
