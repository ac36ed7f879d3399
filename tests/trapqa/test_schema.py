"""Every clause of the item contract, broken once: refused with the file, the line, the id and the clause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa import ItemSet, load_items, save_items

ACTION, NEGATED, LEVEL = "act-flip", "sci-negated", "act-level-1"


def _write(folder: Path, lines: list[str], patterns: str | None = None) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    beside = Path(__file__).parent / "data" / "small.patterns.json"
    text = beside.read_text(encoding="utf-8") if patterns is None else patterns
    (folder / "mine.patterns.json").write_text(text, encoding="utf-8")
    return path


def _put(*keys):
    """A mutation that sets record[k0][k1]… = value."""

    def mutate(record):
        *path, last, value = keys
        for key in path:
            record = record[key]
        record[last] = value

    return mutate


def _drop(field):
    return lambda record: record.pop(field)


def _both_texts(change):
    def mutate(record):
        record["text"] = change(record["text"])
        record["control"]["text"] = change(record["control"]["text"])

    return mutate


def _swap_slots(text):
    return text.replace("{option_a}", "@").replace("{option_b}", "{option_a}").replace("@", "{option_b}")


def _slot_in_span(record):
    end = record["spans"]["constraint"][0][1]
    slot = record["text"].index("{option_a}")
    record["spans"]["constraint"].append([slot - 3, slot + 2])
    shift = len(record["control"]["text"]) - len(record["text"])
    record["control"]["spans"]["constraint"].append([slot - 3 + shift, slot + 2 + shift])
    assert end < slot


def _overlap(record):
    for where in (record, record["control"]):
        _, end = where["spans"]["shortcut"][0]
        where["spans"]["cue"] = [[end - 4, end + 2]]


def _blank_span(record):
    for where in (record, record["control"]):
        at = where["text"].index(" ")
        where["spans"]["gap"] = [[at, at + 1]]


def _other_roles(record):
    start, _ = record["control"]["spans"]["shortcut"][0]
    record["control"]["spans"]["extra"] = [[start - 4, start - 1]]


def _reserved_role(record):
    for where in (record, record["control"]):
        start, _ = where["spans"]["shortcut"][0]
        where["spans"]["rest"] = [[start - 4, start - 1]]


def _bad_role(record):
    for where in (record, record["control"]):
        start, _ = where["spans"]["shortcut"][0]
        where["spans"]["My role"] = [[start - 4, start - 1]]


CLAUSES = {
    "id missing": (ACTION, _drop("id"), "id is wrong"),
    "id with space": (ACTION, _put("id", "a b"), "id is wrong"),
    "id not text": (ACTION, _put("id", 3), "id is wrong"),
    "kind missing": (ACTION, _drop("kind"), "kind is wrong"),
    "kind unknown": (ACTION, _put("kind", "poet"), "kind is wrong"),
    "family missing": (ACTION, _drop("family"), "family is wrong"),
    "family blank": (ACTION, _put("family", " "), "family is wrong"),
    "aspect not text": (ACTION, _put("aspect", 7), "aspect is wrong"),
    "constraint_kind blank": (ACTION, _put("constraint_kind", ""), "constraint_kind is wrong"),
    "polarity unknown": (ACTION, _put("polarity", "denied"), "polarity is wrong"),
    "level too high": (LEVEL, _put("level", 4), "level is wrong"),
    "level not a whole number": (LEVEL, _put("level", True), "level is wrong"),
    "group without level": (LEVEL, _put("level", None), "group and level go together"),
    "level without group": (LEVEL, _put("group", None), "group and level go together"),
    "text missing": (ACTION, _drop("text"), "text is wrong"),
    "text with space around": (ACTION, _both_texts(lambda text: text + " "), "text is wrong"),
    "text with half a character": (ACTION, _both_texts(lambda text: text + "\ud83d"), "text is wrong"),
    "unknown field": (ACTION, _put("answer", "x"), "the field answer is unknown"),
    "correct missing": (ACTION, _drop("correct"), "correct is wrong"),
    "correct not an object": (ACTION, _put("correct", "drive"), "correct is wrong"),
    "candidate without text": (ACTION, _put("shortcut", {"aliases": []}), "shortcut.text is wrong"),
    "candidate with unknown field": (ACTION, _put("shortcut", "name", "x"), "the field shortcut.name is unknown"),
    "answer of two lines": (ACTION, _put("correct", "text", "a\nb"), "correct.text is wrong"),
    "aliases not a list": (ACTION, _put("correct", "aliases", "x"), "correct.aliases is wrong"),
    "profile not text": (ACTION, _put("correct", "profile", {}), "correct.profile is wrong"),
    "answers equal but for case": (NEGATED, _put("correct", "text", "NIELS  bohr"), "not distinct"),
    "alias of both": (NEGATED, _put("correct", "aliases", ["Bohr"]), "not distinct"),
    "spans missing": (ACTION, _drop("spans"), "spans is wrong"),
    "spans not an object": (ACTION, _put("spans", []), "spans is wrong"),
    "span not a range": (ACTION, _put("spans", "shortcut", [[1, 2, 3]]), "spans.shortcut is wrong"),
    "span of fractions": (ACTION, _put("spans", "shortcut", [[1.0, 2.0]]), "spans.shortcut is wrong"),
    "role without ranges": (ACTION, _put("spans", "shortcut", []), "spans.shortcut is wrong"),
    "role constraint missing": (ACTION, _put("spans", {"shortcut": [[0, 3]]}), "lack a role"),
    "span empty": (ACTION, _put("spans", "shortcut", [[4, 4]]), "leave the text or are empty"),
    "span backwards": (ACTION, _put("spans", "shortcut", [[9, 4]]), "leave the text or are empty"),
    "span beyond the text": (ACTION, _put("spans", "constraint", [[4, 9999]]), "leave the text or are empty"),
    "span before the text": (ACTION, _put("spans", "constraint", [[-4, 3]]), "leave the text or are empty"),
    "span in bytes, not code points": (
        ACTION,
        lambda r: r["spans"].update(constraint=[[s + 3, e + 3] for s, e in r["spans"]["constraint"]]),
        "differ outside the spans",
    ),
    "span of white space": (ACTION, _blank_span, "mark white space only"),
    "spans overlap": (ACTION, _overlap, "overlap another span"),
    "role reserved": (ACTION, _reserved_role, "have a bad role"),
    "role name": (ACTION, _bad_role, "have a bad role"),
    "slot missing": (ACTION, _both_texts(lambda t: t.replace("{option_a}", "that")), "wrong option slots"),
    "slot twice": (ACTION, _both_texts(lambda t: t + " {option_a}?"), "wrong option slots"),
    "slots in the wrong order": (ACTION, _both_texts(_swap_slots), "wrong option slots"),
    "slot of another name": (ACTION, _both_texts(lambda t: t + " {option_c}?"), "wrong option slots"),
    "slot in a scientist's text": (NEGATED, _both_texts(lambda t: t + " {option_a}?"), "wrong option slots"),
    "span touches a slot": (ACTION, _slot_in_span, "touches the slot"),
    "answer in the text": (
        ACTION,
        _both_texts(lambda t: t + " Fetching a  screwdriver takes long."),
        "text holds an answer",
    ),
    "control missing": (ACTION, _drop("control"), "control is wrong"),
    "control kind": (ACTION, _put("control", "kind", "other"), "control.kind is wrong"),
    "control with unknown field": (ACTION, _put("control", "answer", "x"), "the field control.answer is unknown"),
    "control's span": (ACTION, _put("control", "spans", "shortcut", [[0, 999]]), "control.spans.shortcut leave"),
    "control's slot": (
        ACTION,
        lambda r: r["control"].update(text=r["control"]["text"].replace("{option_b}", "not")),
        "control.text has wrong option slots",
    ),
    "control differs outside": (
        ACTION,
        lambda r: r["control"].update(text=r["control"]["text"].replace("tonight", "todaay!")),
        "differ outside the spans",
    ),
    "control equals the item": (
        ACTION,
        lambda r: r["control"].update(text=r["text"], spans=r["spans"]),
        "the control's text is the item's",
    ),
    "control with other roles": (ACTION, _other_roles, "have different spans"),
    "paths not an object": (ACTION, _put("paths", "screw:turning"), "paths is wrong"),
    "path without a task": (ACTION, _put("paths", "correct", "screw"), "paths.correct is wrong"),
    "path of three": (ACTION, _put("paths", "correct", "screw:turning:x"), "paths.correct is wrong"),
    "paths with unknown field": (ACTION, _put("paths", "other", "screw:turning"), "the field paths.other is unknown"),
    "paths equal": (ACTION, _put("paths", "correct", "hammer:hitting"), "paths are equal"),
    "path of an unknown key": (ACTION, _put("paths", "correct", "wrench:turning"), "paths.correct has no pattern"),
    "path of an unknown task": (ACTION, _put("paths", "shortcut", "hammer:sawing"), "paths.shortcut has no pattern"),
    "probes not a list": (NEGATED, _put("probe_questions", {}), "probe_questions is wrong"),
    "probe of unknown role": (NEGATED, _put("probe_questions", 0, "role", "other"), "probe_questions[0].role is wrong"),
    "probe without text": (NEGATED, _put("probe_questions", 0, "text", ""), "probe_questions[0].text is wrong"),
    "probe's answer not a truth value": (
        NEGATED,
        _put("probe_questions", 1, "answer", 1),
        "probe_questions[1].answer is wrong",
    ),
    "probe with unknown field": (
        NEGATED,
        _put("probe_questions", 0, "gold", 1),
        "the field probe_questions[0].gold is unknown",
    ),
    "two probes of a role": (
        NEGATED,
        _put("probe_questions", 0, "role", "compatibility"),
        "two probe questions of one",
    ),
    "probes with equal answers": (NEGATED, _put("probe_questions", 0, "answer", False), "have the same answer"),
    "source not a list": (ACTION, _put("source", "own"), "source is wrong"),
    "meta not an object": (ACTION, _put("meta", []), "meta is wrong"),
}


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_broken_clause_is_refused_by_file_line_and_id(clause, records, tmp_path):
    item_id, mutate, message = CLAUSES[clause]
    broken = records[item_id]
    mutate(broken)
    path = _write(tmp_path, [json.dumps(records["act-neutral"]), "", json.dumps(broken)])
    with pytest.raises(DataError) as refusal:
        load_items(path)
    assert message in str(refusal.value)
    assert f"{path}, line 3" in str(refusal.value)
    if not clause.startswith("id "):
        assert repr(item_id) in str(refusal.value)


@pytest.mark.parametrize("item_id", ["sci-negated", "act-flip", "act-neutral", "act-level-0"])
def test_the_same_items_unbroken_are_taken(item_id, records, tmp_path):
    assert [item.id for item in load_items(_write(tmp_path, [json.dumps(records[item_id])]))] == [item_id]


def test_only_what_an_item_cannot_do_without_is_needed(records, tmp_path):
    needed = ("id", "kind", "family", "text", "correct", "shortcut", "spans", "control")
    record = {field: records[ACTION][field] for field in needed}
    (item,) = load_items(_write(tmp_path, [json.dumps(record)]))
    assert (item.polarity, item.level, item.paths, item.probe_questions, item.source) == ("none", None, None, (), ())
    for field in needed:
        with pytest.raises(DataError, match=f"{field} is wrong"):
            load_items(_write(tmp_path, [json.dumps({k: v for k, v in record.items() if k != field})]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "act-level-0"}, "the id occurs twice"),
        ({"level": 0}, "level 0 occurs twice in group 'form'"),
        ({"family": "other"}, "is not one question"),
        ({"correct": {"text": "something else"}}, "is not one question"),
    ],
)
def test_a_broken_set_is_refused(changes, message, records, tmp_path):
    second = {**records["act-level-1"], **changes}
    path = _write(tmp_path, [json.dumps(records["act-level-0"]), json.dumps(second)])
    with pytest.raises(DataError) as refusal:
        load_items(path)
    assert message in str(refusal.value)
    assert f"{path}, line 2, item {second['id']!r}" in str(refusal.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "x"', "not JSON"),
        ('{"id": "x", "id": "y"}', "a field occurs twice: id"),
        ('{"id": "x", "meta": {"a": NaN}}', "NaN is not JSON"),
        ("[]", "the line is wrong"),
    ],
)
def test_a_line_that_is_no_object_is_refused(line, message, tmp_path):
    path = _write(tmp_path, [line])
    with pytest.raises(DataError) as refusal:
        load_items(path)
    assert message in str(refusal.value)
    assert f"{path}, line 1" in str(refusal.value)


def test_files_that_are_no_item_files(tmp_path):
    with pytest.raises(DataError, match="holds no items"):
        load_items(_write(tmp_path, ["", "  "]))
    with pytest.raises(InputError, match="no item file"):
        load_items(tmp_path / "absent.jsonl")
    with pytest.raises(InputError, match="no item file"):
        load_items(tmp_path)
    (tmp_path / "latin.jsonl").write_bytes(b'{}\n{"id": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"latin\.jsonl, line 2: not UTF-8"):
        load_items(tmp_path / "latin.jsonl")


def test_offsets_are_code_points(small):
    item = small.by_id("act-flip")
    ((start, end),) = item.spans["constraint"]
    assert item.text[start:end] == "wood screws"
    assert item.text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le") != "wood screws"


def test_saved_items_are_loaded_unchanged(small, tmp_path):
    save_items(small, tmp_path / "copy.jsonl")
    copy = load_items(tmp_path / "copy.jsonl")
    assert copy.items == small.items
    assert copy.patterns == small.patterns
    assert copy.sha256 == small.sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.jsonl", "copy.patterns.json"]


def test_the_hash_is_of_the_content_not_the_layout(small, records, tmp_path):
    lines = [json.dumps(record, sort_keys=True, ensure_ascii=True) for record in records.values()]
    assert load_items(_write(tmp_path, lines)).sha256 == small.sha256
    records["act-flip"]["source"] = ["another"]
    lines = [json.dumps(record) for record in records.values()]
    assert load_items(_write(tmp_path, lines)).sha256 != small.sha256
    assert small.filter(kind="action").sha256 != small.sha256
    assert ItemSet(small.items).sha256 != small.sha256


def test_an_empty_set_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="cannot save"):
        save_items(ItemSet(()), tmp_path / "none.jsonl")


def test_items_are_found_by_id_kind_and_family(small):
    assert small.by_id("act-neutral").correct.text == "drive"
    with pytest.raises(InputError, match="no item 'nobody'"):
        small.by_id("nobody")
    assert [item.id for item in small.filter(kind="scientist")] == ["sci-negated", "sci-affirmed"]
    assert len(small.filter(family="delivery_medium")) == 4
    assert len(small.filter(kind="scientist", family="delivery_medium")) == 0


def test_which_answer_is_right(small):
    assert small.by_id("act-flip").right() == "correct"
    assert small.by_id("act-flip").right("control") == "shortcut"
    assert small.by_id("act-neutral").right("control") is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("id", "x" * 300), ("id", "red\x1b[31m"), ("id", "a\u202eb"), ("family", "two\nlines"), ("family", "f" * 300)],
)
def test_names_that_would_break_a_screen_are_refused(field, value, records, tmp_path):
    records["act-flip"][field] = value
    with pytest.raises(DataError, match=rf"{field} is wrong") as refused:
        load_items(_write(tmp_path, [json.dumps(record) for record in records.values()]))
    assert len(str(refused.value)) < 1200


def test_a_line_nested_without_end_is_refused(tmp_path):
    with pytest.raises(DataError, match="not JSON"):
        load_items(_write(tmp_path, ["[" * 200_000]))
