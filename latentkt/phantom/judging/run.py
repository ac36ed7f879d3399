"""Judge a file of answers, batch by batch, so that nothing is judged twice."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from latentkt.errors import InputError
from latentkt.phantom.answers import Answer, answer_line, read_answers
from latentkt.phantom.asking.run import ANSWERS
from latentkt.phantom.judging.judges import Judge
from latentkt.progress import progress
from latentkt.results import library_versions
from latentkt.trapqa.running.journal import open_journal

__all__ = ["Judged", "judge_answers", "judge_file"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What judging did.

    Attributes:
        path: The judged answers.
        answers: All of them.
        judge: The name of the judge.
        judged: Answers judged now.
    """

    path: Path
    answers: tuple[Answer, ...]
    judge: str
    judged: int

    def lines(self) -> list[str]:
        """What was found, in a few lines of text."""
        verdicts = Counter(answer.judgement for answer in self.answers)
        kinds = Counter(answer.kind for answer in self.answers if answer.kind)
        listed = ", ".join(f"{name} {count}" for name, count in sorted(kinds.items())) or "none"
        return [
            f"{self.path}: {len(self.answers)} answers judged by {self.judge} ({self.judged} now)",
            f"  abstained {verdicts['abstained']}, answered {verdicts['answered']}, no verdict that can be read "
            f"{verdicts['unparsable']}, nothing to judge {verdicts['no_answer']}",
            f"  kinds of abstention: {listed}",
        ]


def judge_answers(answers: Sequence[Answer], judge: Judge) -> list[Answer]:
    """Answers with the verdict of a judge; those without a text have nothing to judge, and the judge is not asked.

    Whatever is not a verdict stays apart: an answer is `abstained` only where the judge said so.

    Example:
        >>> from latentkt.phantom.judging import PhraseJudge
        >>> empty = Answer(prompt_id="p", concept_id="c", concept="x", concept_kind="term", property="meaning",
        ...                question="What is x?", setting="m", truncated="thinking")
        >>> judge_answers([empty], PhraseJudge())[0].judgement
        'no_answer'
    """
    texts = [answer for answer in answers if answer.error is None and answer.answer.strip()]
    verdicts = iter(judge.judge(texts) if texts else [])
    judged = []
    for answer in answers:
        if answer.error is not None or not answer.answer.strip():
            judged.append(replace(answer, judgement="no_answer", judge=judge.name, kind=None))
            continue
        verdict = next(verdicts)
        judged.append(
            replace(
                answer,
                judgement=verdict.judgement,
                judge=judge.name,
                kind=verdict.kind if verdict.judgement == "abstained" else None,
                meta={**answer.meta, **verdict.meta},
            )
        )
    return judged


def judge_file(
    paths: Sequence[str | Path],
    judge: Judge,
    out: str | Path,
    *,
    batch_size: int = 64,
    resume: bool = False,
    command: Sequence[str] | None = None,
) -> Judged:
    """Judge answers of some files and write them, judged, to another.

    Args:
        paths: Files of answers; a verdict that they hold already is replaced.
        judge: Who judges.
        out: The judged answers, a file ending in `.jsonl`; `NAME.meta.json` is written beside it.
        batch_size: Answers that are judged, and written down, at once.
        resume: Go on with a file that exists.
        command: The words of the command line, for the provenance.

    Raises:
        RunError: The file exists, or was begun with another judge or other answers; or the judge failed.
    """
    path = Path(out)
    if path.suffix != ".jsonl":
        raise InputError("judged answers are JSON lines", expected="a name ending in .jsonl", found=path.name)
    given = [replace(a, judgement=None, judge=None, kind=None) for a in read_answers(*paths)]
    if not given:
        raise InputError("no answers to judge", expected="at least one", found=", ".join(map(str, paths)))
    digest = hashlib.sha256("".join(map(answer_line, given)).encode()).hexdigest()
    identity = {"judge": judge.identity, "answers": digest, "versions": library_versions()}
    now = 0
    with open_journal(path, identity, layout=ANSWERS, resume=resume, command=command) as journal, progress() as bar:
        stage = bar.stage("judging", total=len(given))
        for first in range(0, len(given), batch_size):
            batch = given[first : first + batch_size]
            todo = [answer for answer in batch if (*answer.asked, judge.name) not in journal.done]
            found = judge_answers(todo, judge)
            journal.append(found)
            now += len(found)
            stage.advance(len(batch))
        place = {answer.asked: n for n, answer in enumerate(given)}
        whole = sorted(journal.records, key=lambda answer: place[answer.asked])
        journal.finish(whole, {"judged": now, "half_written_lines": journal.dropped})
    return Judged(path, tuple(whole), judge.name, now)
