"""The table of phrases: what the last word, the last two words and the whole phrase hash to.

Three filters stand before the table, each of one byte or bit a bucket: the set of lengths of the phrases that end with
this word, the set of lengths of those that end with these two words, and a Bloom filter of the keys. The table itself
is the sorted keys, a slot each, and a directory by their top bits: the fewer bytes, the fewer misses of the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.kernel.hashing import BASE, FOLD_BITS, MAX_WORDS, MIX, split
from latentkt.corpus.matching import CharacterTables, Matching, character_tables
from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.corpus.kernel import Kernel

__all__ = ["Events", "PhraseTable", "Words", "build_table", "finish", "phrase_keys"]


class Words(NamedTuple):
    """The words of a buffer.

    Attributes:
        start: First byte of each word.
        end: Byte behind it.
        hash: Hash of its folded bytes.
        gap: Hash of the gap before it (0 for white space alone).
        joined: Whether a phrase may run over the gap before it.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    hash: NDArray[np.uint64]
    gap: NDArray[np.uint64]
    joined: NDArray[np.bool_]


class Events(NamedTuple):
    """Matches in a buffer, ordered by last word, then by length.

    Attributes:
        slot: Slot of the phrase.
        document: Index of the document in the buffer.
        first: Index of its first word in the buffer.
        last: Index of its last word.
        start: First byte.
        end: Byte behind the last.
        word_starts: Index of the first word of each document, and the number of words at the end.
    """

    slot: NDArray[np.int32]
    document: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    word_starts: NDArray[np.int64]


class PhraseTable(NamedTuple):
    """The phrases as arrays (see the module).

    `slot_of` maps each phrase given to its slot; equal phrases share one, and -1 says that it cannot be hashed.
    `lengths` has bit L − 1 set where any phrase has L words. The keys with top bits b have the slots from ``homes[b]``
    to ``homes[b + 1]``; behind the keys lie `_SLACK` zeros, so that several can be read at once.
    """

    characters: CharacterTables
    fold_bits: int
    gaps: bool
    max_words: int
    lengths: int
    last: NDArray[np.uint8]
    last_shift: int
    pair: NDArray[np.uint8]
    pair_shift: int
    bloom: NDArray[np.uint64]
    bloom_shift: int
    keys: NDArray[np.uint64]
    homes: NDArray[np.uint32]
    home_shift: int
    n_slots: int
    slot_of: NDArray[np.int32]


def _bits(wanted: int, low: int, high: int) -> int:
    return min(max(int(wanted - 1).bit_length(), low), high)


def build_table(phrases: Sequence[str], matching: Matching, kernel: Kernel) -> PhraseTable:
    """Build the table of literal phrases, already prepared by `Matching.prepare`.

    Args:
        phrases: Those that begin or end with another character than a word character, or have no or more than
            `MAX_WORDS` words, get the slot -1: they cannot be hashed.
        matching: How text is compared.
        kernel: Whose tokeniser to use; both give the same table.

    Raises:
        InputError: Two different phrases share a key (never seen: 64 bits).
    """
    characters = character_tables(matching)
    fold_bits = FOLD_BITS if matching.folds else 0
    endings = _Endings(len(phrases))
    hashable, parts, gaps = [np.zeros(0, bool)], [np.zeros(0, np.uint64)], False
    for low in range(0, len(phrases), _PIECE):
        piece = _hash_phrases(phrases[low : low + _PIECE], characters, fold_bits, kernel)
        hashable.append(piece.good)
        parts.append(piece.keys)
        gaps |= piece.gaps
        endings.add(piece)
    slot_of = np.concatenate(hashable).astype(np.int32) - 1
    keys = np.concatenate(parts)
    parts.clear()
    ordered, new = _order(slot_of, keys)
    _check_collisions(phrases, matching, ordered, new)
    del ordered
    keys = keys[new]
    bloom_bits, home_bits = _bits(8 * len(keys), 12, 40), _bits(len(keys), 8, 30)
    return PhraseTable(
        characters,
        fold_bits,
        gaps,
        max(endings.lengths.bit_length(), 1),
        endings.lengths,
        endings.last,
        endings.last_shift,
        endings.pair,
        endings.pair_shift,
        _bloom(keys, bloom_bits),
        64 - bloom_bits,
        np.append(keys, np.zeros(_SLACK, np.uint64)),
        _homes(keys, home_bits),
        64 - home_bits,
        len(keys),
        slot_of,
    )


_SLACK = 4
_PIECE = 1 << 16  # phrases tokenised at a time: the lists of words are larger than all that is kept


class _Endings:
    """The two filters by ending, filled piece by piece, and the lengths met, as bits."""

    def __init__(self, n: int) -> None:
        last_bits, pair_bits = _bits(4 * n, 12, 19), _bits(16 * n, 12, 22)
        self.last, self.last_shift = np.zeros(1 << last_bits, np.uint8), 64 - last_bits
        self.pair, self.pair_shift = np.zeros(1 << pair_bits, np.uint8), 64 - pair_bits
        self.lengths = 0

    def add(self, piece: _Hashed) -> None:
        """Take in the endings of some phrases."""
        for length in np.unique(piece.lengths).tolist():
            rows = np.flatnonzero(piece.lengths == length)
            bit = 1 << (length - 1)
            self.lengths |= bit
            self.last[piece.last[rows] >> np.uint64(self.last_shift)] |= bit
            if length > 1:
                self.pair[piece.pairs[rows] >> np.uint64(self.pair_shift)] |= bit


class _Hashed(NamedTuple):
    """Which phrases can be hashed, and of those: words, key, key of the last two words, hash of the last; any gaps."""

    good: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    keys: NDArray[np.uint64]
    pairs: NDArray[np.uint64]
    last: NDArray[np.uint64]
    gaps: bool


def _hash_phrases(phrases: Sequence[str], characters: CharacterTables, fold_bits: int, kernel: Kernel) -> _Hashed:
    buffer = split("\0".join([*phrases, ""]).encode("utf-8"))
    words = kernel.tokenise(buffer, characters, fold_bits=fold_bits, gaps=True)
    bounds = np.searchsorted(words.start, buffer.starts)
    lengths, last = np.diff(bounds), bounds[1:] - 1
    hashable = _hashable(buffer.starts, words.start, words.end, bounds, lengths)
    good = np.flatnonzero(hashable)
    lengths, last = lengths[good], last[good]
    keys, pairs = np.zeros(len(good), np.uint64), np.zeros(len(good), np.uint64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        keys[rows] = phrase_keys(words, last[rows], length)
        if length > 1:
            pairs[rows] = phrase_keys(words, last[rows], 2)
    return _Hashed(hashable, lengths, keys, pairs, words.hash[last], _has_gaps(words, bounds[:-1], good))


def phrase_keys(words: Words, last: NDArray[np.int64], length: int) -> NDArray[np.uint64]:
    """Keys of the phrases of `length` words that end with the words `last`."""
    value = words.hash[last - length + 1]
    for back in range(length - 2, -1, -1):
        value = value * np.uint64(BASE) + words.hash[last - back] + words.gap[last - back]
    return finish(value)


def finish(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys from the values of the polynomial; 0 stands for a free place in the table."""
    keys = (value ^ (value >> np.uint64(32))) * np.uint64(MIX)
    return np.maximum(keys, np.uint64(1), out=keys)


def _hashable(
    starts: NDArray[np.int64],
    word_start: NDArray[np.int64],
    word_end: NDArray[np.int64],
    bounds: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> NDArray[np.bool_]:
    good = (lengths >= 1) & (lengths <= MAX_WORDS)
    rows = np.flatnonzero(good)
    good[rows] = (word_start[bounds[rows]] == starts[rows]) & (word_end[bounds[rows + 1] - 1] == starts[rows + 1] - 1)
    return good


def _has_gaps(words: Words, firsts: NDArray[np.int64], good: NDArray[np.int64]) -> bool:
    """Whether any hashed phrase holds more than white space between two words."""
    odd = words.gap != 0
    odd[firsts[firsts < len(odd)]] = False
    phrase = np.searchsorted(firsts, np.flatnonzero(odd), side="right") - 1
    return bool(np.isin(phrase, good).any())


def _bloom(unique: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    flags = np.zeros(1 << bits, np.uint8)
    flags[unique >> np.uint64(64 - bits)] = 1
    return np.packbits(flags, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def _homes(unique: NDArray[np.uint64], bits: int) -> NDArray[np.uint32]:
    """The first slot of each value of the top bits, and the number of slots at the end."""
    many = np.bincount((unique >> np.uint64(64 - bits)).view(np.int64), minlength=1 << bits)
    homes = np.zeros((1 << bits) + 1, np.uint32)
    np.cumsum(many, out=homes[1:])
    return homes


def _order(slot_of: NDArray[np.int32], keys: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Sort the keys, and number the hashed phrases (those with slot 0) in their order, equal ones alike.

    Returns:
        The phrases in the order of their keys, and which of these differ from the one before.
    """
    order = np.argsort(keys)
    keys[:] = keys[order]
    ordered = np.flatnonzero(slot_of == 0).astype(np.int32)[order]
    new = np.ones(len(keys), bool)
    new[1:] = keys[1:] != keys[:-1]
    slot_of[ordered] = np.cumsum(new, dtype=np.int32) - 1
    return ordered, new


def _check_collisions(
    phrases: Sequence[str], matching: Matching, ordered: NDArray[np.int32], new: NDArray[np.bool_]
) -> None:
    """Refuse two phrases with one key; `ordered` lists them by key, `new` says which keys differ from the last."""
    for row in np.flatnonzero(~new).tolist():
        one, other = phrases[ordered[row]], phrases[ordered[row - 1]]
        if one != other and matching.fold(" ".join(one.split())) != matching.fold(" ".join(other.split())):
            raise InputError("two phrases share a hash", expected="different hashes", found=(one, other))
