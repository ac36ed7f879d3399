"""The compiled kernel's shortcuts at their edges: lists written by bits, groups of words, history, parts, directory."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from latentkt.corpus import count_phrases
from latentkt.corpus.documents import make_buffer
from latentkt.corpus.kernel import open_kernel
from latentkt.corpus.kernel.table import build_table
from latentkt.corpus.matching import Matching, character_tables

numba = pytest.importorskip("numba")

KERNELS = ["numpy", "numba"]


def _compiled(name):
    from latentkt.corpus.kernel import bits

    function = getattr(bits, name)
    return numba.njit(function) if name.endswith("slowly") else function


@pytest.mark.parametrize("name", ["list_bits", "list_bits_slowly"])
def test_bits_become_places(name):
    function = _compiled(name)

    @numba.njit
    def run(bits, base, out):
        function(bits, base, np.uint64(out.ctypes.data))

    for mask in _masks():
        out = np.zeros(70, np.uint32)
        run(np.uint64(mask), 1000, out)
        expected = [1000 + place for place in range(64) if mask >> place & 1]
        assert out[: len(expected)].tolist() == expected and not out[64:].any()


@pytest.mark.parametrize("name", ["list_flags", "list_flags_slowly"])
def test_bits_choose_flags(name):
    function = _compiled(name)

    @numba.njit
    def run(flags, bits, out):
        function(flags, bits, np.uint64(out.ctypes.data))

    for mask, flags in zip(_masks(), _masks()[::-1], strict=True):
        out = np.zeros(70, np.uint8)
        run(np.uint64(flags), np.uint64(mask), out)
        expected = [flags >> place & 1 for place in range(64) if mask >> place & 1]
        assert out[: len(expected)].tolist() == expected and not out[64:].any()


def _masks():
    rng = random.Random(5)
    every = (1 << 64) - 1
    return [0, every, 1, 1 << 63, every >> 1] + [
        rng.getrandbits(64) & (rng.getrandbits(64) if n % 2 else every) for n in range(200)
    ]


def test_which_processors_compress():
    from latentkt.corpus.kernel.bits import compresses

    assert compresses("+avx2,+avx512bw,+avx512vbmi2") and not compresses("+avx512bw,-avx512vbmi2")
    assert not compresses("") and not compresses("+avx512bw,+avx512vbmi")


@pytest.mark.parametrize("odd", ["caf\u00e9", "a" * 17, "\u65e5" * 9, "b" * 16])
def test_an_odd_word_anywhere_in_a_group(odd):
    """Words are hashed 32 at a time; one that is long or not ASCII changes the hash of no other."""
    tables = character_tables(Matching())
    for many in [*range(6), 31, 32, 33, 64, 65]:
        for at in {0, 1, many // 2, many - 1, 31, 32} & set(range(many)):
            words = [f"w{index}" for index in range(many)]
            words[at] = odd
            hashes = []
            for kernel in map(open_kernel, KERNELS):
                buffer = make_buffer([" ".join(words)], Matching(), kernel)
                hashes.append(kernel.tokenise(buffer, tables, fold_bits=0x20 * 0x0101010101010101, gaps=False).hash)
            assert hashes[0].tolist() == hashes[1].tolist() and len(hashes[0]) == many


@pytest.mark.parametrize("gap", [" ", ", "])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_phrases_run_over_the_edges_of_chunks(size, gap):
    """A cycle of eleven words, so that phrases lie across edges; a document's end or another gap joins nothing."""
    words = [f"{chr(97 + index) * (1 + index % 4)}{index}" for index in range(11)]
    phrase = gap.join((words + words)[5 : 5 + size])
    text = gap.join(words * 9000)  # 13 chunks
    broken = "\0".join(gap.join(words[:6]) + end + gap.join(words[6:]) for end in ("", ".", " - ", "\0"))
    texts = [text, *broken.split("\0"), text]
    cycles = 9000 if size < 7 else 8999
    alone = 3 if size == 1 else 0  # in the first of the broken ones the two words are one
    for kernel in map(open_kernel, KERNELS):
        table = build_table([phrase], Matching(), kernel)
        buffer = make_buffer(texts, Matching(), kernel)
        counter = kernel.PhraseCounter(table)
        for _ in range(2):  # nothing is left over from the buffer before
            counter.add(buffer)
        assert len(kernel.find(buffer, table).slot) == 2 * cycles + alone
        assert counter.occurrences.tolist() == [4 * cycles + 2 * alone]
        assert counter.documents.tolist() == [4 + 2 * alone]


@pytest.mark.parametrize("room", [1, 1000])
def test_parts_overflow_and_are_emptied(room, monkeypatch):
    """All parts are filled many times in one buffer, the part of a very common phrase more often."""
    from latentkt.corpus.kernel import tallying

    monkeypatch.setattr(tallying, "_DIRECT", 0)
    monkeypatch.setattr(tallying, "_PART_ROOM", room)
    phrases = [f"n{index} m{index % 7}" for index in range(2000)]
    many = 100_000
    texts = [" ".join(phrases * 100), "new york " * many, "york " * 10, "new york"]
    counts = count_phrases([*phrases, "new york", "york new", "york", "york york"], texts=texts, kernel="numba")
    assert counts.occurrences.tolist() == [100] * 2000 + [many + 1, many - 1, many + 11, 9]
    assert counts.documents.tolist() == [1] * 2000 + [2, 1, 3, 1]


@pytest.mark.parametrize("direct", [True, False])
def test_every_phrase_of_a_long_list_is_found(direct, monkeypatch):
    """Also those whose keys share their top bits with more others than are compared at once."""
    from latentkt.corpus.kernel import tallying

    monkeypatch.setattr(tallying, "_DIRECT", 1 << 30 if direct else 0)
    phrases = [f"n{index} m{index % 7}" for index in range(20_000)]
    for kernel in map(open_kernel, KERNELS):
        table = build_table(phrases, Matching(), kernel)
        assert np.diff(table.homes.astype(np.int64)).max() > 4
        buffer = make_buffer([". ".join(phrases), "n0 m1"], Matching(), kernel)
        counter = kernel.PhraseCounter(table)
        slots, ends = counter.add(buffer)
        assert (counter.occurrences == 1).all() and (counter.documents == 1).all()
        assert sorted(slots.tolist()) == list(range(20_000))
        slot_of = {int(slot): phrase for slot, phrase in zip(table.slot_of, phrases, strict=True)}
        for slot, end in list(zip(slots.tolist(), ends.tolist(), strict=True))[::37]:
            assert buffer.data[:end].tobytes().endswith(slot_of[slot].encode())
        assert sorted(kernel.find(buffer, table).slot.tolist()) == list(range(20_000))
        assert not len(counter.add(buffer)[0])  # met before


def test_counters_do_not_share_what_they_keep():
    """Two counters, fed in turn with long and short buffers, count as two that are fed alone."""
    kernel = open_kernel("numba")
    table = build_table(["new york", "york"], Matching(), kernel)
    long, short = (make_buffer([text], Matching(), kernel) for text in ("new york " * 30_000, "york new"))
    one, other = kernel.PhraseCounter(table), kernel.PhraseCounter(table)
    for buffer in (long, short, short):
        one.add(buffer)
        other.add(short)
    new_york, york = table.slot_of.tolist()
    assert (one.occurrences[new_york], one.occurrences[york]) == (30_000, 30_002)
    assert (other.occurrences[new_york], other.occurrences[york]) == (0, 3)


def test_find_keeps_nothing_of_earlier_buffers():
    """Its scratch memory outlives a call: another matching, table or text in between changes nothing."""
    kernel, text = open_kernel("numba"), "\u00c9t\u00e9 \u00c9t\u00e9 \u00e9t\u00e9 caf\u00e9, " * 9000
    matchings = [Matching(), Matching(case="sensitive"), Matching(case="full", punctuation="plain")]
    tables = [build_table(["\u00e9t\u00e9", "caf\u00e9"], matching, kernel) for matching in matchings]
    buffers = [make_buffer([text, "caf\u00e9"], matchings[0], kernel), make_buffer(["", "x"], matchings[0], kernel)]
    for _ in range(2):
        for table, many in zip(tables, (36_001, 18_001, 36_001), strict=True):
            events = [kernel.find(buffer, table) for buffer in buffers]
            assert [len(found.slot) for found in events] == [many, 0]
            assert np.bincount(events[0].document).tolist() == [many - 1, 1]
            assert events[1].word_starts.tolist() == [0, 0, 1]


def test_find_in_threads_and_with_more_events_than_foreseen():
    kernel = open_kernel("numba")
    table = build_table(["a", "b", "a b"], Matching(), kernel)
    buffers = [make_buffer([word * 200_000], Matching(), kernel) for word in ("a ", "b ", "a b ", "c ")]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            found = [events.slot for events in threads.map(lambda buffer: kernel.find(buffer, table), buffers)]
            assert [np.bincount(slots, minlength=3)[table.slot_of].tolist() for slots in found] == [
                [200_000, 0, 0], [0, 200_000, 0], [200_000, 200_000, 200_000], [0, 0, 0],
            ]  # fmt: skip


CODE = """
import json, sys
from latentkt.corpus import count_phrases

phrases, texts = json.loads(sys.stdin.read())
counts = count_phrases(phrases, texts=texts, kernel="numba")
print(json.dumps([counts.occurrences.tolist(), counts.documents.tolist()]))
"""


@pytest.mark.slow
def test_a_processor_without_wide_instructions_counts_the_same(tmp_path):
    rng = random.Random(2)
    words = ["Ab", "cd", "\u00e9f", "ghijklmnopqrstuvwxyz", "x1", "_y", "\u212aelvin", "z"]
    texts = ["".join(rng.choice(words) + rng.choice("  .-") for _ in range(20_000)) for _ in range(3)]
    phrases = [*{" ".join(rng.choice(words[:5]) for _ in range(rng.randrange(1, 5))).lower() for _ in range(200)}]
    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", CODE],
        input=json.dumps([phrases, texts]), capture_output=True, check=True, text=True, env={**os.environ, **settings},
    )  # fmt: skip
    counts = count_phrases(phrases, texts=texts, kernel="numpy")
    assert json.loads(found.stdout) == [counts.occurrences.tolist(), counts.documents.tolist()]
    assert counts.occurrences.sum() > 10_000
