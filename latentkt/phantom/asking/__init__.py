"""Asking about concepts: models on this machine by generation, hosted ones through inspect-ai.

`ask` asks a model on this machine; the task `latentkt/phantom` asks any model that inspect-ai knows, and
`answers_from_log` reads its logs. Both give the same answers, read with `latentkt.phantom.read_answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.phantom.asking.inspect_log import LogAnswers as LogAnswers
    from latentkt.phantom.asking.inspect_log import answers_from_log as answers_from_log
    from latentkt.phantom.asking.options import AskOptions as AskOptions
    from latentkt.phantom.asking.questions import Question as Question
    from latentkt.phantom.asking.questions import questions_of as questions_of
    from latentkt.phantom.asking.rendering import Rendered as Rendered
    from latentkt.phantom.asking.rendering import render_question as render_question
    from latentkt.phantom.asking.run import Asked as Asked
    from latentkt.phantom.asking.run import ask as ask

_HOME = {
    "AskOptions": "options",
    "Asked": "run",
    "LogAnswers": "inspect_log",
    "Question": "questions",
    "Rendered": "rendering",
    "answers_from_log": "inspect_log",
    "ask": "run",
    "questions_of": "questions",
    "render_question": "rendering",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
