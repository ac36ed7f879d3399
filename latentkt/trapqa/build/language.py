"""Structured answers of a language model: an object of a dataclass for each prompt, or a failure that says why.

The models are inspect-ai's (`get_model`), so every provider it knows can be used, and its `mockllm` in tests. The
schema goes to the provider, which may enforce it, and into the prompt, for those that do not; what comes back is
checked here in any case. A reply that is not the object is answered with what is wrong with it, a few times.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import re
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from latentkt.errors import DataError, InputError, MissingExtraError
from latentkt.trapqa.build.log import lines_of

if TYPE_CHECKING:
    from inspect_ai.model import Model

__all__ = ["Failure", "generate"]

T = TypeVar("T")
Why = Literal["prose", "schema", "refused", "truncated", "error"]
_FENCE = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.S)
_ASK = """

Reply with one JSON object and nothing else: no words before or after it. It must follow this JSON schema:
{schema}"""
_AGAIN = "That reply cannot be used: {problem}. Send the JSON object alone, as the schema asks."


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a prompt has no answer.

    Attributes:
        why: `prose` (no JSON object), `schema` (an object of another shape), `refused` (a provider's filter),
            `truncated` (the reply was cut off), `error` (the provider failed).
        detail: What was wrong in the last attempt.
        attempts: How often the model was asked.
        raw: The last reply.
    """

    why: Why
    detail: str
    attempts: int
    raw: str = ""


def generate(
    model: str | Model,
    prompts: Sequence[str],
    schema: type[T],
    *,
    retries: int = 2,
    seed: int = 0,
    temperature: float = 0.7,
    max_tokens: int = 2048,
    journal: str | Path | None = None,
) -> list[T | Failure]:
    """Ask a model for one object a prompt.

    Args:
        model: A model of inspect-ai, or its name (`openai/gpt-5.2`, `mockllm/model`, …).
        prompts: What to ask; the schema is added to each.
        schema: A dataclass whose fields have plain types (text, numbers, booleans, lists, nested dataclasses,
            `Literal`). Fields that it does not have are refused.
        retries: How often a reply that is not the object is sent back with what is wrong.
        seed: Passed on to the provider, which may ignore it.
        temperature: Of the replies.
        max_tokens: Of one reply.
        journal: A file of JSON lines in which every answer is kept as it comes, and looked up before a prompt is asked:
            a run that was stopped goes on. It belongs to model, prompt, schema, seed and options together.

    Returns:
        For each prompt, in order, an object of `schema` or a `Failure`. Errors of a provider are failures too, and are
        not kept in the journal.

    Raises:
        MissingExtraError: inspect-ai is not installed.
        InputError: `schema` is no dataclass.
    """
    given: Any = schema
    if not (isinstance(given, type) and dataclasses.is_dataclass(given)):
        raise InputError("the schema of an answer is wrong", expected="a dataclass", found=repr(schema))
    asker = _Asker(model, schema, retries, {"seed": seed, "temperature": temperature, "max_tokens": max_tokens})
    known = _Journal(journal)
    return _finish(_all(asker, known, prompts))


async def _all(asker: _Asker[T], journal: _Journal, prompts: Sequence[str]) -> list[T | Failure]:
    async def one(prompt: str) -> T | Failure:
        mark = asker.mark(prompt)
        kept = journal.get(mark)
        if kept is None:
            kept = await asker.ask(prompt)
            if kept.get("why") != "error":
                journal.put(mark, kept)
        return Failure(**kept) if "why" in kept else asker.read(kept["text"])

    return list(await asyncio.gather(*map(one, prompts)))


def _finish(work: Coroutine[Any, Any, list[T | Failure]]) -> list[T | Failure]:
    """Run to the end, also where a loop is running already (notebooks)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


class _Asker(Generic[T]):
    """One model and one schema."""

    def __init__(self, model: str | Model, schema: type[T], retries: int, config: dict[str, Any]) -> None:
        try:
            from inspect_ai.model import GenerateConfig, ResponseSchema, get_model
            from inspect_ai.util import json_schema
            from pydantic import TypeAdapter
        except ImportError as error:
            raise MissingExtraError("inspect_ai", extra="eval", purpose="writing with a language model") from error
        shape = json_schema(schema)
        self.model, self.schema, self.retries, self.settings = get_model(model), schema, retries, config
        self.shape = json.dumps(shape.model_dump(exclude_none=True), sort_keys=True)
        self.config = GenerateConfig(**config, response_schema=ResponseSchema(name=schema.__name__, json_schema=shape))
        self._adapter = TypeAdapter(schema)

    def mark(self, prompt: str) -> str:
        """What an answer belongs to."""
        parts = [str(self.model), prompt, self.shape, self.retries, self.settings]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def read(self, text: str) -> T:
        """The object of a reply.

        Raises:
            ValueError: It is not the object; the message says what is wrong.
        """
        data = json.loads(text)
        _only_known(data, self.schema)
        return self._adapter.validate_json(text, strict=True)

    async def ask(self, prompt: str) -> dict[str, Any]:
        """The text of a reply that can be read, or a failure, as they stand in the journal."""
        from inspect_ai.model import ChatMessageUser

        messages: list[Any] = [ChatMessageUser(content=prompt + _ASK.format(schema=self.shape))]
        failure = Failure("error", "not asked", 0)
        for attempt in range(1, self.retries + 2):
            try:
                output = await self.model.generate(messages, config=self.config)
            except Exception as error:  # every provider has errors of its own
                return dataclasses.asdict(Failure("error", f"{type(error).__name__}: {error}"[:400], attempt))
            text = _unfenced(output.completion)
            why, detail = self._problem(text, output.stop_reason)
            if why is None:
                return {"text": text}
            failure = Failure(why, detail, attempt, output.completion[:2000])
            messages += [output.message, ChatMessageUser(content=_AGAIN.format(problem=detail))]
        return dataclasses.asdict(failure)

    def _problem(self, text: str, stop: str | None) -> tuple[Why | None, str]:
        if stop == "content_filter":
            return "refused", "the provider's filter stopped it"
        try:
            self.read(text)
        except json.JSONDecodeError as error:
            if stop in ("max_tokens", "model_length"):
                return "truncated", "it was cut off"
            return "prose", f"it is no JSON object ({error.msg} at character {error.pos})"
        except (ValueError, TypeError) as error:
            return "schema", "; ".join(str(error).split("\n")[:6])[:400]
        return None, ""


def _only_known(data: Any, schema: Any) -> None:
    if not isinstance(data, dict):
        raise TypeError("it is no object")
    unknown = set(data) - {field.name for field in dataclasses.fields(schema)}
    if unknown:
        raise TypeError(f"unknown fields: {', '.join(sorted(unknown))}")


def _unfenced(text: str) -> str:
    """The reply without the fence that many models put around JSON."""
    match = _FENCE.match(text.strip())
    return match.group(1).strip() if match else text.strip()


class _Journal:
    """Answers in a file, one a line; only in memory where there is no file."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self._known: dict[str, dict[str, Any]] = {}
        if self._path is not None and self._path.exists():
            self._known = {line.pop("mark"): line for line in self._lines(self._path)}

    def get(self, mark: str) -> dict[str, Any] | None:
        return self._known.get(mark)

    def put(self, mark: str, kept: dict[str, Any]) -> None:
        self._known[mark] = kept
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"mark": mark, **kept}, ensure_ascii=False) + "\n")

    @staticmethod
    def _lines(path: Path) -> list[dict[str, Any]]:
        """The whole lines; a last one that a kill left half written is cut off."""
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            path.write_bytes(whole)
        try:
            return [json.loads(line) for line in lines_of(whole.decode())]
        except ValueError as error:
            raise DataError(f"{path} is no journal of answers", expected="JSON lines", found=error) from error
