"""JSON lines: what is written is read, and what is not JSON lines is refused by file and line."""

import pytest

from latentkt.errors import DataError, InputError
from latentkt.results import json_line, read_json_lines, write_json_lines


def _read(path):
    return list(read_json_lines(path, lambda row, where: (row, where.rpartition(" ")[2])))


def test_rows_come_back_with_their_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"name": "Émilie\u2028du Châtelet"}, {"n": [1, 2.5, None]}]
    assert write_json_lines(rows, path) == 2
    assert _read(path) == [(rows[0], "1"), (rows[1], "2")]


def test_blank_lines_a_byte_order_mark_and_carriage_returns_are_passed_over(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"a": 2}')
    assert _read(path) == [({"a": 1}, "1"), ({"a": 2}, "4")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"a": 1', "line 2: not JSON"),
        (b'{"a": "\xff"}', "line 2: not JSON"),
        (b"[" * 100_000, "line 2: not JSON"),
        (b"[1]", "line 2: not an object"),
        (b'\xef\xbb\xbf{"a": 1}', "line 2: not JSON"),
    ],
)
def test_other_lines_are_refused(line, words, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b"\n")
    with pytest.raises(DataError, match=words):
        _read(path)


def test_an_absent_file_and_a_value_without_json_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        _read(tmp_path / "nowhere.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        json_line({"a": float("nan")})


def test_nothing_is_left_of_a_write_that_fails(tmp_path):
    path = tmp_path / "rows.jsonl"
    with pytest.raises(ValueError, match="JSON"):
        write_json_lines([{"a": 1}, {"a": float("inf")}], path)
    assert list(tmp_path.iterdir()) == []
