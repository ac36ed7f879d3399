"""Text fields straight out of JSON lines; the first line that is not wholly understood is left to a parser.

A line is understood if it is one well-formed object, nested at most `_DEEPEST` deep, that has the wanted fields once
each, as strings, without escapes in its keys. That is checked to the end of the line, so that a damaged line is never
taken for a good one.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel.simd import load8, load64, store8
from latentkt.corpus.kernel.strings import read_number, read_string

__all__ = ["Extracted", "extract_lines"]

_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)
_inline: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True, inline="always")
_ZERO, _ONE, _TWO, _FOUR, _LOW32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(0xFFFFFFFF)
_TRUE, _NULL, _FALS = (np.uint64(int.from_bytes(word, "little")) for word in (b"true", b"null", b"fals"))
_FEED = 0x0A
_DEEPEST = 60
_KEY_OR_END, _KEY, _VALUE, _VALUE_OR_END, _AFTER = range(5)  # what may come next
OTHER, TEXT, CLUSTER = range(3)  # whose value comes next
AT, LINE, N, TEXT_END, CLUSTER_END = range(5)  # of `Extracted.at`


class Extracted(NamedTuple):
    """What has been extracted, and how far the reading is.

    Attributes:
        at: Byte of the block, lines before it, documents, bytes of text (NULs included), bytes of clusters.
        text: Texts, each with a NUL behind.
        starts: Byte at which each text starts.
        lines: Line of each, from 0.
        cluster: Cluster fields, one after the other.
        cluster_ends: Byte behind each.
    """

    at: NDArray[np.int64]
    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lines: NDArray[np.int64]
    cluster: NDArray[np.uint8]
    cluster_ends: NDArray[np.int64]


@_inline
def _skip_space(at):
    while load8(at) == 0x20 or load8(at) == 0x09 or load8(at) == 0x0D:
        at += _ONE
    return at


@_compile
def _equals(at, size, name, n):
    place = 0
    while size == n and place < n and load8(at + np.uint64(place)) == load8(name + np.uint64(place)):
        place += 1
    return size == n and place == n


@_compile
def _key(at, scratch, depth, wanted):
    """Read a key and its colon; returns the address behind, 0 if it is not understood, and whose value follows."""
    text_name, n_text, cluster_name, n_cluster = wanted
    behind, stop = read_string(at + _ONE, scratch)
    if load8(at) != ord('"') or behind - at - _TWO != stop - scratch:  # malformed, or with escapes
        return _ZERO, OTHER
    what = OTHER
    if depth == 1:
        size = np.int64(stop - scratch)
        if _equals(scratch, size, text_name, n_text):
            what = TEXT
        elif _equals(scratch, size, cluster_name, n_cluster):
            what = CLUSTER
    behind = _skip_space(behind)
    return (behind + _ONE if load8(behind) == ord(":") else _ZERO), what


@_compile
def _value(at, target, what):
    """Read a value that is not nested; returns the address behind, 0 if it is not understood, and the text's end."""
    char = load8(at)
    if char == ord('"'):
        return read_string(at + _ONE, target)
    if what != OTHER:
        return _ZERO, _ZERO
    four = load64(at) & _LOW32
    if four in (_TRUE, _NULL):
        return at + _FOUR, _ZERO
    if four == _FALS and load8(at + _FOUR) == ord("e"):
        return at + _FOUR + _ONE, _ZERO
    return read_number(at), _ZERO


@_inline
def _closes(char, state, in_object):
    """Whether a character ends the object or list that is open."""
    allowed = state == _AFTER or state == (_KEY_OR_END if in_object else _VALUE_OR_END)
    return allowed and char == (ord("}") if in_object else ord("]"))


@_compile
def _line(at, target, found, wanted):
    """Read one line; returns the address behind its object, 0 if it is not understood.

    Args:
        at: Address of its first character.
        target: Where strings are decoded to, by whose they are.
        found: Receives the address behind each field; 0 where there is none.
        wanted: Names of the fields.
    """
    found[:] = _ZERO
    if load8(at) != ord("{"):
        return _ZERO
    at += _ONE
    depth, objects, state, what = 1, _ONE, _KEY_OR_END, OTHER
    while depth:
        at = _skip_space(at)
        char, in_object = load8(at), objects & _ONE != 0
        if _closes(char, state, in_object):
            at, depth, objects, state = at + _ONE, depth - 1, objects >> _ONE, _AFTER
        elif state == _AFTER:
            at = at + _ONE if char == ord(",") else _ZERO
            state = _KEY if in_object else _VALUE
        elif state <= _KEY:
            at, what = _key(at, target[OTHER], depth, wanted)
            state = _VALUE
            if what != OTHER and found[what] != 0:
                return _ZERO
        elif char == ord("{") or char == ord("["):
            at = at + _ONE if what == OTHER and depth < _DEEPEST else _ZERO
            depth, objects = depth + 1, objects << _ONE | np.uint64(char == ord("{"))
            state = _KEY_OR_END if char == ord("{") else _VALUE_OR_END
        else:
            at, found[what] = _value(at, target[what], what)
            target[OTHER] = max(target[OTHER], found[TEXT])  # what follows must not run over the text
            state, what = _AFTER, OTHER
        if at == 0:
            return _ZERO
    return _skip_space(at)


@_compile
def extract_lines(data, size, text_name, cluster_name, out):
    """Extract lines from `out.at` on, until a line is not understood or the block ends.

    Args:
        data: A block of whole lines, each with its line feed, with 64 bytes to spare behind.
        size: Bytes in it.
        text_name: Name of the text field.
        cluster_name: Name of the cluster field; empty if none is wanted.
        out: Filled up; its arrays are large enough for the whole block, with 64 bytes to spare.
    """
    place, lines, starts, cluster_ends = out.at, out.lines, out.starts, out.cluster_ends
    source = np.uint64(data.ctypes.data)
    text, cluster = np.uint64(out.text.ctypes.data), np.uint64(out.cluster.ctypes.data)
    wanted = (
        np.uint64(text_name.ctypes.data), len(text_name), np.uint64(cluster_name.ctypes.data),
        len(cluster_name) if len(cluster_name) else -1,
    )  # fmt: skip
    target, found = np.zeros(3, np.uint64), np.zeros(3, np.uint64)
    at, line, n, text_end, cluster_end = place[AT], place[LINE], place[N], place[TEXT_END], place[CLUSTER_END]
    while at < size:
        first = _skip_space(source + np.uint64(at))
        if load8(first) != _FEED:
            target[OTHER] = target[TEXT] = text + np.uint64(text_end)
            target[CLUSTER] = cluster + np.uint64(cluster_end)
            first = _line(first, target, found, wanted)
            if first == 0 or load8(first) != _FEED or found[TEXT] == 0 or (wanted[3] >= 0 and found[CLUSTER] == 0):
                break
            starts[n], lines[n] = text_end, line
            store8(found[TEXT], 0)
            text_end = np.int64(found[TEXT] - text) + 1
            if wanted[3] >= 0:
                cluster_end = np.int64(found[CLUSTER] - cluster)
            cluster_ends[n] = cluster_end
            n += 1
        at = np.int64(first - source) + 1
        line += 1
    place[AT], place[LINE], place[N], place[TEXT_END], place[CLUSTER_END] = at, line, n, text_end, cluster_end
