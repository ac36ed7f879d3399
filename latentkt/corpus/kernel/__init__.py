"""The kernel: finds any number of phrases in one pass over the text; numba where it is installed, else NumPy."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from latentkt.errors import InputError, MissingExtraError

__all__ = ["KERNELS", "Kernel", "open_kernel"]

KERNELS = ("auto", "numba", "numpy")
Kernel = Any  # a module with `tokenise`, `phrase_keys`, `find`


def open_kernel(name: str = "auto") -> Kernel:
    """The kernel's module: ``numba`` (the extra `fast`), ``numpy``, or the faster one that is there (``auto``).

    Raises:
        InputError: Another name.
        MissingExtraError: ``numba`` is asked for and not installed.
    """
    if name not in KERNELS:
        raise InputError("unknown kernel", expected=" | ".join(KERNELS), found=repr(name))
    there = find_spec("numba") is not None
    if name == "numba" and not there:
        raise MissingExtraError("numba", extra="fast", purpose="the numba kernel")
    if name == "numpy" or not there:
        from latentkt.corpus.kernel import plain

        return plain
    from latentkt.corpus.kernel import fast

    return fast
