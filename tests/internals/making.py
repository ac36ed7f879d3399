"""Pairs on tiny models that several test modules use."""

from __future__ import annotations

from latentkt.models import encode, make_pair

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
