from __future__ import annotations

import json
from pathlib import Path

import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.build.masking import linearise, mentions, remove_names, surname
from latentkt.trapqa.build.profiles import Profile, day, load_profiles, save_profiles, usable
from latentkt.trapqa.build.reading import read_profiles


def bound(value: str, kind: str = "literal") -> dict[str, str]:
    return {"type": kind, "value": value}


def test_sparql_rows_of_one_person_become_lists(tmp_path: Path) -> None:
    q = "http://www.wikidata.org/entity/"
    rows = [
        {"item": bound(q + "Q1", "uri"), "itemLabel": bound("Ann Lee"), "award": bound(q + "Q9", "uri"),
         "awardLabel": bound("Orchid Medal"), "born": bound("+1850-01-02T00:00:00Z")},
        {"item": bound(q + "Q1", "uri"), "itemLabel": bound("Ann Lee"), "award": bound(q + "Q8", "uri"),
         "awardLabel": bound("Silver Prize")},
        {"item": bound(q + "Q2", "uri"), "itemLabel": bound("Q2"), "award": bound(q + "Q7", "uri"),
         "awardLabel": bound("Q7")},
    ]  # fmt: skip
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"head": {"vars": ["item"]}, "results": {"bindings": rows}}))
    one, two = read_profiles(file)
    assert (one.id, one.name, one.born) == ("Q1", "Ann Lee", "1850-01-02")
    assert one.attributes == {"award": ("Orchid Medal", "Silver Prize")}
    assert two.name == "" and not two.attributes, "an entity whose label is its own number has no label"
    log = StageLog()
    assert usable([one, two], log) == [one]
    assert [r.rule for r in log] == ["no name"]


def test_tables_with_a_field_map(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    rows = ["nr who club sport page", "1 Ann Reds chess https://x", "1 Ann Blues  "]
    file.write_text("".join(row.replace(" ", "\t") + "\n" for row in rows))
    with pytest.raises(DataError, match="nr, who, club") as refusal:
        read_profiles(file)
    assert "--field" in str(refusal.value)
    (ann,) = read_profiles(file, {"id": "nr", "name": "who"})
    assert ann.attributes == {"club": ("Reds", "Blues"), "sport": ("chess",)}, "addresses are no attributes"
    (ann,) = read_profiles(file, {"id": "nr", "name": "who", "attributes": "sport"})
    assert ann.attributes == {"sport": ("chess",)}
    with pytest.raises(InputError, match="unknown parts"):
        read_profiles(file, {"nme": "who"})


def test_jsonl_and_what_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"id": "a", "name": "()", "label": "Ann (poet)", "attributes": {"genre": ["ode", "*"], "era": []}}\n\nx\n'
    )
    with pytest.raises(DataError, match="line 3"):
        read_profiles(file)
    file.write_text(file.read_text().replace("x\n", ""))
    (ann,) = read_profiles(file)
    assert ann.name == "Ann" and ann.attributes == {"genre": ("ode",)}
    for name, error in (("b.jsonl", InputError), ("b.xml", InputError)):
        with pytest.raises(error):
            read_profiles(tmp_path / name)
    (tmp_path / "c.csv").write_text("id,name,x\n1,Ann\n")
    with pytest.raises(DataError, match="row 2"):
        read_profiles(tmp_path / "c.csv")
    (tmp_path / "d.json").write_text("[]")
    with pytest.raises(DataError, match="SPARQL"):
        read_profiles(tmp_path / "d.json")


def test_who_is_usable_and_why_not() -> None:
    given = [
        Profile("1", "Ann Lee", attributes={"a": ("x",)}, born="1850-01-02"),
        Profile("2", "Ann  Lée", attributes={"b": ("y",)}, born="1850-01-02", fame=3.0),
        Profile("3", "Bo Ek", attributes={"a": ("x",)}, born="1900"),
        Profile("4", "Bo Ek", attributes={"a": ("z",)}, born="1950"),
        Profile("5", "Cy Orr"),
        Profile("6", "Дмитрий", attributes={"a": ("x",)}),
        Profile("7", "One Field", attributes={"a": ("x",)}, born="1800", died="1800"),
        Profile("6", "Дмитрий", attributes={"a": ("w",)}),
    ]
    log = StageLog()
    kept = usable(given, log)
    assert [p.id for p in kept] == ["1", "6", "7"]
    assert kept[0].attributes == {"a": ("x",), "b": ("y",)} and kept[0].fame == 3.0
    assert kept[1].attributes == {"a": ("x", "w")} and kept[2].tag_count == 1
    assert kept[2].died is None
    rows = {row["stage"]: row for row in log.table()}
    assert rows["profiles"] == {
        "stage": "profiles", "given": 8, "removed": 5, "kept": 3,
        "rules": {"same person as another row": 2, "two people of one name": 2, "no attributes": 1},
    }  # fmt: skip
    assert rows["dates"]["rules"] == {"born and died at impossible dates": 1}


def test_dates() -> None:
    assert [day(d) for d in ("1938-1-25", "1942-00-00", "1715", "", None, "-0287-01-01", "12 May 1820")] == [
        "1938-01-25", "1942", "1715", None, None, "-0287-01-01", None]  # fmt: skip


def test_profiles_are_kept_as_they_are(tmp_path: Path) -> None:
    given = [Profile("1", "Ann", ("A.",), {"a": ("x", "y")}, "1850", None, "text", 2.0), Profile("2", "Bo")]
    save_profiles(given, tmp_path / "p.jsonl")
    assert load_profiles(tmp_path / "p.jsonl") == given
    (tmp_path / "p.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(DataError, match="line 1"):
        load_profiles(tmp_path / "p.jsonl")


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("Max Planck", "Planck constant", "constant"),
        ("Max Planck", "Max Planck Medal", "Medal"),
        ("Satyendra Nath Bose", "Bose–Einstein condensate", "Einstein condensate"),
        ("Niels Bohr", "Bohr model (Bohr)", "model"),
        ("Isaac Newton", "Newtonian mechanics", "mechanics"),
        ("Benjamin Lee", "University of Leeds", "University of Leeds"),
        ("Max Born", "Max Planck Institute", "Max Planck Institute"),
        ("Max Born", "born rule", "rule"),
        ("Norman Foster Ramsey, Jr.", "Ramsey's interferometry", "interferometry"),
        ("Aristotle", "Aristotle", None),
    ],
)
def test_name_removal(name: str, value: str, left: str | None) -> None:
    masked = remove_names(Profile("1", name, attributes={"known_for": (value,)}))
    assert masked.attributes == ({"known_for": (left,)} if left else {})
    assert masked.name == "" and not masked.aliases


def test_other_scripts_are_removed_too() -> None:
    masked = remove_names(Profile("1", "Лев Ландау", attributes={"известен": ("теория Ландау", "сверхтекучесть")}))
    assert masked.attributes == {"известен": ("теория", "сверхтекучесть")}
    assert linearise(masked) == "Известен: теория, сверхтекучесть."


def test_mentions_are_written_as_names() -> None:
    assert mentions("a man born in Rome", ["Max Born"]) is None
    assert mentions("Born's rule", ["Max Born"]) == "Born's"
    assert surname("Charles III") == "Charles"


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x1e"])
def test_separators_inside_json_do_not_end_a_line(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text(
        json.dumps({"id": f"Q{mark}1", "name": "Ann Bee", "note": f"one{mark}two"}, ensure_ascii=mark == "\x1e") + "\n",
        encoding="utf-8",
    )
    (person,) = read_profiles(path)
    save_profiles([person], path)
    assert load_profiles(path) == [person]
    log = StageLog()
    log.remove("profiles", f"Q{mark}1", "no attributes")
    log.save(path)
    assert StageLog.load(path).table() == log.table()
