"""Ask a model on this machine about concepts, and keep what it answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError, LatentKTError
from latentkt.phantom.answers import Answer, answer_line, read_answers, write_answers
from latentkt.phantom.asking.options import AskOptions
from latentkt.phantom.asking.questions import Question, digest
from latentkt.phantom.asking.rendering import Rendered, render_question, template_of
from latentkt.progress import progress
from latentkt.results import library_versions
from latentkt.trapqa.matching import read_reply
from latentkt.trapqa.running.journal import Layout, open_journal
from latentkt.trapqa.running.writing import Decoding, Written, write_replies

if TYPE_CHECKING:
    from latentkt.models import ModelHandle

__all__ = ["ANSWERS", "Asked", "ask", "summary_lines"]

ANSWERS: Layout[Answer] = Layout(read_answers, answer_line, write_answers, lambda answer: answer.key)
"""Answers as rows of a journal."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What asking did.

    Attributes:
        path: The answers.
        answers: All answers of the file.
        asked: Questions that were asked now.
        dropped: Half-written lines that were cut off, whose questions were asked again.
        skipped: Id of each question that this model refuses -> why.
    """

    path: Path
    answers: tuple[Answer, ...]
    asked: int
    dropped: int
    skipped: dict[str, str]

    def lines(self) -> list[str]:
        """What was done, in a few lines of text."""
        kept = len(self.answers) - self.asked
        again = [f"  {self.dropped} half-written line was cut off and its question asked again"] if self.dropped else []
        refused = [f"  not asked: {count} ({why})" for why, count in Counter(self.skipped.values()).items()]
        head = f"{self.path}: {len(self.answers)} answers ({self.asked} asked now, {kept} there before)"
        return [head, *summary_lines(self.answers), *again, *refused]


def summary_lines(answers: Sequence[Answer]) -> list[str]:
    """How many answers came to their end, in a line of text."""
    cut = Counter(answer.truncated for answer in answers)
    ended = Counter(answer.finished for answer in answers if answer.error is None)
    failed = sum(answer.error is not None for answer in answers)
    line = f"  finished {ended[True]}, cut off in the answer {cut['answer']}, in the reasoning {cut['thinking']}"
    return [
        line
        + (f", provider does not say {ended[None]}" if ended[None] else "")
        + (f", failed {failed}" if failed else "")
    ]


def ask(
    handle: ModelHandle,
    questions: Sequence[Question],
    options: AskOptions,
    out: str | Path,
    *,
    resume: bool = False,
    command: Sequence[str] | None = None,
) -> Asked:
    """Ask a model, and write each answer down when it is there.

    A run that was stopped goes on where it stopped, with `resume`, and ends with the answers of an unbroken one.

    Args:
        handle: The model.
        questions: What to ask; each is a conversation of its own.
        options: How.
        out: The answers, a file ending in `.jsonl`; `NAME.meta.json` is written beside it.
        resume: Go on with a file that exists.
        command: The words of the command line, for the provenance.

    Raises:
        InputError: An option does not fit the model.
        RunError: The file exists, or was begun with another model, question or option.
    """
    path = Path(out)
    if path.suffix != ".jsonl":
        raise InputError("answers are JSON lines", expected="a name ending in .jsonl", found=path.name)
    template = template_of(handle, options.template)
    setting = options.setting or handle.name
    identity = {
        "model": handle.metadata(),
        "setting": setting,
        "questions": digest(questions),
        "options": {**options.identity(), "template": template},
        "versions": library_versions(),
    }
    skipped: dict[str, str] = {}
    asked = 0
    with open_journal(path, identity, layout=ANSWERS, resume=resume, command=command) as journal, progress() as bar:
        stage = bar.stage("asking", total=len(questions))
        # Batches are cut from the plan, not from what is left: a run that goes on has the same batches.
        for first in range(0, len(questions), options.batch_size):
            batch = questions[first : first + options.batch_size]
            todo = [question for question in batch if (question.prompt.id, setting, None) not in journal.done]
            answers = _ask_batch(handle, todo, options, template, setting, skipped)
            journal.append(answers)
            asked += len(answers)
            stage.advance(len(batch))
        place = {question.prompt.id: n for n, question in enumerate(questions)}
        whole = sorted(journal.records, key=lambda answer: place[answer.prompt_id])
        refused = [{"prompt_id": name, "reason": why} for name, why in skipped.items()]
        journal.finish(whole, {"asked": asked, "half_written_lines": journal.dropped, "skipped": refused})
    return Asked(path, tuple(whole), asked, journal.dropped, skipped)


def _ask_batch(
    handle: ModelHandle,
    questions: Sequence[Question],
    options: AskOptions,
    template: str,
    setting: str,
    skipped: dict[str, str],
) -> list[Answer]:
    from latentkt.models import encode

    ready: list[tuple[Question, Rendered, tuple[int, ...]]] = []
    for question in questions:
        try:
            prompt = render_question(
                question.prompt, template=template, system=options.system, tokenizer=handle.tokenizer
            )
            encoded = encode(handle, prompt.text, chat=prompt.chat, name=question.prompt.id)
            ready.append((question, prompt, encoded.ids))
        except LatentKTError as error:
            skipped[question.prompt.id] = error.what
    if not ready:
        return []
    decoding = Decoding(
        max_new_tokens=options.limit, temperature=options.temperature, top_p=options.top_p, seed=options.seed
    )
    keys = [question.prompt.id for question, _, _ in ready]
    written = write_replies(handle, [ids for _, _, ids in ready], keys, decoding, chat=template == "chat")
    return [
        question.answer(setting=setting, model=handle.name, **_said(handle, each, options))
        for (question, _, _), each in zip(ready, written, strict=True)
    ]


def _said(handle: ModelHandle, written: Written, options: AskOptions) -> dict[str, Any]:
    """What a reply says, without its reasoning, and where a limit cut it off."""
    reply = read_reply(written.raw, stop="stop" if written.ended else "length")
    thinking = 0
    if reply.reasoning:
        thinking = len(handle.tokenizer(reply.reasoning, add_special_tokens=False)["input_ids"])
    return {
        "answer": reply.text,
        "reasoning": reply.reasoning,
        "finished": not reply.truncated,
        "truncated": ("answer" if reply.text else "thinking") if reply.truncated else None,
        "thinking_tokens": thinking,
        "thinking_budget": options.thinking_budget,
        "meta": {"tokens": len(written.ids)},
    }
