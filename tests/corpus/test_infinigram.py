"""Infini-gram: a local index beside the scanner, and a client against a server that misbehaves."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from latentkt.corpus import InfiniGramClient, InfiniGramIndex, Patterns, count_texts
from latentkt.corpus.infinigram import NEAR, QUANTITY, IndexCount, index_counts
from latentkt.corpus.matching import Matching
from latentkt.errors import DataError, InputError, RunError


@contextmanager
def server(*answers):
    """A server that gives one answer after the other: (status, body) or None to cut the connection."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = answers[min(len(seen), len(answers)) - 1]
            if answer is None:
                self.connection.close()
                return
            status, body = answer
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", body or "0")
            if body == "cut":
                self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield InfiniGramClient("test", url=f"http://127.0.0.1:{httpd.server_port}/", attempts=3, wait=0.01), seen
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def test_counts_and_marks_approximate_ones():
    with server((200, '{"count": 7, "approx": true}')) as (client, seen):
        assert client.count("Darwin") == IndexCount(7, True, QUANTITY)
        assert client.count_near(["a", "b"], ["c"], distance=9) == IndexCount(7, True, NEAR, lower_bound=True)
    assert seen[0] == {"index": "test", "query_type": "count", "query": "Darwin"}
    assert seen[1]["query"] == "a OR b AND c" and seen[1]["max_diff_tokens"] == 9


def test_a_busy_server_and_cut_connections_are_tried_again():
    with server((429, ""), None, (200, '{"count": 3, "approx": false}')) as (client, seen):
        assert client.count("x").count == 3
    assert len(seen) == 3


def test_a_server_that_stays_busy_is_given_up():
    with server((429, "")) as (client, seen), pytest.raises(RunError, match=r"(?s)after 3 attempts.*429"):
        client.count("x")
    assert len(seen) == 3
    with server((429, "7200")) as (client, seen), pytest.raises(RunError, match="come back in 7200 s"):
        client.count("x")
    assert len(seen) == 1


def test_a_dead_connection_is_given_up():
    with server(None) as (client, seen), pytest.raises(RunError, match="after 3 attempts"):
        client.count("x")
    assert len(seen) == 3


def test_forms_that_the_server_would_split_are_refused():
    with server((200, '{"count": 1}')) as (client, seen), pytest.raises(InputError, match="would split"):
        client.count_near(["salt AND pepper"], ["x"], distance=5)
    assert not seen


def test_half_an_answer_is_no_answer():
    with server((200, "cut"), (200, '{"count": 1')) as (client, _), pytest.raises(RunError, match="after 3 attempts"):
        client.count("x")


@pytest.mark.parametrize(
    "body", ['{"error": "index not found"}', '{"count": null, "why": "not found"}', '["not found"]']
)
def test_an_error_behind_http_200_is_an_error(body):
    with server((200, body)) as (client, seen), pytest.raises(RunError, match="not found"):
        client.count("x")
    assert len(seen) == 1


def test_a_refusal_is_not_repeated():
    with server((403, "")) as (client, seen), pytest.raises(RunError, match="refused"):
        client.count("x")
    assert len(seen) == 1


_RNG = random.Random(1)
TEXTS = [
    " ".join(
        _RNG.choice(["alpha", "beta", "Darwin", "Darwinism", "selection", "art", "cart", "eta"]) for _ in range(40)
    )
    for _ in range(50)
]


def build_index(folder, texts):
    pytest.importorskip("infini_gram")
    (folder / "data").mkdir()
    (folder / "index").mkdir()
    (folder / "data" / "x.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    options = {
        "data_dir": folder / "data",
        "save_dir": folder / "index",
        "temp_dir": folder / "index",
        "token_dtype": "u8",
    }
    options |= {"version": 4, "cpus": 1, "mem": 1, "shards": 1, "ulimit": 1024}
    command = [sys.executable, "-m", "infini_gram.indexing", *(f"--{k}={v}" for k, v in options.items())]
    subprocess.run(command, check=True, capture_output=True)
    return InfiniGramIndex(folder / "index")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build_index(tmp_path_factory.mktemp("index"), TEXTS)


@pytest.fixture(scope="module")
def one_document(tmp_path_factory):
    return build_index(tmp_path_factory.mktemp("one"), [" ".join(TEXTS)])


def near(one, other, distance, texts):
    """Occurrences of `one` with one of `other` beginning at most `distance` bytes away in the same text."""
    places = [[[m.start() for m in re.finditer(word, text)] for word in (one, other)] for text in texts]
    return sum(any(abs(a - b) <= distance for b in others) for ones, others in places for a in ones)


def test_a_local_index_bounds_the_scanner_from_above(index):
    patterns = Patterns.from_dict(
        {"keys": {"darwin": ["Darwin"], "art": ["art"]}, "tasks": {"selection": ["selection"]}}
    )
    counts = count_texts(TEXTS, patterns, matching=Matching(case="sensitive"))
    found = index_counts(patterns, index, distance=12)
    joined = " ".join(TEXTS)
    for name, text in (("darwin", "Darwin"), ("art", "art")):
        assert found["keys"][name] == IndexCount(joined.count(text), False, QUANTITY)
        assert found["keys"][name].count > counts.occurrences(name) > 0  # "Darwinism", "cart"
    assert all(path.quantity == NEAR and path.lower_bound for path in found["paths"].values())


def test_two_names_near_each_other_are_counted_from_the_rarer_side(one_document):
    """What the index counts is no count of keys with a task beside them, whichever of the two is named first."""
    text = [" ".join(TEXTS)]
    for distance in (12, 40):
        rarer, other = near("selection", "Darwin", distance, text), near("Darwin", "selection", distance, text)
        for pair in (("Darwin", "selection"), ("selection", "Darwin")):
            assert one_document.count_near(pair[:1], pair[1:], distance=distance).count == rarer
        assert rarer < other


def test_pairs_beside_the_end_of_a_document_are_missed(index):
    """So it is a lower bound, and marked as one."""
    for distance in (12, 40, 120):
        found = index.count_near(["selection"], ["Darwin"], distance=distance)
        assert found.lower_bound and 0 < found.count <= near("selection", "Darwin", distance, TEXTS)
    assert found.count < near("selection", "Darwin", 120, TEXTS)


def test_what_an_index_cannot_count_is_refused(index, tmp_path):
    for data in ({"keys": {"a": [{"regex": "a+"}]}}, {"keys": {"a": ["a"]}, "exclude": {"a": ["aa"]}}):
        with pytest.raises(InputError):
            index_counts(Patterns.from_dict(data), index, distance=5)
    with pytest.raises(DataError, match="no infini-gram index"):
        InfiniGramIndex(tmp_path)
