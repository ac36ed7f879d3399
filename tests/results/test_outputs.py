"""What is read is never written over, however it is spelled."""

from __future__ import annotations

import pytest

from latentkt.errors import InputError
from latentkt.results import jsonl_output


@pytest.mark.parametrize("out", ["a.jsonl", "./a.jsonl", "sub/../a.jsonl", "b.txt", "own.jsonl"])
def test_an_input_is_no_output(tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="cannot write to"):
        jsonl_output(out, [tmp_path / "a.jsonl", "own.meta.json"], beside=[".meta.json"])


def test_a_name_of_its_own_is_taken(tmp_path):
    assert jsonl_output(tmp_path / "c.jsonl", [tmp_path / "a.jsonl"]) == tmp_path / "c.jsonl"
