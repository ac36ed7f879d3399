r"""How words, gaps and phrases are hashed: the constants and the slow definition that both kernels agree on.

A word is a maximal run of `\w`; its folded UTF-8 bytes are read in pieces of eight, little-endian, zero-padded. ASCII
bytes are folded by setting bit 5, which no two word characters of ASCII but the cases of a letter share. A phrase of
words w1 … wk is a polynomial in their hashes; a gap between words adds its own hash, which is 0 for white space alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.matching import CharacterTables

__all__ = ["FOLD_BITS", "MAX_WORDS", "Buffer", "gap_hash", "piece_masks", "split", "word_hash"]

FIRST = 0x9E3779B97F4A7C15  # multiplies bytes 0 … 7 of a word
SECOND = 0xC2B2AE3D27D4EB4F  # multiplies bytes 8 … 15
LATER = 0xD6E8FEB86659FD93  # mixes in every later piece
BASE = 0xA0761D6478BD642F  # the polynomial's base
MIX = 0xE7037ED1A0B428DB  # the last multiplication of a phrase key
GAP_BASIS = 0xCBF29CE484222325
GAP_PRIME = 0x100000001B3
FOLD_BITS = 0x2020202020202020
MAX_WORDS = 8  # longer phrases are matched as text
PAD = 192  # zero bytes behind a buffer: loads of a word and of a block may run over its end
_U64 = 0xFFFFFFFFFFFFFFFF


class Buffer(NamedTuple):
    """Documents one after the other, each followed by a NUL, and `PAD` zero bytes behind.

    Attributes:
        data: UTF-8 bytes, at least `size + PAD` long.
        size: Bytes in use, the last NUL included.
        starts: Byte at which each document starts, and `size` at the end.
    """

    data: NDArray[np.uint8]
    size: int
    starts: NDArray[np.int64]

    def document(self, index: int) -> bytes:
        """The bytes of one document."""
        return self.data[self.starts[index] : self.starts[index + 1] - 1].tobytes()


def split(joined: bytes) -> Buffer:
    r"""Put documents into one buffer; each ends with a NUL and holds no other.

    Example:
        >>> split(b"one\0\0two\0").starts
        array([0, 4, 5, 9])
    """
    data = np.frombuffer(joined + bytes(PAD), np.uint8)
    starts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(data[: len(joined)] == 0) + 1])
    return Buffer(data, len(joined), starts)


def piece_masks() -> NDArray[np.uint64]:
    """Row L: the masks of the first and second piece of a word of L bytes, 0 to 16."""
    masks = [[(1 << 8 * min(length, 8)) - 1, (1 << 8 * max(length - 8, 0)) - 1] for length in range(17)]
    return np.array(masks, dtype=np.uint64)


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _U64


def word_hash(raw: bytes, tables: CharacterTables, fold_bits: int) -> int:
    """Hash of one word from its bytes: the definition; the kernels take shortcuts for short ASCII words."""
    bit = fold_bits & 0x20
    if raw.isascii():
        return _pieces_hash(bytes(byte | bit for byte in raw))
    folded = bytearray()
    for char in raw.decode("utf-8"):
        code = int(tables.folds[ord(char)])
        codes = [code] if code < 0x110000 else [int(part) for part in tables.expansions[code - 0x110000] if part]
        for part in codes:
            folded += bytes([part | bit]) if part < 128 else chr(part).encode("utf-8")
    return _pieces_hash(folded)


def _pieces_hash(folded: bytes | bytearray) -> int:
    pieces = [int.from_bytes(folded[at : at + 8], "little") for at in range(0, len(folded), 8)]
    pieces += [0] * (2 - len(pieces))
    value = (pieces[0] * FIRST + pieces[1] * SECOND) & _U64
    for piece in pieces[2:]:
        value = ((_rotate(value, 23) ^ piece) * LATER) & _U64
    return value


def gap_hash(raw: bytes, tables: CharacterTables) -> int:
    """Hash of the text between two words, white-space runs read as one space; 0 for white space alone."""
    value, in_space, count = GAP_BASIS, False, 0
    for char in raw.decode("utf-8"):
        space = bool(tables.classes[ord(char)] & 2)
        if not (space and in_space):
            for byte in b" " if space else char.encode("utf-8"):
                value = ((value ^ byte) * GAP_PRIME) & _U64
            count += 1
        in_space = space
    return 0 if in_space and count == 1 else value
