"""A tiny model in a folder and a few items: a whole study in seconds."""

from __future__ import annotations

import pytest

from latentkt.trapqa import ItemSet, mark_item, save_items
from tests.models.tiny import tiny_model, tiny_tokenizer

STORIES = [
    ("shelf", "tool_required", "I hold [[shortcut: a hammer]] and [[constraint: screws]].", "nailss", "turn", "hit"),
    ("tent", "tool_required", "We have [[shortcut: a rope]] and [[constraint: no poles]].", "no ropes", "lean", "tie"),
    ("wash", "vehicle_required", "It is [[shortcut: near]], to wash [[constraint: a car]].", "a cat", "drive", "walk"),
    ("tank", "vehicle_required", "It is [[shortcut: close]], to fill [[constraint: a van]].", "a can", "drive", "run"),
]


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    """A random two-layer model as an ordinary folder."""
    folder = tmp_path_factory.mktemp("model")
    tiny_model("llama", num_hidden_layers=2).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_items(tmp_path_factory):
    """Four action items of two families; the control of one is longer, so it is skipped where positions must agree."""
    items = [
        mark_item(
            id=name,
            kind="action",
            family=family,
            text=f"{text} Do I {{option_a}} or {{option_b}}?",
            control={"constraint": other},
            correct=correct,
            shortcut=shortcut,
        )
        for name, family, text, other, correct, shortcut in STORIES
    ]
    path = tmp_path_factory.mktemp("items") / "items.jsonl"
    save_items(ItemSet(tuple(items)), path)
    return path
