"""TrapQA as tasks of inspect-ai: `inspect eval latentkt/trapqa_names --model …`, for every model that inspect-ai knows.

The prompts are those of `latentkt.trapqa.render`, as user messages; what wraps them, how a provider is called, retried
and cached, and how much it reasons, is inspect-ai's. `latentkt trapqa from-log LOG` makes records of its logs.

This module needs the extra `eval`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt.errors import MissingExtraError

try:
    from inspect_ai import Task, task
    from inspect_ai.model import ChatMessageUser
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, Target, accuracy, scorer, stderr
    from inspect_ai.solver import Generate, TaskState, generate, solver
except ImportError as error:
    raise MissingExtraError("inspect_ai", extra="eval", purpose="asking hosted models through inspect-ai") from error

from latentkt.trapqa.matching import CONFIDENCE_QUESTION
from latentkt.trapqa.running.inspect_samples import judged, samples_of

if TYPE_CHECKING:
    from inspect_ai.scorer import Scorer
    from inspect_ai.solver import Solver

__all__ = ["trapqa_match", "trapqa_names", "trapqa_neutral", "trapqa_probes", "trapqa_profiles", "trapqa_real_life"]


@solver
def ask_confidence() -> Solver:
    """A second turn: how sure are you? The scorer still reads the first."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.store.set("first_stop", state.output.stop_reason)
        state.messages.append(ChatMessageUser(content=CONFIDENCE_QUESTION))
        return await generate(state)

    return solve


@scorer(metrics=[accuracy(), stderr()])
def trapqa_match() -> Scorer:
    """Match the first reply; an answer that is neither candidate's is wrong, and its rule says so."""

    async def score(state: TaskState, target: Target) -> Score:
        stop = state.store.get("first_stop") or state.output.stop_reason
        answer, right, match = judged(state.metadata, state.messages, stop)
        value = CORRECT if right else INCORRECT
        more = {"rule": match.rule, "truncated": match.truncated}
        return Score(value=value, answer=answer, explanation=match.rule, metadata=more)

    return score


def _task(condition: str, confidence: bool = False, **options: Any) -> Task:
    samples, metadata = samples_of(condition, **options)
    solvers = [generate(), *([ask_confidence()] if confidence else [])]
    return Task(dataset=samples, solver=solvers, scorer=trapqa_match(), metadata=metadata, version=1)


@task
def trapqa_names(
    items: str | None = None, orders: str = "seeded", seed: int = 0, confidence: bool = False, fields: str | None = None
) -> Task:
    """Choose between two people by name.

    Args:
        items: A file of trap items, rows or a folder laid out as TrapQA, or a hub id; default: the built-in set.
        orders: `seeded` or `both` orders of the options.
        seed: Of the orders.
        confidence: Ask how sure the model is, in a second turn.
        fields: Field map of rows, as `question=FIELD,correct=FIELD`.
    """
    return _task("names", confidence, items=items, orders=orders, seed=seed, fields=fields)


@task
def trapqa_profiles(
    items: str | None = None, orders: str = "seeded", seed: int = 0, confidence: bool = False, fields: str | None = None
) -> Task:
    """The same with both profiles in the prompt. Arguments as in `trapqa_names`."""
    return _task("profiles", confidence, items=items, orders=orders, seed=seed, fields=fields)


@task
def trapqa_real_life(
    items: str | None = None, orders: str = "seeded", seed: int = 0, confidence: bool = False, fields: str | None = None
) -> Task:
    """Choose between two actions. Arguments as in `trapqa_names`."""
    return _task("real_life", confidence, items=items, orders=orders, seed=seed, fields=fields)


@task
def trapqa_neutral(items: str | None = None, orders: str = "seeded", seed: int = 0, fields: str | None = None) -> Task:
    """The options without the question: which is said by itself? No answer is right. Arguments as in `trapqa_names`."""
    return _task("neutral", False, items=items, orders=orders, seed=seed, fields=fields)


@task
def trapqa_probes(items: str | None = None, fields: str | None = None) -> Task:
    """The probe questions, one a sample. Arguments as in `trapqa_names`."""
    return _task("probes", False, items=items, fields=fields)
