"""Tables come back as they went in, and the same frame gives the same bytes."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from latentkt.errors import RunError
from latentkt.results import create_run, load_run, tables


def through(frame: pd.DataFrame, tmp_path) -> pd.DataFrame:
    path = tmp_path / "t.parquet"
    with path.open("wb") as file:
        tables.write_arrow(tables.to_arrow(frame, name="t"), file)
    return tables.from_arrow(tables.read_arrow(path))


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    tables.write_arrow(tables.to_arrow(frame, name="t"), buffer)
    return buffer.getvalue()


EVERYTHING = pd.DataFrame(
    {
        "item": pd.Series(["a", "π", ""], dtype="str"),
        "absent_text": pd.Series(["a", None, "c"], dtype="str"),
        "layer": np.array([0, 1, 2], dtype=np.int64),
        "small": np.array([1, 2, 3], dtype=np.int8),
        "effect": [0.1, np.nan, -np.inf],
        "half": np.array([0.1, np.nan, 2.0], dtype=np.float32),
        "right": [True, False, True],
        "maybe": pd.array([True, None, False], dtype="boolean"),
        "count": pd.array([1, None, 3], dtype="Int64"),
        "kind": pd.Categorical(["x", "y", "x"], categories=["y", "x"], ordered=True),
        "when": pd.to_datetime(["2024-01-01", "2024-01-02", None]),
        "ids": [[1, 2], [], [3]],
        "weights": [[0.5, np.nan], [], None],
        "words": [["a"], ["b", "c"], []],
        "nested": [[[1], [2, 3]], [], [[4]]],
    }
)


def test_every_type_comes_back(tmp_path):
    back = through(EVERYTHING, tmp_path)
    lists = ["ids", "weights", "words", "nested"]
    assert_frame_equal(back.drop(columns=lists), EVERYTHING.drop(columns=lists), check_exact=True)
    assert list(back.columns) == list(EVERYTHING.columns)
    for column in lists:
        assert repr(back[column].tolist()) == repr(EVERYTHING[column].tolist())
    assert isinstance(back["ids"][0], list)
    assert back["half"].dtype == np.float32


def test_absent_numbers_are_nan_in_the_file_not_null(tmp_path):
    arrow = tables.to_arrow(pd.DataFrame({"x": [1.0, np.nan]}), name="t")
    assert arrow.column("x").null_count == 0
    assert np.isnan(arrow.column("x")[1].as_py())


def test_objects_are_stored_by_what_they_hold(tmp_path):
    frame = pd.DataFrame(
        {
            "text": pd.Series(["a", None, np.nan], dtype=object),
            "flag": pd.Series([True, None, False], dtype=object),
            "tuple": pd.Series([(1, 2), (3,), ()], dtype=object),
            "array": pd.Series([np.arange(2), np.arange(1), np.arange(0)], dtype=object),
            "nothing": pd.Series([None, None, None], dtype=object),
        }
    )
    back = through(frame, tmp_path)
    assert back["text"].isna().tolist() == [False, True, True]
    assert str(back["flag"].dtype) == "boolean"
    assert back["tuple"].tolist() == [[1, 2], [3], []]
    assert back["array"].tolist() == [[0, 1], [0], []]
    assert back["nothing"].isna().all()


@pytest.mark.parametrize(
    "frame, named",
    [
        (pd.DataFrame({"mixed": pd.Series(["a", 1], dtype=object)}), "'mixed'"),
        (pd.DataFrame({"things": pd.Series([{1}, {2}], dtype=object)}), "'things'"),
        (pd.DataFrame({"lists": pd.Series([[1], ["a"]], dtype=object)}), "'lists'"),
        (pd.DataFrame({"z": np.array([1j])}), "'z'"),
        (pd.DataFrame({"x": [1.0]}, index=pd.Index([3], name="item")), "item"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a'"),
        (pd.DataFrame({0: [1]}), "0"),
    ],
)
def test_what_parquet_would_change_is_refused_by_name(frame, named):
    with pytest.raises(RunError, match=named):
        tables.to_arrow(frame, name="t")


cells = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**63), 2**63 - 1),
        "f": st.floats(),
        "s": st.text(st.characters(exclude_categories=["Cs"])),
        "b": st.booleans(),
        "l": st.lists(st.floats(allow_nan=False)),
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(cells, min_size=1, max_size=8))
def test_any_rows_come_back_and_bytes_repeat(rows):
    frame = pd.DataFrame(rows)
    data = parquet_bytes(frame)
    assert data == parquet_bytes(frame.copy(deep=True))
    import pyarrow.parquet as pq

    back = tables.from_arrow(pq.read_table(io.BytesIO(data)))
    assert_frame_equal(back, frame, check_exact=True)


def test_parts_take_each_others_types():
    parts = [
        tables.to_arrow(pd.DataFrame({"x": [1], "t": pd.Series([None], dtype=object), "n": [1.0]}), name="t"),
        tables.to_arrow(
            pd.DataFrame({"x": [0.5], "t": ["a"], "n": pd.Series([], dtype=object).reindex([0])}), name="t"
        ),
        tables.to_arrow(pd.DataFrame({"x": [], "t": [], "n": []}), name="t"),
    ]
    whole = tables.from_arrow(tables.concatenate(parts, name="t"))
    assert whole["x"].tolist() == [1.0, 0.5]
    assert whole["t"].isna().tolist() == [True, False]
    assert whole["n"].dtype == np.float64 and np.isnan(whole["n"][1])


def test_parts_with_other_columns_or_types_are_refused():
    one = tables.to_arrow(pd.DataFrame({"x": [1]}), name="t")
    with pytest.raises(RunError, match="other columns than the first"):
        tables.concatenate([one, tables.to_arrow(pd.DataFrame({"y": [1]}), name="t")], name="t")
    with pytest.raises(RunError, match="do not fit together"):
        tables.concatenate([one, tables.to_arrow(pd.DataFrame({"x": ["a"]}), name="t")], name="t")


def test_a_damaged_file_is_refused_by_name(tmp_path):
    path = tmp_path / "broken.parquet"
    path.write_bytes(parquet_bytes(EVERYTHING)[:200])
    with pytest.raises(RunError, match=r"broken\.parquet"):
        tables.read_arrow(path)
    with pytest.raises(RunError, match=r"none\.parquet"):
        tables.read_arrow(tmp_path / "none.parquet")


def test_a_part_without_rows_says_nothing_of_the_columns(tmp_path):
    """A batch that was skipped whole leaves the table as the other batches made it."""
    with create_run(tmp_path / "run", metadata={}) as run:
        for batch in run.batches("t", 3):
            rows = pd.DataFrame({"item": ["a"], "effect": [1.5]}) if batch == 1 else pd.DataFrame({"item": []})
            run.write("t", batch, rows)
        run.finish()
    table = load_run(tmp_path / "run").tables["t"]
    assert table.to_dict("list") == {"item": ["a"], "effect": [1.5]}
