"""Counts from an infini-gram index: a local one through its package, or one served over HTTP.

An index counts token sequences: it is case-sensitive and knows no word boundaries, so ``art`` is found in ``cart``. Its
counts are another quantity than those of the scanner, and are marked so; those of one text bound the case-sensitive
scanner's from above wherever the index holds the same text. How often two names stand near each other is a third
quantity, and bounds nothing of the scanner's: see `NEAR`.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from latentkt.corpus.patterns import Form, Patterns, path_name
from latentkt.errors import DataError, InputError, MissingExtraError, RunError

__all__ = ["IndexCount", "InfiniGramClient", "InfiniGramIndex", "index_counts"]

QUANTITY = "token sequences in an index: case-sensitive, no word boundaries"
NEAR = "occurrences of the rarer of two names near the other, in an index: case-sensitive, no word boundaries"
"""What a query for two names counts, in one direction whichever is asked for first. It is a lower bound even of that:
of the other name's occurrences within the distance the index looks at one only, and if that one stands in the next
document it takes the pair for none."""
PUBLIC = "https://api.infini-gram.io/"


@dataclass(frozen=True, slots=True)
class IndexCount:
    """One count of an index.

    Attributes:
        count: Matches.
        approximate: Whether the index sampled (a clause was too frequent): then nothing is bounded.
        quantity: What is counted, `QUANTITY` or `NEAR`: not what the scanner counts.
        lower_bound: Whether there may be more of this quantity in the index than `count`, which is so of all that is
            counted near another name.
    """

    count: int
    approximate: bool
    quantity: str = QUANTITY
    lower_bound: bool = False


class Backend(Protocol):
    """What `index_counts` needs."""

    def count(self, text: str) -> IndexCount:
        """Matches of one text."""

    def count_near(self, one: Sequence[str], other: Sequence[str], *, distance: int) -> IndexCount:
        """Occurrences of the rarer of two names at most `distance` tokens from the other, in one document."""


class InfiniGramIndex:
    """A local index, read through the package `infini-gram`.

    Args:
        folder: Folder of the index.
        encode: Text -> token ids; None: a byte index (``--token_dtype u8``, no tokenizer).
        token_dtype: ``u8``, ``u16`` or ``u32``, as the index was built.
        eos_token_id: End-of-document id of the tokenizer; ignored for a byte index.
        vocab_size: Size of the vocabulary; ignored for a byte index.

    Raises:
        MissingExtraError: The package is not installed.
        DataError: The folder holds no index.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        encode: Callable[[str], list[int]] | None = None,
        token_dtype: str = "u8",
        eos_token_id: int = 254,
        vocab_size: int = 255,
    ) -> None:
        try:
            from infini_gram.engine import InfiniGramEngine
        except ImportError as error:
            raise MissingExtraError("infini-gram", extra="corpus", purpose="a local infini-gram index") from error
        if not list(Path(folder).glob("tokenized.*")):
            raise DataError(f"no infini-gram index in {folder}", expected="files tokenized.*, table.*", found="none")
        self._encode = encode or (lambda text: list(text.encode("utf-8")))
        self._engine = InfiniGramEngine(
            index_dir=str(folder), eos_token_id=eos_token_id, vocab_size=vocab_size, token_dtype=token_dtype, version=4
        )

    def count(self, text: str) -> IndexCount:
        """Matches of one text.

        Raises:
            RunError: The index reports an error.
        """
        return _read(self._engine.count(input_ids=self._encode(text)))

    def count_near(self, one: Sequence[str], other: Sequence[str], *, distance: int) -> IndexCount:
        """Occurrences of the rarer of two names near the other: see `NEAR`.

        Args:
            one: Forms of one name.
            other: Forms of the other name.
            distance: Largest distance of their beginnings in tokens (in bytes, in a byte index).

        Raises:
            RunError: The index reports an error.
        """
        cnf = [[self._encode(text) for text in clause] for clause in (one, other)]
        return _read(self._engine.count_cnf(cnf=cnf, max_diff_tokens=distance), near=True)


class InfiniGramClient:
    """An index served over HTTP, by default the public one.

    Args:
        index: Name of the index, for instance ``v4_dolma-v1_7_llama``.
        url: Address of the server.
        attempts: How often a request is tried when the server is busy (429) or the connection breaks.
        wait: Seconds before the second attempt; doubled each time (a Retry-After header goes first).
        timeout: Seconds before a request is given up, and the longest wait that a busy server may ask for.
    """

    def __init__(
        self, index: str, *, url: str = PUBLIC, attempts: int = 5, wait: float = 1.0, timeout: float = 60.0
    ) -> None:
        if attempts < 1:
            raise InputError("bad number of attempts", expected="at least 1", found=attempts)
        self.index, self.url, self._attempts, self._wait, self._timeout = index, url, attempts, wait, timeout

    def count(self, text: str) -> IndexCount:
        """Matches of one text.

        Raises:
            RunError: The server reports an error, or cannot be reached.
        """
        return _read(self._ask({"query_type": "count", "query": text}))

    def count_near(self, one: Sequence[str], other: Sequence[str], *, distance: int) -> IndexCount:
        """Occurrences of the rarer of two names near the other: see `NEAR`.

        Args:
            one: Forms of one name.
            other: Forms of the other name.
            distance: Largest distance of their beginnings in tokens of the index.

        Raises:
            InputError: A form holds the words AND or OR in capitals, by which the server would split it.
            RunError: The server reports an error, or cannot be reached.
        """
        split = [form for form in (*one, *other) if {"AND", "OR"} & set(form.split())]
        if split:
            raise InputError("the server would split these forms", expected="forms without AND and OR", found=split)
        query = " AND ".join(" OR ".join(clause) for clause in (one, other))
        return _read(self._ask({"query_type": "count", "query": query, "max_diff_tokens": distance}), near=True)

    def _ask(self, question: dict[str, Any]) -> Any:
        body = json.dumps({"index": self.index, **question}).encode("utf-8")
        wait, problem = self._wait, ""
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(wait)
                wait *= 2
            request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as response:
                    return json.loads(response.read())
            except urllib.error.HTTPError as error:
                if error.code != 429 and error.code < 500:
                    raise RunError(f"{self.url} refused the request", expected="HTTP 200", found=error) from error
                problem = str(error)
                wait = _retry_after(error, wait)
                if wait > self._timeout:
                    problem += f", come back in {wait:.0f} s"
                    break
            except (OSError, http.client.HTTPException, ValueError) as error:  # cut off, half an answer, unreachable
                problem = f"{type(error).__name__}: {error}"
        raise RunError(f"no answer from {self.url} after {attempt + 1} attempts", expected="a count", found=problem)


def _retry_after(error: urllib.error.HTTPError, wait: float) -> float:
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else wait


def _read(answer: Any, *, near: bool = False) -> IndexCount:
    if not isinstance(answer, dict) or "error" in answer or not isinstance(answer.get("count"), int):
        raise RunError("the index reports an error", expected="a count", found=str(answer)[:200])
    return IndexCount(answer["count"], bool(answer.get("approx", False)), NEAR if near else QUANTITY, near)


def index_counts(patterns: Patterns, backend: Backend, *, distance: int) -> dict[str, dict[str, IndexCount]]:
    """Counts of keys, tasks and paths from an index.

    Args:
        patterns: Literal forms only, without exclusions: an index can do neither.
        backend: A local index or a client.
        distance: Largest distance of key and task, in tokens of the index.

    Returns:
        ``keys``, ``tasks`` and ``paths``, each name -> count. Forms of a name add up. Those of paths are of the
        quantity `NEAR`: the rarer side's, and lower bounds. They are no units of a scope: no priors are made of them.

    Raises:
        InputError: The patterns hold regex forms or exclusions.
    """
    forms = {name: _literals(name, own) for name, own in (*patterns.keys.items(), *patterns.tasks.items())}
    if patterns.exclude:
        raise InputError(
            "an index knows no exclusions", expected="patterns without exclude", found=list(patterns.exclude)
        )

    def total(name: str) -> IndexCount:
        counts = [backend.count(text) for text in forms[name]]
        return IndexCount(sum(one.count for one in counts), any(one.approximate for one in counts))

    near = {
        path_name(key, task): backend.count_near(forms[key], forms[task], distance=distance)
        for key in patterns.keys
        for task in patterns.tasks
    }
    singles = {
        kind: {name: total(name) for name in part}
        for kind, part in (("keys", patterns.keys), ("tasks", patterns.tasks))
    }
    return {**singles, "paths": near}


def _literals(name: str, forms: Sequence[Form]) -> list[str]:
    if any(form.regex for form in forms):
        raise InputError(f"an index cannot count the regex forms of {name!r}", expected="literal forms", found=name)
    return [form.text for form in forms]
