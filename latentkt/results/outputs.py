"""Names of outputs: what a command reads is never written over."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from latentkt.errors import InputError

__all__ = ["jsonl_output"]


def jsonl_output(out: str | Path, inputs: Iterable[str | Path], *, beside: Iterable[str] = ()) -> Path:
    """The path of a JSON-lines output, checked before anything is computed.

    Args:
        out: The name that was asked for.
        inputs: Files that are read.
        beside: Endings of further files that are written beside it, such as `.meta.json`.

    Raises:
        InputError: It does not end in `.jsonl`, or it or a file beside it is one of the inputs, however spelled.

    Example:
        >>> jsonl_output("made.jsonl", ["seeds.jsonl"]).name
        'made.jsonl'
        >>> jsonl_output("./seeds.jsonl", ["seeds.jsonl"])
        Traceback (most recent call last):
        latentkt.errors.InputError: cannot write to seeds.jsonl
          expected: a name of its own, ending in .jsonl
          found:    seeds.jsonl is read
    """
    path = Path(out)
    if path.suffix != ".jsonl":
        raise InputError(f"cannot write to {path}", expected="a name of its own, ending in .jsonl", found=str(out))
    written = [path, *(path.with_suffix(ending) for ending in beside)]
    taken = {Path(each).resolve() for each in inputs}
    lost = next((each for each in written if each.resolve() in taken), None)
    if lost is not None:
        raise InputError(
            f"cannot write to {path}", expected="a name of its own, ending in .jsonl", found=f"{lost} is read"
        )
    return path
