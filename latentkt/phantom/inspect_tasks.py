"""PhantomBench as a task of inspect-ai: `inspect eval latentkt/phantom --model …`, for every model it knows.

The score of the task is the phrase list's and is named so: it is there to look at, never a judge's verdict. `latentkt
phantom ask --from-log LOG` makes answers of the logs, and `latentkt phantom judge` judges them.

This module needs the extra `eval`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import MissingExtraError

try:
    from inspect_ai import Task, task
    from inspect_ai.scorer import Score, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState, generate
except ImportError as error:
    raise MissingExtraError("inspect_ai", extra="eval", purpose="asking hosted models through inspect-ai") from error

from latentkt.phantom.asking.inspect_samples import answer_of, question_of, samples_of
from latentkt.phantom.judging.phrases import PhraseJudge
from latentkt.phantom.judging.run import judge_answers

if TYPE_CHECKING:
    from inspect_ai.scorer import Scorer

__all__ = ["phantom", "phrase_list_says_it_abstains"]


@scorer(metrics=[mean(), stderr()])
def phrase_list_says_it_abstains() -> Scorer:
    """1 where the phrase list finds an abstention, 0 where it finds none; no judge's verdict.

    Replies that it cannot read or that never came to an answer have no score of their own: they count 0, and
    `explanation` says which they are.
    """

    async def score(state: TaskState, target: Target) -> Score:
        question = question_of(state.metadata, "sample")
        said = answer_of(question, messages=state.messages, output=state.output, setting=str(state.model))
        (judged,) = judge_answers([said], PhraseJudge())
        value = 1.0 if judged.judgement == "abstained" else 0.0
        return Score(value=value, answer=judged.answer[:200], explanation=judged.judgement, metadata=judged.meta)

    return score


@task
def phantom(
    concepts: str | None = None, properties: str | None = None, per_property: int = 1, seed: int = 0
) -> Task:  # fmt: skip
    """Questions about concepts, made and real.

    Args:
        concepts: A file of verified concepts; default: the few that come with the library.
        properties: What is asked, separated by commas; default `existence,meaning,date,place`.
        per_property: Phrasings of each property.
        seed: Of the phrasings.
    """
    samples, facts = samples_of(concepts, properties=properties, per_property=per_property, seed=seed)
    scorer = phrase_list_says_it_abstains()
    return Task(dataset=samples, solver=[generate()], scorer=scorer, metadata=facts, version=1)
