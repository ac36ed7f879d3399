"""JSON strings and numbers, strictly: what these functions accept, every parser accepts, and reads the same.

NUL, lone surrogates, long numbers and exponents are left to a parser.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from latentkt.corpus.kernel.simd import copy_block, load8, lowest_bit, store8

__all__ = ["read_number", "read_string"]

_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)
_inline: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True, inline="always")
_FAIL = (np.uint64(0), np.uint64(0))
_ONE, _TWO, _SIX, _BLOCK = np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(64)
_LONGEST = 15  # digits and more: longer numbers are left to the parser


@_compile
def _width(at):
    """Bytes of the well-formed UTF-8 sequence at an address; 0 if there is none (Table 3-7 of the Unicode standard)."""
    lead, second = load8(at), load8(at + _ONE)
    if 0xC2 <= lead <= 0xDF:
        return 2 if 0x80 <= second <= 0xBF else 0
    low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
    if lead < 0xE0 or lead > 0xF4 or second < low or second > high or load8(at + _TWO) & 0xC0 != 0x80:
        return 0
    if lead < 0xF0:
        return 3
    return 4 if load8(at + np.uint64(3)) & 0xC0 == 0x80 else 0


@_compile
def _hex4(at):
    """The value of four hexadecimal digits, negative if they are none."""
    value = 0
    for place in range(4):
        char = load8(at + np.uint64(place))
        if 0x30 <= char <= 0x39:
            digit = char - 0x30
        elif 0x61 <= char | 0x20 <= 0x66:
            digit = (char | 0x20) - 0x57
        else:
            return -1
        value = value << 4 | digit
    return value


@_compile
def _store_code(target, code):
    if code < 0x80:
        store8(target, code)
        return _ONE
    width = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    store8(target, (0xF00 >> width) & 0xFF | code >> 6 * (width - 1))
    for place in range(1, width):
        store8(target + np.uint64(place), 0x80 | code >> 6 * (width - 1 - place) & 0x3F)
    return np.uint64(width)


@_compile
def _escape(at, target):
    """Decode what follows a backslash; returns the bytes read and written, 0 and 0 if it is no escape."""
    char = load8(at)
    if char == ord("n"):
        store8(target, 10)
    elif char == ord('"') or char == ord("\\") or char == ord("/"):
        store8(target, char)
    elif char == ord("t"):
        store8(target, 9)
    elif char == ord("r"):
        store8(target, 13)
    elif char == ord("b"):
        store8(target, 8)
    elif char == ord("f"):
        store8(target, 12)
    elif char == ord("u"):
        return _unicode_escape(at, target)
    else:
        return _FAIL
    return _ONE, _ONE


@_compile
def _unicode_escape(at, target):
    code = _hex4(at + _ONE)
    size = np.uint64(5)
    if 0xD800 <= code < 0xDC00 and load8(at + size) == ord("\\") and load8(at + _SIX) == ord("u"):
        low = _hex4(at + np.uint64(7))
        if low < 0xDC00 or low > 0xDFFF:
            return _FAIL
        code = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
        size = np.uint64(11)
    if code <= 0 or 0xD800 <= code < 0xE000:
        return _FAIL
    return size, _store_code(target, code)


@_compile
def read_string(at, target):
    """Decode the string whose opening quote lies before `at`.

    Returns the address behind its closing quote and that behind the decoded text; 0 and 0 if it is malformed. Up to 64
    bytes more than the text may be written.
    """
    while True:
        special = copy_block(at, target)
        if special == 0:
            at, target = at + _BLOCK, target + _BLOCK
            continue
        place = np.uint64(lowest_bit(special))
        at, target = at + place, target + place
        char = load8(at)
        if char == ord('"'):
            return at + _ONE, target
        if char == ord("\\"):
            read, written = _escape(at + _ONE, target)
            if read == 0:
                return _FAIL
            at, target = at + read + _ONE, target + written
        elif char >= 0x80:
            width = _width(at)
            if width == 0:
                return _FAIL
            for step in range(width):
                store8(target + np.uint64(step), load8(at + np.uint64(step)))
            at, target = at + np.uint64(width), target + np.uint64(width)
        elif char == 0x7F:
            at, target = at + _ONE, target + _ONE
        else:
            return _FAIL


@_inline
def _is_digit(at):
    return 0x30 <= load8(at) <= 0x39


@_compile
def read_number(at):
    """The address behind the short plain number at `at`; 0 if it is malformed, long, or has an exponent."""
    first = at
    if load8(at) == ord("-"):
        at += _ONE
    if not _is_digit(at) or (load8(at) == ord("0") and _is_digit(at + _ONE)):
        return np.uint64(0)
    while _is_digit(at):
        at += _ONE
    if load8(at) == ord("."):
        at += _ONE
        if not _is_digit(at):
            return np.uint64(0)
        while _is_digit(at):
            at += _ONE
    return at if at - first <= np.uint64(_LONGEST) else np.uint64(0)
