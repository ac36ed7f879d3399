from __future__ import annotations

from pathlib import Path

import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa.build.lists import ClosedList, Entry, read_list
from latentkt.trapqa.build.profiles import Profile
from latentkt.trapqa.build.statements import Statement, decide, statements_for

PRIZE = "Great Prize in Art"
GREAT = ClosedList(
    "list",
    "CC0",
    (
        Entry(("Ann Lee",), "1850-01-02", PRIZE, 1901),
        Entry(("Bo J. Ek", "Bo Johan Ek"), "1870-05-05", PRIZE, 1930),
        Entry(("Bo J. Ek",), "1870-05-05", "Great Prize in Song", 1931),
        Entry(("Cy Orr",), None, PRIZE, 1960),
        Entry(("Dee Fox",), "1880-01-01", PRIZE, 1920),
        Entry(("Dee Fox",), "1880-01-01", PRIZE, 1940),
        Entry(("Yuri Ivanov",), "1890-09-09", PRIZE, 1950),
    ),
)


def truth(name: str, born: str | None = None, statement: Statement | None = None, **more: object) -> bool | None:
    person = Profile(name, name, born=born, **more)  # type: ignore[arg-type]
    return decide(statement or Statement("award", PRIZE), person, [GREAT]).truth


def test_who_is_in_the_list() -> None:
    assert truth("Ann Lee", "1850") is True
    assert truth("Bo Ek", "1870-05-05") is True, "surname, initial and year"
    assert truth("Xi Wu", "1850-01-02") is False, "a day of birth alone is no likeness"
    assert truth("Bo Ek", "1920") is False, "another Bo Ek"
    assert truth("Zoe Zed", "1900") is False


@pytest.mark.parametrize(
    ("name", "born", "why"),
    [
        ("Ann Lee", "1855", "same name, another year"),
        ("Ann Lee", None, "no date"),
        ("Carl Lee", "1850", "same surname and year"),
        ("Yuri Iwanow", "1890-09-09", "another spelling"),
        ("Cy Orr", "1931", "no date in the list"),
    ],
)
def test_likeness_is_doubt(name: str, born: str | None, why: str) -> None:
    assert truth(name, born) is None, why


def test_the_profile_itself_settles_or_forbids() -> None:
    assert truth("Cy Orr", "1931", text="Orr received the Great Prize in Art.") is True
    assert truth("Zoe Zed", "1900", attributes={"award": ("Great Prize for Art",)}) is None
    assert truth("Zoe Zed", "1900", text="a friend of the Great laureate Ann") is None
    assert truth("Zoe Zed", "1800", died="1890") is None, "dead before the list begins: nothing is denied"
    song = Statement("award", "Great Prize in Song")
    assert truth("Zoe Zed", "1860", song, died="1925") is None, "the prize in song is younger than the list"
    assert truth("Zoe Zed", "1860", died="1925") is False


def test_years_of_awards() -> None:
    before = Statement("award_year", PRIZE, side="before", year=1920)
    assert truth("Ann Lee", "1850", before) is True and truth("Bo Ek", "1870", before) is False
    assert truth("Dee Fox", "1880", before) is None, "two awards"
    assert truth("Zoe Zed", "1900", before) is None, "none"
    assert truth("Ann Lee", "1850", Statement("award_year", PRIZE, side="after", year=1901)) is None, "that very year"
    assert truth("Ann Lee", "1850", Statement("award", "Small Prize")) is None, "no list of it"


def test_what_is_missing_is_not_false() -> None:
    statement = Statement("attribute", "Reds", attribute="club")
    assert truth("Ann", statement=statement, attributes={"club": ("Reds (club)",)}) is True
    assert truth("Ann", statement=statement, attributes={"club": ("Blues",)}) is None
    place = Statement("birth_place", "Vienna")
    assert truth("Ann", statement=place, attributes={"birth_place": ("Vienna", "Austria-Hungary")}) is True
    assert truth("Ann", statement=place, attributes={"birth_place": ("Paris",)}) is False
    assert truth("Ann", statement=place, attributes={"birth_place": ("Little Hamlet",)}) is None
    assert truth("Ann", statement=place, attributes={"birth_place": ("Paris", "Little Hamlet")}) is None
    assert truth("Ann", statement=place) is None
    life = Statement("birth_year", side="before", year=1900)
    assert truth("Ann", "1850", life, text="She died in 1920.") is None, "the text does not have the year"
    assert truth("Ann", "1850", life, text="Born 1850.") is True and truth("Ann", None, life) is None


def test_statements_lie_well_between() -> None:
    one = Profile("1", "Ann", born="1850", died="1907")
    other = Profile("2", "Bo", born="1882", died="1911")
    years = {(s.kind, s.side, s.year) for s in statements_for(one, other, [])}
    assert years == {("birth_year", "before", 1870), ("birth_year", "after", 1870)} or all(
        year in (1860, 1870) for _, _, year in years
    )
    assert not [s for s in statements_for(one, other, []) if s.kind == "death_year"], "1910 is too near to 1911"


def test_reading(tmp_path: Path) -> None:
    file = tmp_path / "prizes.csv"
    file.write_text("known_name,birth_date,category,award_year\nAnn Lee,3/1/1850,Art,1901.0\n")
    found = read_list(file, award="Great Prize in {category}")
    assert found.entries == (Entry(("Ann Lee",), "1850-03-01", PRIZE, 1901),)
    assert found.name == "prizes" and found.last_year == found.first_years[PRIZE] == 1901 and found.sha256
    with pytest.raises(InputError, match="names a field"):
        read_list(file)
    (tmp_path / "x.csv").write_text("known_name,category\nAnn,Art\n")
    with pytest.raises(DataError, match="row 1"):
        read_list(tmp_path / "x.csv", award="{category}")
    with pytest.raises(InputError, match="no closed list"):
        read_list(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.jsonl", b'{"name": "Ann"\n', "not a list"),
        ("a.jsonl", b"[1]\n", "not a list"),
        ("a.csv", "name,award,year\nJosé,P,1990\n".encode("latin-1"), "not UTF-8"),
        ("a.csv", b'name,award,year\n"Ann,P,1990\n', "not a list"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=why):
        read_list(tmp_path / name)


def test_blank_lines_and_line_ends_inside_cells(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"name": "Ann", "award": "P", "year": 1990}\n\n')
    (tmp_path / "a.csv").write_bytes(b'name,award,year\r\n"Ann",P,1990\r\n"Bob","P\nQ",1991\r\n')
    assert len(read_list(tmp_path / "a.jsonl").entries) == 1
    assert [entry.award for entry in read_list(tmp_path / "a.csv").entries] == ["P", "P\nQ"]
    with pytest.raises(InputError, match="cannot be filled"):
        read_list(tmp_path / "a.csv", award="Prize of {")
