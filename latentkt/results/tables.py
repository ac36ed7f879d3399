"""Data frames to parquet and back: the same frame gives the same bytes, and comes back with its types.

What a table may hold: booleans, integers, floats, text, times, categories, pandas's nullable types, and lists of
numbers, booleans, text or lists. Columns of Python objects are stored by what they hold: text comes back as pandas's
string type, tuples and arrays come back as lists, booleans with gaps as `boolean`. Anything else is refused by name of
its column, because parquet would change it in silence. Absent numbers are NaN in the file too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from latentkt.errors import RunError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["concatenate", "from_arrow", "read_arrow", "to_arrow", "write_arrow"]

# Field metadata that names a pandas nullable type, which parquet alone cannot tell from the plain one.
DTYPE = b"pandas_dtype"
ROWS_PER_GROUP = 131_072


def to_arrow(frame: pd.DataFrame, *, name: str) -> pa.Table:
    """Turn a frame into an Arrow table; the index is not stored.

    Args:
        frame: The rows.
        name: The table's name, for messages.

    Raises:
        RunError: Column names are not unique text, the index carries labels, or a column holds what cannot be stored
            without loss.
    """
    import pandas as pd
    import pyarrow as pa

    names = list(frame.columns)
    if not all(isinstance(column, str) for column in names) or len(set(names)) != len(names):
        raise RunError(f"table {name!r}", expected="column names that are text and unique", found=names)
    if not isinstance(frame.index, pd.RangeIndex) and frame.index.name is not None:
        raise RunError(
            f"table {name!r}",
            expected="all data in columns",
            found=f"an index named {frame.index.name!r}",
            fix="call reset_index() first",
        )
    arrays, fields = [], []
    for column in names:
        array, dtype = _column(frame[column], f"column {column!r} of table {name!r}")
        arrays.append(array)
        fields.append(pa.field(column, array.type, metadata={DTYPE: dtype.encode()} if dtype else None))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def from_arrow(table: pa.Table) -> pd.DataFrame:
    """The frame that `to_arrow` was given."""
    import pandas as pd
    import pyarrow.types as types

    columns: dict[str, Any] = {}
    for field in table.schema:
        column = table.column(field.name)
        if field.metadata and DTYPE in field.metadata:
            dtype: Any = pd.api.types.pandas_dtype(field.metadata[DTYPE].decode())
            columns[field.name] = pd.Series(dtype.__from_arrow__(column))
        elif types.is_list(field.type):
            columns[field.name] = pd.Series(column.to_pylist(), dtype=object)
        else:
            columns[field.name] = column.to_pandas()
    return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows), columns=table.schema.names)


def concatenate(parts: Sequence[pa.Table], *, name: str) -> pa.Table:
    """Stack parts in order; a column that is empty or whole numbers in one part takes the type of the others.

    Parts without rows may have any columns: they are passed over unless no part has a row.

    Raises:
        RunError: The parts that hold rows have other columns, or types that do not fit together.
    """
    import pyarrow as pa

    # A part without rows says nothing of columns and types: what it would have held is listed as skipped.
    filled = [part for part in parts if part.num_rows] or list(parts[:1])
    names = filled[0].schema.names
    for part in filled:
        if part.schema.names != names:
            raise RunError(
                f"table {name!r}: a part has other columns than the first", expected=names, found=part.schema.names
            )
    try:
        whole = pa.concat_tables(filled, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise RunError(f"table {name!r}: its parts do not fit together", found=error) from error
    fields = []
    for column in names:
        marks = [part.schema.field(column).metadata for part in filled]
        fields.append(whole.schema.field(column).with_metadata(next((mark for mark in marks if mark), None)))
    return whole.cast(pa.schema(fields)).combine_chunks()


def write_arrow(table: pa.Table, file: BinaryIO) -> None:
    """Write parquet with every option fixed, so that equal tables give equal bytes."""
    import pyarrow.parquet as pq

    pq.write_table(
        table,
        file,
        row_group_size=ROWS_PER_GROUP,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=3,
        use_dictionary=True,
        write_statistics=True,
        store_schema=True,
    )


def read_arrow(path: Path) -> pa.Table:
    """Read one parquet file.

    Raises:
        RunError: The file is absent or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise RunError(
            f"cannot read {path}", expected="a parquet table written by latentkt", found=str(error).splitlines()[0]
        ) from error


def _column(series: pd.Series[Any], where: str) -> tuple[pa.Array, str | None]:
    """The column as an Arrow array, and the pandas type to restore where Arrow's alone would not."""
    import pandas as pd
    import pyarrow as pa

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return pa.array(series), None
    if pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype):
        return _objects(series, where)
    if pd.api.types.is_extension_array_dtype(dtype) and not isinstance(dtype, pd.DatetimeTZDtype):
        return pa.array(series), str(dtype)
    if dtype.kind in "biuf":
        return pa.array(series.to_numpy(), from_pandas=False), None
    if dtype.kind in "mM":
        return pa.array(series), None
    raise RunError(where, expected="a type that parquet keeps", found=dtype)


def _objects(series: pd.Series[Any], where: str) -> tuple[pa.Array, str | None]:
    """A column of Python objects, stored by what it holds."""
    import pyarrow as pa

    values = [_listed(value) for value in series]
    kinds = {type(value) for value in values if value is not None}
    kept = {frozenset[type](): pa.null(), frozenset({str}): pa.string(), frozenset({bool}): pa.bool_()}
    if kinds == {list}:
        try:
            return pa.array(values, from_pandas=False), None
        except pa.ArrowException as error:
            raise RunError(where, expected="lists of values of one type", found=error) from error
    if frozenset(kinds) not in kept:
        raise RunError(
            where,
            expected="text, booleans, or lists of values of one type (absent: None or NaN)",
            found="a mixture of " + ", ".join(sorted(kind.__name__ for kind in kinds)),
            fix="give the column one type; absent numbers are NaN in a float column",
        )
    return pa.array(values, type=kept[frozenset(kinds)]), "boolean" if kinds == {bool} else None


def _listed(value: Any) -> Any:
    """Plain Python for a cell: None for absent, lists for tuples and arrays."""
    import numpy as np
    import pandas as pd

    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_listed(part) if isinstance(part, list | tuple | np.ndarray) else part for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is None or value is pd.NA or (isinstance(value, float) and value != value) else value
