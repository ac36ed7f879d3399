"""Pairs on tiny models that several test modules use."""

from __future__ import annotations

from latentkt.internals.metrics import scorer_of
from latentkt.models import encode, handle_from_hf, make_pair
from tests.models.tiny import tiny_model, tiny_tokenizer

ITEM = "The chemist did not win\nA:"
CONTROL = "The chemist did the win\nA:"


def tiny_pair(
    handle, *, base_text=ITEM, source_text=CONTROL, correct=" Ann", shortcut=" Bob", name="tiny", metric=None, **meta
):
    def prompt(text):
        start = text.index("did ")
        spans = {"shortcut": [(4, 11)], "constraint": [(start, start + len("did not"))]}
        return encode(handle, text, chat=False, spans=spans)

    columns = {"item": "a", "family": "f", **meta}
    return make_pair(
        handle,
        prompt(base_text),
        prompt(source_text),
        correct=correct,
        shortcut=shortcut,
        name=name,
        meta=columns,
        metric=metric,
    )


def llama(**changes):
    """A model of a test's own: it may be changed."""
    return handle_from_hf(tiny_model("llama", **changes), tiny_tokenizer(), name="tiny/llama")


def runs_of(pair):
    """The layouts of a pair's two runs with its answers."""
    return [scorer_of(pair, side.ids).branches for side in (pair.base, pair.source)]
