"""Folders and files that are not what a run needs: refused in words, and nothing of theirs is touched."""

from __future__ import annotations

import pytest

from latentkt.errors import RunError
from latentkt.results import atomic_write, create_run, load_run, refuse_existing


def test_a_file_where_a_folder_should_be_is_refused_not_a_traceback(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="cannot write"), atomic_write(tmp_path / "file" / "page.html") as file:
        file.write(b"x")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("content", ['{"schema_version": 1}', '{"name": "of another program"}', "[]", "7"])
def test_metadata_of_something_else_is_refused(content, tmp_path):
    (tmp_path / "metadata.json").write_text(content)
    with pytest.raises(RunError), create_run(tmp_path, metadata={}, resume=True):
        pass
    with pytest.raises(RunError):
        load_run(tmp_path, partial=True)
    assert (tmp_path / "metadata.json").read_text() == content


def test_a_name_that_no_system_takes_is_refused(tmp_path):
    with pytest.raises(RunError, match="cannot look into"):
        refuse_existing(tmp_path / ("a" * 300), resume=False)
