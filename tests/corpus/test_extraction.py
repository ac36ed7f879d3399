"""The extractor of JSON fields against orjson: the same documents, clusters and refusals for any bytes."""

from __future__ import annotations

import io
import json

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from latentkt.corpus.documents import Skipped
from latentkt.corpus.fields import Fields
from latentkt.corpus.jsonl import iterate_blocks, iterate_lines
from latentkt.corpus.kernel import open_kernel
from latentkt.corpus.matching import Matching
from latentkt.corpus.readers import read_shard
from latentkt.corpus.shards import Shard
from tests.corpus import trouble

PLAIN = Matching(normalize="none", case="sensitive")


def _read(path, kernel, fields=None, matching=PLAIN, batch_bytes=1 << 16):
    """Documents, clusters, and what was skipped."""
    skipped = Skipped()
    shard = Shard(str(path), "x.jsonl", "jsonl", None, path.stat().st_size)
    documents, clusters = [], []
    module = open_kernel(kernel)
    for batch in read_shard(
        shard, fields or Fields("text", "source"), matching, module, skipped, batch_bytes=batch_bytes
    ):
        documents += [batch.buffer.document(index) for index in range(len(batch.buffer.starts) - 1)]
        clusters += batch.clusters.tolist()
    return documents, clusters, skipped.listed, skipped.missing_clusters


def _understood(line):
    """Whether the extractor takes a line without the parser."""
    from latentkt.corpus.kernel import extract

    data = np.frombuffer(line + b"\n" + bytes(200), np.uint8)
    size = len(line) + 1
    out = extract.Extracted(
        np.zeros(5, np.int64), np.zeros(size + 200, np.uint8), np.zeros(4, np.int64), np.zeros(4, np.int64),
        np.zeros(size + 200, np.uint8), np.zeros(4, np.int64),
    )  # fmt: skip
    extract.extract_lines(data, size, np.frombuffer(b"text", np.uint8), np.frombuffer(b"source", np.uint8), out)
    return out.at[extract.AT] == size and out.at[extract.N] == 1


text = st.one_of(trouble.documents(max_words=12), st.text(max_size=80))
key = st.one_of(st.sampled_from(["text", "source", "Text", "tex", "sourc\u00e9", ""]), st.text(max_size=3))
scalar = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), text)
value = st.recursive(
    scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(key, inner, max_size=3), max_leaves=6
)


separators = st.sampled_from([(",", ":"), None])
DAMAGE = [
    b"", b'"', b"\\", b"{", b"}", b",", b":", b"\xff", b"\xed\xa0", b"\x00", b"\x1f", b"0", b"-", b"e1",
    b"\\u12", b"\\ud83d\\ude00", b"\\udc00",
]  # fmt: skip


@st.composite
def lines(draw):
    """A JSON line in any of many spellings, perhaps with one byte changed, dropped or doubled."""
    record = draw(st.dictionaries(key, value, max_size=4)) | {"text": draw(text), "source": draw(text)}
    if draw(st.integers(0, 5)) == 0:
        record[draw(st.sampled_from(["text", "source"]))] = draw(value)
    names = draw(st.permutations(list(record)))
    pieces = [
        json.dumps(name, ensure_ascii=draw(st.booleans()))
        + draw(st.sampled_from([":", ": ", " :\t"]))
        + json.dumps(record[name], ensure_ascii=draw(st.booleans()), separators=draw(separators))
        for name in names
    ]
    if draw(st.integers(0, 9)) == 0:
        pieces.append(draw(st.sampled_from(pieces)))  # a key twice
    line = (
        draw(st.sampled_from(["", " ", "\t"])) + "{" + ",".join(pieces) + "}" + draw(st.sampled_from(["", "\r", " "]))
    )
    raw = line.encode("utf-8", "surrogatepass").replace(b"\n", b" ")
    if draw(st.integers(0, 2)) == 0:
        at = draw(st.integers(0, len(raw) - 1))
        new = draw(st.sampled_from([raw[at : at + 1] * 2, *DAMAGE]))
        raw = raw[:at] + new + raw[at + 1 :]
    return raw


@settings(max_examples=400, deadline=None)
@given(raw=lines())
@example(raw=b'{"text": "a", "source": "b", "x": 1' + b"0" * 400 + b"}")
@example(raw=b'{"text": "a", "source": "b", "x": ' + b"[" * 70 + b"]" * 70 + b"}")
@example(raw=b'{"text": "a", "source": "b", "x": falsy}')
@example(raw=b'{"text": "a", "source": "\\u0000"}')
def test_what_is_understood_is_what_orjson_reads(raw):
    if not _understood(raw):
        return
    record = orjson.loads(raw)
    assert isinstance(record["text"], str) and isinstance(record["source"], str)


@settings(max_examples=60, deadline=None)
@given(
    raw=st.lists(st.one_of(lines(), st.sampled_from([b"", b" ", b"\x0b", b"[1]", b"null"])), max_size=12),
    data=st.data(),
)
def test_a_file_gives_the_same_either_way(raw, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("x") / "x.jsonl"
    path.write_bytes(b"\n".join(raw) + data.draw(st.sampled_from([b"", b"\n"])))
    fields = data.draw(
        st.sampled_from([Fields("text", rule) for rule in ("source", "host:source", "document", "none")])
    )
    matching = data.draw(st.sampled_from([PLAIN, Matching()]))
    size = data.draw(st.sampled_from([16, 300, 1 << 16]))
    assert _read(path, "numba", fields, matching, size) == _read(path, "numpy", fields, matching)


@pytest.mark.parametrize(
    "line",
    [
        b'{"text": "plain", "source": "s"}',
        b' {"source":"s","id":-12.5,"ok":[true,false,null,{"a":[]},{}],"text":"a\\n\\"b\\"\\\\ \\u00e9"}\r',
        b'{"text":"\\ud83d\\ude00 \xc3\xa9 \xf0\x9f\x98\x80","source":"\\t"}',
        b'{"text": "", "source": "", "n": 0}',
    ],
)
def test_ordinary_lines_are_understood(line):
    assert _understood(line)


@pytest.mark.parametrize("space", [b" ", b"\t", b"\r", b" \t\r "])
def test_by_hand_white_space_anywhere(space):
    pieces = [b"{", b'"text"', b":", b'"a"', b",", b'"x"', b":", b"[", b"1", b",", b"{", b"}", b"]", b",", b'"source"',
              b":", b'"b"', b"}"]  # fmt: skip
    assert _understood(space + space.join(pieces) + space)


@pytest.mark.parametrize(
    "line",
    [
        b'{"te\\u0078t": "a", "source": "b"}', b'{"text": "a", "so\\u0075rce": "b", "source": "c"}',
        b'{"text": "a", "source": "b",}', b'{,"text": "a", "source": "b"}', b'{"x": [1,], "text": "a", "source": "b"}',
        b'{"x": [,1], "text": "a", "source": "b"}', b'{"x": [1 2], "text": "a", "source": "b"}',
        b'{"text" "a", "source": "b"}', b'{"text"; "a", "source": "b"}', b'{"text": "a" "source": "b"}',
        b'{"text": "a"; "source": "b"}', b"{'text': \"a\", \"source\": \"b\"}", b'{text": "a", "source": "b"}',
        b'{"text": "a", "text": "c", "source": "b"}', b'{"text": "a", "source": "b", "source": "c"}',
        b'{"text": 1, "source": "b"}', b'{"text": ["a"], "source": "b"}', b'{"text": {}, "source": "b"}',
        b'{"text": null, "source": "b"}', b'{"text": "a", "source": 5}', b'{"text": "a", "source": ["b"]}',
        b'{"text": "a"}', b'{"source": "b"}', b'{"tex": "a", "source": "b"}', b'{"texts": "a", "source": "b"}',
        b'{"text": "a", "sourcf": "b"}', b'{"x": {"text": "a"}, "source": "b"}', b'[{"text": "a", "source": "b"}]',
        b'{"text": "a", "source": "b"} x', b'{"text": "a", "source": "b"}}', b'{"text": "a", "source": "b"',
        b'{"text": "a", "source": "b"]', b'{"x": [1}, "text": "a", "source": "b"}',
        b'{"x": {"y": 1], "text": "a", "source": "b"}', b'{"x": falsy, "text": "a", "source": "b"}',
        b'{"x": , "text": "a", "source": "b"}', b'{"x": truely, "text": "a", "source": "b"}',
        b'{"text": "a", "source": "b", "x"}', b'{"text": "a", "source": "b", "x":}',
        b'{"x": ' + 60 * b"[" + 60 * b"]" + b', "text": "a", "source": "b"}',
    ],
)  # fmt: skip
def test_by_hand_these_lines_go_to_the_parser(line):
    assert not _understood(line)


@pytest.mark.parametrize("rule", ["source", "text", "meta.source", "document", "none"])
@pytest.mark.parametrize("text_field", ["text", "meta.text"])
@pytest.mark.parametrize("size", [16, 1 << 16])
def test_by_hand_a_file_of_everything(rule, text_field, size, tmp_path):
    long = "a text of more than one block of sixty-four bytes, so that what stands behind it may run over it " * 2
    rows = [
        {"source": "first", "text": long, "behind": "z" * 150, "n": {"text": "inner", "source": "inner"}},
        {"text": "second", "source": "a longer cluster than the first", "meta": {"text": "deep", "source": "d"}},
        {"text": 5, "source": "no text"},
        {"text": "no source"},
        {"text": "after one without a source", "source": "first", "meta": {"text": long}},
    ]
    lines = [json.dumps(row).encode() for row in rows]
    lines[2:2] = [b"", b"  ", b"{damaged", b'{"text": "of the parser \\u0000.", "so\\u0075rce": "escaped"}', b"\t"]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines * 3))
    fields = Fields(text_field, rule)
    found = _read(tmp_path / "x.jsonl", "numba", fields, batch_bytes=size)
    assert found == _read(tmp_path / "x.jsonl", "numpy", fields)
    assert len(found[0]) == (15 if text_field == "text" else 6)
    assert [row[1] for row in found[2]][:3] == ([5, 8, 15] if text_field == "text" else [1, 5, 6])


@settings(max_examples=40, deadline=None)
@given(raw=st.binary(max_size=200), size=st.integers(1, 40))
def test_blocks_hold_whole_lines(raw, size):
    raw = raw.replace(b"\x07", b"\n")
    blocks = [bytes(block[:used]) for block, used in iterate_blocks(io.BytesIO(raw), size)]
    assert b"".join(blocks) == raw + (b"\n" if raw and not raw.endswith(b"\n") else b"")
    assert all(block.endswith(b"\n") for block in blocks)
    rows = raw.split(b"\n")
    lines = [(number, bytes(line)) for number, line in iterate_lines(io.BytesIO(raw))]
    assert lines == list(enumerate(rows if rows[-1] else rows[:-1], start=1))
