"""Hard free-text answers, half of them by someone who had not seen the matcher, and the rules one by one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from latentkt.errors import InputError
from latentkt.trapqa import Candidate
from latentkt.trapqa.matching import Reply, match_answer, match_truth, read_confidence, read_reply

TABLE = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "hard_answers.jsonl").read_text(encoding="utf-8").splitlines()
]
# Replies that only deny one option, which their author read as choosing the other. The matcher does not guess that.
KNOWN_MISSES = {"b27", "b28"}
WHO = (Candidate("Arthur Eddington"), Candidate("Albert Einstein", aliases=("A. Einstein",)))
WASH = (Candidate("drive over", ("drive",)), Candidate("walk over", ("walk",)))


def _candidate(row: dict) -> Candidate:
    return Candidate(row["text"], tuple(row["aliases"]))


def _match(row: dict):
    numbered = row["numbered"] and tuple(row["numbered"])
    reply = read_reply(row["reply"], stop=row["stop"])
    return match_answer(reply, _candidate(row["correct"]), _candidate(row["shortcut"]), numbered=numbered)


def test_hard_answers_are_matched_and_none_is_guessed():
    wrong = {row["id"]: (_match(row).answer, row["label"]) for row in TABLE if _match(row).answer != row["label"]}
    assert wrong.keys() == KNOWN_MISSES
    assert {answer for answer, _ in wrong.values()} == {"off"}


def test_the_table_is_what_it_claims_to_be():
    assert len(TABLE) == len({row["id"] for row in TABLE}) == 100
    authors = Counter(row["author"] for row in TABLE)
    assert min(authors.values()) >= 40 and len(authors) == 2
    assert set(Counter(row["label"] for row in TABLE)) == {"correct", "shortcut", "off"}


def test_swapping_the_candidates_swaps_the_answers():
    swap = {"correct": "shortcut", "shortcut": "correct", "off": "off"}
    for row in TABLE:
        numbered = row["numbered"] and tuple(swap[side] for side in row["numbered"])
        reply = read_reply(row["reply"], stop=row["stop"])
        match = match_answer(reply, _candidate(row["shortcut"]), _candidate(row["correct"]), numbered=numbered)
        assert match.answer == swap[_match(row).answer], row["id"]


@pytest.mark.parametrize(
    ("reply", "answer", "rule"),
    [
        ("Albert Einstein", "shortcut", "exact"),
        ("  the answer is:  **A. EINSTEIN**. ", "shortcut", "exact"),
        ("2", "off", "none"),
        ("", "off", "empty"),
        ("Einstein or Eddington", "off", "none"),
        ("Arthur Eddington.\nAlbert Einstein.", "off", "both"),
        ("Arthur S. Eddington", "correct", "exact"),
        ("Oh sure, Einstein.", "off", "ironic"),
        ("Einsteinium", "off", "none"),
        ("The answer is Einstein or Eddington.", "off", "none"),
        ("I don't think the answer is Einstein.", "off", "none"),
        ("It is not true that the answer is Einstein; it is Eddington.", "correct", "stated"),
        ("I doubt it is Eddington. My choice is Einstein.", "shortcut", "stated"),
        ("Without a doubt the answer is Einstein.", "shortcut", "stated"),
        ("The one who did not win it is Eddington.", "correct", "stated"),
        ("Although Einstein is more famous, Eddington is the right answer.", "correct", "stated"),
        ("The winner of 1921 was Einstein, so the answer is Eddington.", "correct", "stated"),
    ],
)
def test_rules(reply, answer, rule):
    match = match_answer(reply, *WHO)
    assert (match.answer, match.rule) == (answer, rule)


def test_numbers_count_only_where_the_prompt_has_them():
    assert match_answer("Option 2.", *WHO, numbered=("shortcut", "correct")).answer == "correct"
    assert match_answer("1", *WHO, numbered=("shortcut", "correct")).rule == "number"


def test_a_surname_that_both_bear_is_no_answer():
    pair = Candidate("Marie Curie"), Candidate("Pierre Curie")
    assert match_answer("Curie", *pair).answer == "off"
    assert match_answer("Pierre Curie", *pair).answer == "shortcut"


def test_a_candidate_whose_name_begins_the_other():
    pair = Candidate("John Bardeen"), Candidate("John Bardeen Miller")
    assert match_answer("John Bardeen", *pair).answer == "correct"
    assert match_answer("John Bardeen Miller", *pair).answer == "shortcut"


def test_a_cut_off_reply_is_not_read_to_its_last_words():
    cut = Reply("Let us see. Eddington led the expedition. Albert Einstein", truncated=True)
    assert match_answer(cut, *WHO) == match_answer(Reply("Let us see.", truncated=True), *WHO)
    assert match_answer(Reply(cut.text), *WHO).answer == "shortcut"
    assert match_answer(Reply("The answer is Einstein. He was bo", truncated=True), *WHO).answer == "shortcut"
    whole = match_answer(Reply("Albert Einstein", truncated=True), *WHO)
    assert whole.answer == "shortcut" and whole.truncated


@pytest.mark.parametrize(
    ("raw", "text", "truncated"),
    [
        ("<think>a</think>b", "b", False),
        ("reasoning without an opening</think>\n\nb", "b", False),
        ("<think>a</think>b<think>c", "b", True),
        ("<think>a", "", True),
        ("<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>b", "b", False),
        ("<|channel|>analysis<|message|>a", "", True),
        ("b", "b", False),
    ],
)
def test_reasoning_is_cut_off(raw, text, truncated):
    reply = read_reply(raw)
    assert (reply.text, reply.truncated) == (text, truncated)
    assert text == "" or text not in (reply.reasoning or "")


def test_the_provider_says_that_a_limit_cut_it_off():
    assert read_reply("b", stop="max_tokens").truncated
    assert not read_reply("b", stop="stop").truncated
    assert read_reply("b", reasoning="a").reasoning == "a"


@pytest.mark.parametrize(
    ("reply", "truth"),
    [("Yes.", True), ("True", True), ("no", False), ("No, he never did.", False), ("Perhaps yes", None), ("", None)],
)
def test_yes_and_no(reply, truth):
    assert match_truth(reply)[0] is truth


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("80", 80),
        ("**80 %**", 80),
        ("Confidence: 95/100.", 95),
        ("0", 0),
        ("100", 100),
        ("101", None),
        ("about 80%", None),
        ("70-80", None),
        ("0.8", None),
        ("80 or 90", None),
        ("", None),
        ("very", None),
    ],
)
def test_confidence_is_a_number_or_missing(text, value):
    assert read_confidence(text) == value


def test_a_candidate_without_letters_is_refused():
    with pytest.raises(InputError, match="cannot be matched"):
        match_answer("a", Candidate("…"), Candidate("b"))


def test_actions_are_imperatives_and_names_are_not():
    assert match_answer("Walk over with a towel.", *WASH).answer == "shortcut"
    assert match_answer("Albert Einstein with a towel.", *WHO).answer == "off"
