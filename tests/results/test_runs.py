"""Runs: refused, resumed, killed, out of space; the bytes are the same in the end."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from latentkt.errors import InputError, RunError
from latentkt.results import atomic_write, create_run, files, load_run
from latentkt.results.identity import differences

ROOT = Path(__file__).parents[2]
IDENTITY = {"model": {"id": "tiny", "weight_hash": "aa"}, "items": "bb", "seeds": {"items": 0}, "options": (1, 2)}


def rows(table: str, batch: int) -> pd.DataFrame:
    rng = np.random.default_rng([batch, len(table)])
    values = rng.normal(size=5)
    values[batch % 5] = np.nan
    return pd.DataFrame({"item": [f"{table}{batch}-{i}" for i in range(5)], "layer": range(5), "log_odds": values})


def make(path: Path, *, resume: bool = False, stop_after: int | None = None, identity=IDENTITY) -> None:
    written = 0
    with create_run(path, metadata=identity, resume=resume) as run:
        for table in ("lens", "answers"):
            for batch in run.batches(table, 4):
                if written == stop_after:
                    raise InterruptedError
                run.write(table, batch, rows(table, batch))
                written += 1
        run.save("summary", pd.DataFrame({"n": [len(run.read("answers"))]}))
        run.finish()


def table_bytes(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / "tables").iterdir())}


def everything(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def test_a_run_comes_back_as_it_was_saved(tmp_path):
    make(tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert run.finished and list(run.tables) == ["answers", "lens", "summary"]
    expected = pd.concat([rows("lens", batch) for batch in range(4)], ignore_index=True)
    assert_frame_equal(run.tables["lens"], expected, check_exact=True)
    assert run.tables["lens"] is run.tables["lens"]
    assert run.identity["options"] == [1, 2]
    assert run.tables["summary"]["n"].tolist() == [20]
    assert everything(tmp_path / "run") == [
        ".lock",
        "metadata.json",
        "tables/answers.parquet",
        "tables/lens.parquet",
        "tables/summary.parquet",
    ]
    run.verify()
    with pytest.raises(KeyError, match="answers, lens, summary"):
        run.tables["other"]


def test_an_existing_run_is_refused_and_left_alone(tmp_path):
    make(tmp_path / "run")
    before = table_bytes(tmp_path / "run")
    with pytest.raises(RunError, match=r"(?s)exists.*--resume"):
        make(tmp_path / "run")
    assert table_bytes(tmp_path / "run") == before


def test_a_folder_that_is_no_run_is_refused_even_with_resume(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"notes\.txt"):
        make(tmp_path, resume=True)
    assert everything(tmp_path) == ["notes.txt"]
    with pytest.raises(RunError, match="a file"):
        make(tmp_path / "notes.txt")


def test_an_empty_folder_is_taken(tmp_path):
    make(tmp_path)
    assert load_run(tmp_path).finished


@pytest.mark.parametrize("stop_after", range(9))
def test_resumed_after_any_batch_gives_the_same_bytes(tmp_path, stop_after):
    make(tmp_path / "whole")
    if stop_after < 8:
        with pytest.raises(InterruptedError):
            make(tmp_path / "resumed", stop_after=stop_after)
        with pytest.raises(RunError, match="not finished"):
            load_run(tmp_path / "resumed")
    make(tmp_path / "resumed", resume=True)
    assert table_bytes(tmp_path / "resumed") == table_bytes(tmp_path / "whole")
    make(tmp_path / "resumed", resume=True)  # a finished run is left as it is
    assert table_bytes(tmp_path / "resumed") == table_bytes(tmp_path / "whole")


def test_only_missing_batches_are_asked_for(tmp_path):
    with create_run(tmp_path / "run", metadata={}) as run:
        for batch in run.batches(("lens", "patch"), 3):
            run.write("lens", batch, rows("lens", batch))
            if batch != 1:
                run.write("patch", batch, rows("patch", batch))
        assert list(run.batches(("lens", "patch"), 3)) == [1]
        assert list(run.batches("lens", 3)) == []
        with pytest.raises(RunError, match=r"(?s)patch.*missing: \[1\]"):
            run.finish()
    partial = load_run(tmp_path / "run", partial=True)
    assert partial.progress() == {"lens": (3, 3), "patch": (2, 3)}
    assert len(partial.tables["patch"]) == 10


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from pathlib import Path
import latentkt.results.files as files
from tests.results.test_runs import make
at, countdown = {at!r}, {countdown}
def counted(real):
    def call(*args, **kwargs):
        global countdown
        countdown -= 1
        if countdown == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return call
setattr(Path, at, counted(getattr(Path, at))) if at == "replace" else setattr(os, at, counted(getattr(os, at)))
make(Path({path!r}))
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
@pytest.mark.parametrize("at, countdown", [("fsync", 9), ("replace", 12), ("replace", 14)])
def test_a_killed_writer_resumes_to_the_same_bytes(tmp_path, at, countdown):
    """Killed before the flush of a part, before the rename of a part, between the renames of merged tables."""
    code = KILLED.format(root=str(ROOT), at=at, countdown=countdown, path=str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    leftovers = [name for name in everything(tmp_path / "run") if files.TEMPORARY in name]
    assert leftovers, "the kill came too early or too late to test anything"
    with pytest.raises(RunError, match="not finished"):
        load_run(tmp_path / "run")
    make(tmp_path / "run", resume=True)
    make(tmp_path / "whole")
    assert table_bytes(tmp_path / "run") == table_bytes(tmp_path / "whole")
    assert not [name for name in everything(tmp_path / "run") if files.TEMPORARY in name]


@pytest.mark.parametrize("call", range(1, 30, 4))
def test_no_space_left_is_one_error_and_leaves_nothing_half_written(tmp_path, monkeypatch, call):
    calls = 0

    def full(descriptor):
        nonlocal calls
        calls += 1
        if calls >= call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match=r"(?s)No space left on device.*free some space.*--resume"):
            make(tmp_path / "run")
    assert not [name for name in everything(tmp_path / "run") if files.TEMPORARY in name]
    make(tmp_path / "run", resume=True)
    make(tmp_path / "whole")
    assert table_bytes(tmp_path / "run") == table_bytes(tmp_path / "whole")


@pytest.mark.parametrize(
    "change, named",
    [
        ({"model": {"id": "tiny", "weight_hash": "XX"}}, r"model\.weight_hash: the run has \"aa\", now \"XX\""),
        ({"items": "XX"}, 'items: the run has "bb", now "XX"'),
        ({"options": [1, 3]}, r"options: the run has \[1, 2\], now \[1, 3\]"),
        ({"seeds": {"items": 1}}, r"seeds\.items"),
        ({"limit": 4}, r"limit: the run has \"\(absent\)\", now 4"),
        ({"seeds": {"items": 0.0}}, r"seeds\.items"),
    ],
)
def test_another_identity_is_refused_naming_what_differs(tmp_path, change, named):
    with pytest.raises(InterruptedError):
        make(tmp_path / "run", stop_after=2)
    before = everything(tmp_path / "run")
    with pytest.raises(RunError, match=named):
        make(tmp_path / "run", resume=True, identity=IDENTITY | change)
    assert everything(tmp_path / "run") == before


def test_all_differences_are_named():
    assert [where for where, _, _ in differences({"a": 1, "b": {"c": 2}}, {"a": 2, "b": {"c": 3, "d": 1}})] == [
        "a",
        "b.c",
        "b.d",
    ]


def test_another_plan_is_refused(tmp_path):
    with create_run(tmp_path / "run", metadata={}, plan={"answers": 3}) as run:
        with pytest.raises(RunError, match=r"(?s)'answers'.*3 batches.*4"):
            run.batches("answers", 4)
        with pytest.raises(RunError, match="was not planned"):
            run.write("answers", 3, rows("answers", 3))
        with pytest.raises(RunError, match="was not planned"):
            run.write("other", 0, rows("other", 0))
        with pytest.raises(RunError, match="not complete"):
            run.finish()
        with pytest.raises(InputError, match=r"\.\./up"):
            run.plan("../up", 1)


def test_a_table_can_be_added_to_a_finished_run(tmp_path):
    make(tmp_path / "run")
    with create_run(tmp_path / "run", metadata=IDENTITY, resume=True) as run:
        run.plan("probe", 1)
        with pytest.raises(RunError, match="whole already"):
            run.write("lens", 0, rows("lens", 0))
        with pytest.raises(RunError, match="not finished"):
            load_run(tmp_path / "run")
        run.save("probe", rows("probe", 0))
        run.finish()
    assert sorted(load_run(tmp_path / "run").tables) == ["answers", "lens", "probe", "summary"]


def test_two_writers_at_once_are_refused(tmp_path):
    with create_run(tmp_path / "run", metadata={}), pytest.raises(RunError, match="another process"):
        make(tmp_path / "run", resume=True, identity={})


def test_a_writer_can_be_sent_to_another_process(tmp_path):
    with create_run(tmp_path / "run", metadata={}, plan={"answers": 1}) as run:
        pickle.loads(pickle.dumps(run)).write("answers", 0, rows("answers", 0))
        run.finish()
    assert load_run(tmp_path / "run").finished


def test_times_and_commands_stand_apart_from_the_identity(tmp_path):
    with create_run(tmp_path / "run", metadata=IDENTITY, command=["latentkt", "study"]):
        pass
    with create_run(tmp_path / "run", metadata=IDENTITY, command=["latentkt", "study", "--resume"], resume=True) as run:
        run.save("answers", rows("answers", 0))
        run.finish()
    metadata = load_run(tmp_path / "run").metadata
    assert [session["command"][-1] for session in metadata["history"]] == ["study", "--resume"]
    assert all(session["began"] <= session["ended"] for session in metadata["history"])
    assert "history" not in metadata["identity"]


def test_a_table_that_was_edited_or_damaged_is_seen(tmp_path):
    make(tmp_path / "run")
    path = tmp_path / "run" / "tables" / "lens.parquet"
    path.write_bytes(path.read_bytes()[:-5])
    run = load_run(tmp_path / "run")
    with pytest.raises(RunError, match="'lens'"):
        run.verify()
    with pytest.raises(RunError, match=r"lens\.parquet"):
        run.tables["lens"]


@pytest.mark.parametrize(
    "content, named", [("{", "cannot read"), ('{"schema_version": 99}', "schema version 1"), ("3", "format")]
)
def test_unreadable_metadata_are_refused(tmp_path, content, named):
    (tmp_path / "metadata.json").write_text(content)
    with pytest.raises(RunError, match=named):
        load_run(tmp_path)


def test_no_run_directory_is_refused(tmp_path):
    with pytest.raises(RunError, match="no run directory"):
        load_run(tmp_path / "none")


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_metadata_that_json_does_not_know_are_refused(tmp_path, value):
    with pytest.raises(InputError, match="JSON"), create_run(tmp_path / "run", metadata={"x": value}):
        pass
    assert not (tmp_path / "run").exists()


def test_numpy_numbers_are_written_as_numbers(tmp_path):
    with create_run(tmp_path / "run", metadata={"n": np.int64(3), "f": np.float64(0.5), "b": np.bool_(True)}):
        pass
    assert json.loads((tmp_path / "run" / "metadata.json").read_text())["identity"] == {"n": 3, "f": 0.5, "b": True}


def test_files_are_kept_beside_the_tables(tmp_path):
    with create_run(tmp_path / "run", metadata={}) as run:
        run.write_file("items.jsonl", "{}\n")
        assert (run.path / "items.jsonl").read_text() == "{}\n"
        for name in ("../out.txt", "metadata.json"):
            with pytest.raises(InputError):
                run.write_file(name, "x")


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(ValueError), atomic_write(path) as file:
        file.write(b"half")
        raise ValueError
    assert path.read_bytes() == b"old" and everything(tmp_path) == ["a.txt"]


def test_a_disk_that_fills_up_in_the_middle_of_a_table_is_the_same_error(tmp_path, monkeypatch):
    """The error comes from a write inside the parquet library, after some bytes have gone out."""
    real, left = Path.open, 600

    class Filling:
        def __init__(self, file):
            self._file = file

        def __getattr__(self, name):
            return getattr(self._file, name)

        def write(self, data):
            nonlocal left
            left -= len(data)
            if left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self._file.write(data)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self._file.close()

    def opened(path, mode="r", **options):
        file = real(path, mode, **options)
        return Filling(file) if path.name.endswith(".parquet") and "w" in mode else file

    with create_run(tmp_path / "run", metadata={}, plan={"answers": 1}) as run:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", opened)
            with pytest.raises(RunError, match=r"(?s)answers.*No space left on device"):
                run.write("answers", 0, rows("answers", 0))
        assert left < 0
        assert not run.done("answers", 0)
        assert not [name for name in everything(tmp_path / "run") if "answers" in name]
