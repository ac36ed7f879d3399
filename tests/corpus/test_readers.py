"""Every kind of shard gives the same counts; what cannot be read is counted, listed, or refused."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.corpus import Patterns
from latentkt.corpus.documents import make_buffer
from latentkt.corpus.fields import Fields, choose_fields
from latentkt.corpus.jsonl import parse_line
from latentkt.corpus.kernel import open_kernel
from latentkt.corpus.local import count_corpus
from latentkt.corpus.matching import Matching
from latentkt.corpus.shards import find_shards
from latentkt.errors import DataError, InputError
from tests.corpus import trouble

TEXTS = [
    "Darwin on evolution",
    "the café of Darwin",
    "",
    "Euclid",
    "Darwin \U0001d49c evolution" * 50,
]  # "evolutionDarwin" has no boundary inside
PATTERNS = Patterns.from_dict({"keys": {"d": ["Darwin"], "e": ["Euclid"]}, "tasks": {"ev": ["evolution"]}})


def _records():
    return [{"text": text, "source": f"book {i % 2}", "url": f"https://h{i}.org/x"} for i, text in enumerate(TEXTS)]


def _jsonl():
    return "".join(json.dumps(record) + "\n" for record in _records()).encode()


def _write(folder, kind):
    path = folder / f"part.{kind}"
    data = _jsonl()
    if kind == "jsonl.gz":
        data = gzip.compress(data[:200]) + gzip.compress(data[200:])  # two members
    elif kind == "jsonl.zst":
        compressor = zstandard.ZstdCompressor()
        data = compressor.compress(data[:200]) + compressor.compress(data[200:])  # two frames
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(_records()), path, row_group_size=2)
    else:
        path.write_bytes(data)
    return path


def _counts(paths, out, **options):
    return count_corpus([str(path) for path in paths], PATTERNS, str(out), **options)


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
def test_every_format_counts_the_same(kind, tmp_path):
    counts = _counts([_write(tmp_path, kind)], tmp_path / "out")
    table = counts.to_dict()
    assert counts.manifest["documents"] == 5
    assert counts.manifest["fields"] == {"text": "text", "cluster": "host:url"}
    assert counts.tally.n_clusters == 5
    assert table["keys"] == {"d": 3, "e": 1} and table["tasks"] == {"ev": 2}


def test_folder_glob_and_text_files(tmp_path):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("Darwin")
    (folder / "deep" / "b.txt.gz").write_bytes(gzip.compress("\ufeffDarwin, Euclid".encode()))
    (folder / "notes.pdf").write_text("Darwin")
    counts = _counts([folder], tmp_path / "out")
    assert counts.to_dict()["keys"] == {"d": 2, "e": 1}
    assert counts.manifest["shards"] == ["a.txt", "deep/b.txt.gz"]
    assert [path.rsplit("/", 1)[-1] for path in counts.manifest["passed_over"]] == ["notes.pdf"]
    assert _counts([folder / "*.txt"], tmp_path / "two").to_dict()["keys"] == {"d": 1, "e": 0}
    assert [s.name for s in find_shards([f"file://{folder}/a.txt"])[0]] == ["a.txt"]


def test_a_streamed_data_set(tmp_path):
    pytest.importorskip("datasets")
    folder = tmp_path / "set"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(_records()), folder / "train.parquet")
    counts = count_corpus([f"hub:{folder}#train"], PATTERNS, str(tmp_path / "out"), cluster="source")
    assert counts.to_dict()["keys"] == {"d": 3, "e": 1}
    assert counts.tally.n_clusters == 2


def test_damaged_lines_are_listed(tmp_path):
    good = json.dumps({"text": "Darwin", "source": "s"}).encode()
    lines = [
        good,
        b"{broken",
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b"[1]",
        b'{"other": 1}',
        b"",
        b'{"text": 5}',
        good,
    ]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    counts = _counts([tmp_path / "x.jsonl"], tmp_path / "out")
    assert counts.occurrences("d") == 2
    assert [row[1] for row in counts.manifest["listed"]] == [2, 3, 4, 5, 6, 8]
    assert sum(counts.manifest["skipped"].values()) == 6
    with pytest.raises(DataError, match=r"x\.jsonl:2: damaged line"):
        _counts([tmp_path / "x.jsonl"], tmp_path / "strict", strict=True)


@pytest.mark.parametrize("line", [b'{"text": "\\ud800"}', b'{"a": NaN}', b"{'a': 1}", b"\xff{}", b'{"a": 1} x'])
def test_both_parsers_refuse_the_same_lines(line, monkeypatch):
    import latentkt.corpus.jsonl as jsonl
    from latentkt.corpus.documents import Skipped
    from latentkt.corpus.records import usable_text
    from latentkt.corpus.shards import Shard

    def usable():
        record = parse_line(line)
        shard = Shard("x", "x", "jsonl", None, 0)
        return isinstance(record, dict) and usable_text(shard, 1, Fields(), record, Skipped()) is not None

    assert not usable()
    monkeypatch.setattr(jsonl, "_ORJSON", False)
    assert not usable()


def test_undecodable_bytes_are_listed(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"Darwin\n\xff Darwin\nEuclid\xe9")
    counts = _counts([tmp_path / "x.txt"], tmp_path / "out")
    assert counts.to_dict()["keys"] == {"d": 2, "e": 1}
    assert [row[1] for row in counts.manifest["listed"]] == [2, 3]


def test_fields_are_found_and_checked():
    assert choose_fields({"content": "x", "source": "s"}, text=None, cluster=None) == Fields("content", "source")
    assert choose_fields({"text": "x"}, text=None, cluster=None) == Fields("text", "document")
    nested = choose_fields({"text": "x", "meta": {"url": "http://a.b/c"}}, text=None, cluster="host:meta.url")
    assert nested.cluster_of({"meta": {"url": "http://A.b/c"}}) == "a.b" and nested.columns() == ["text", "meta"]
    for record, text, cluster, message in (
        ({"a": "x"}, None, None, "no text field"),
        ({"text": "x"}, "body", None, "no text field"),
        ({"text": "x"}, None, "site", "no field 'site'"),
        (None, "text", None, "text files have no fields"),
    ):
        with pytest.raises(InputError, match=message):
            choose_fields(record, text=text, cluster=cluster)


def test_documents_without_the_cluster_field_stand_alone(tmp_path):
    rows = [{"text": "Darwin", "source": "a"}, {"text": "Darwin"}, {"text": "Darwin", "source": "a"}]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    counts = _counts([tmp_path / "x.jsonl"], tmp_path / "out")
    assert counts.manifest["missing_clusters"] == 1 and counts.tally.n_clusters == 2


@pytest.mark.parametrize(
    ("name", "data"),
    [("x.jsonl.gz", b"no gzip"), ("x.jsonl.zst", b"no zstandard"), ("x.parquet", b"no parquet")],
)
def test_unreadable_shards(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match="cannot read"):
        _counts([tmp_path / name], tmp_path / "out")


def test_nothing_matched_and_twice(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    for paths, message in (([tmp_path / "*.jsonl"], "no files"), ([tmp_path / "a.txt"] * 2, "named twice")):
        with pytest.raises(InputError, match=message):
            _counts(paths, tmp_path / "out")


@pytest.mark.parametrize(
    "matching", [Matching(), Matching(normalize="nfkc"), Matching(case="full", punctuation="plain")]
)
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.one_of(trouble.documents(), st.text(max_size=30)), max_size=4), piece=st.integers(1, 12))
def test_documents_are_prepared_alike_in_pieces(matching, texts, piece):
    texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("latentkt.corpus.documents._PIECE", piece)
        buffer = make_buffer(texts, matching, open_kernel("numpy"))
    prepared = [buffer.document(index).decode("utf-8") for index in range(len(texts))]
    assert prepared == [matching.prepare(text) for text in texts]
    assert buffer.size == buffer.starts[-1] and not buffer.data[buffer.size :].any()


@pytest.mark.parametrize("place", [0, 1, 4095, 4096, 4097, 9000, 19_999])
def test_a_piece_ends_before_the_next_ascii_character(place):
    """However far it is: text without any ASCII character is one piece."""
    from latentkt.corpus.documents import _next_ascii

    data = bytearray(b"\xc3\xa9" * 10_000)
    data[place : place + 1] = b"x"
    assert _next_ascii(memoryview(bytes(data)), 0) == place
    assert _next_ascii(memoryview(bytes(data)), min(place + 1, 20_000)) == len(data)
    assert _next_ascii(memoryview(b""), 3) == 0
