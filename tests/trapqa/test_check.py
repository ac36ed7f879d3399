"""The balance report counts what it says, and the command prints it."""

from __future__ import annotations

import json
import math

import pytest

from latentkt.cli import main
from latentkt.errors import InputError
from latentkt.trapqa import ItemSet, check_items, mark_item
from latentkt.trapqa.check import REPEAT_LIMIT
from latentkt.trapqa.check_text import report_lines
from latentkt.trapqa.sentences import masked, repeated_sentences, sentences
from latentkt.trapqa.token_check import Share

MARKED = "A [[shortcut: cue]], [[constraint: not]] this. Who is this person?"


def _person(number, text, marked=MARKED, **fields):
    return mark_item(
        **{
            "id": f"p{number}",
            "kind": "scientist",
            "family": "f",
            "text": f"{text} {marked}",
            "control": {"constraint": "only"},
            "correct": f"Ann A{number}",
            "shortcut": f"Bob B{number}",
            **fields,
        }
    )


def test_the_counts_are_those_of_the_items(small):
    report = check_items(small)
    assert report.n_items == 8
    assert report.counts["kind"] == {"action": 6, "scientist": 2}
    assert report.counts["polarity"] == {"affirmed": 1, "negated": 1, "none": 6}
    assert report.counts["control"] == {"flip": 7, "neutral": 1}
    assert report.counts["level"] == {"0": 1, "1": 1, "2": 1, "3": 1, "None": 4}
    assert report.counts["control changes"] == {"constraint": 8}
    assert report.with_paths == Share(2, 8)
    assert report.probe_golds["eliminative", "negated"] == Share(1, 1)
    assert report.probe_golds["eliminative", "affirmed"] == Share(0, 1)
    assert report.probe_golds["eliminative", "all"] == Share(1, 2)
    assert report.correct_longer == Share(7, 8)
    assert report.shortcut_longer == Share(1, 8)
    assert report.first_by_alphabet == Share(3, 8)
    assert report.constraint_after_shortcut == Share(8, 8)
    correct, shortcut = report.answer_characters
    assert correct == sum(len(item.correct.text) for item in small) / 8
    assert shortcut == sum(len(item.shortcut.text) for item in small) / 8


def test_the_right_answer_is_first_in_one_order_of_an_item_and_in_the_other_of_its_control(small):
    report = check_items(small)
    assert report.gold_first == {
        ("item", "correct_first"): Share(8, 8),
        ("item", "shortcut_first"): Share(0, 8),
        ("control", "correct_first"): Share(0, 7),
        ("control", "shortcut_first"): Share(7, 7),
    }


def test_where_the_constraint_stands():
    early = mark_item(
        id="e",
        kind="scientist",
        family="f",
        text="[[constraint: Not]] a [[shortcut: cue]].",
        control={"constraint": "Yes"},
        correct="A",
        shortcut="B",
    )
    report = check_items(ItemSet((early, _person(1, "One."))))
    assert report.constraint_after_shortcut == Share(1, 2)
    late = _person(1, "One.")
    assert report.constraint_place == {"scientist": late.text.index("not") / len(late.text) / 2}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It rained. We left! Why? No idea.", ["It rained.", "We left!", "Why?", "No idea."]),
        ("Dr. Hall and J. J. Thomson met.", ["Dr. Hall and J. J. Thomson met."]),
        ("It cost 3.50 in all. {option_a} or {option_b}?", ["It cost 3.50 in all.", "{option_a} or {option_b}?"]),
        ("One line\nanother", ["One line", "another"]),
    ],
)
def test_sentences(text, parts):
    assert sentences(text) == parts


@pytest.mark.parametrize(
    ("sentence", "mask"),
    [
        ("In 1922 this man met Niels Bohr.", "in YEAR this man met NAME."),
        ("Niels Bohr met Max Born in the 1920s.", "NAME met NAME in the YEAR."),
        ("Physics was dull until J. J. Thomson came.", "physics was dull until NAME came."),
        ("Then I went, and I'm 30.", "then i went, and i'm 30."),
        ("Bohr left.", "bohr left."),
    ],
)
def test_names_and_years_are_masked(sentence, mask):
    assert masked(sentence) == mask


def test_a_given_name_is_masked_wherever_it_stands():
    assert masked("Bohr left.", ["Bohr"]) == "NAME left."
    assert masked("Bohrium left.", ["Bohr"]) == "bohrium left."


def test_a_sentence_may_stand_in_three_items_and_not_in_four():
    def same(n):
        return [
            _person(
                i,
                f"In 19{i}0 a friend of Carl Crow moved to Rome.",
                f"[[shortcut: Cue {i}]] is [[constraint: not]] it {i}. Who is this person?",
                control={"constraint": "only"},
            )
            for i in range(1, n + 1)
        ]

    assert repeated_sentences(same(3), limit=REPEAT_LIMIT) == ()
    (repeat,) = repeated_sentences(same(4), limit=REPEAT_LIMIT)
    assert repeat.masked == "in YEAR a friend of NAME moved to NAME."
    assert repeat.ids == ("p1", "p2", "p3", "p4")
    report = check_items(ItemSet(tuple(same(4))))
    assert "4 items hold the sentence" in report.notices[0]


def test_the_words_of_an_action_are_not_masked():
    items = tuple(
        mark_item(
            id=tool[4:],
            kind="action",
            family="f",
            text=f"I see {tool} here. [[shortcut: It]] {tool[4:]} [[constraint: is]] {{option_a}} or {{option_b}}?",
            control={"constraint": "was"},
            correct={"text": "yes", "aliases": [tool]},
            shortcut="no",
        )
        for tool in ("the hammer", "the wrench")
    )
    assert repeated_sentences(items, limit=1) == ()


def test_the_levels_of_a_group_count_once(small):
    assert repeated_sentences(small.filter(family="delivery_medium").items, limit=1) == ()


def test_a_share_of_nothing_does_not_exist():
    assert math.isnan(Share(0, 0).value)
    assert str(Share(3, 8)) == "3 of 8 (38 %)"


def test_an_empty_set_is_refused():
    with pytest.raises(InputError, match="no items to check"):
        check_items(ItemSet(()))


def test_the_report_is_printed(small, small_path, capsys):
    assert main(["items", "check", str(small_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines() == list(report_lines(check_items(small)))
    assert "8 items, all valid" in printed
    assert "notices: none" in printed


def test_a_refused_item_gives_exit_code_2(records, tmp_path, capsys):
    records["act-flip"]["spans"]["constraint"] = [[0, 4000]]
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(records["act-flip"]), encoding="utf-8")
    assert main(["items", "check", str(path)]) == 2
    message = capsys.readouterr().err
    assert f"{path}, line 1, item 'act-flip': spans.constraint leave the text" in message
    assert "expected:" in message


def test_strict_turns_a_notice_into_exit_code_2(tmp_path, capsys):
    path = tmp_path / "same.jsonl"
    items = [_person(i, "The same words again.") for i in range(4)]
    path.write_text("\n".join(json.dumps(item.to_dict()) for item in items), encoding="utf-8")
    assert main(["items", "check", str(path)]) == 0
    assert "the same words again." in capsys.readouterr().out
    assert main(["items", "check", str(path), "--strict"]) == 2
