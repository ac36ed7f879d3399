"""The built-in set: both kinds load, together and alone, and pass the check with the model named."""

from __future__ import annotations

import pytest

from latentkt.cli import main
from latentkt.errors import DataError, InputError
from latentkt.trapqa import builtin_items
from latentkt.trapqa.loading import BUILTIN


@pytest.mark.parametrize("kind", BUILTIN)
def test_a_kind_loads_alone(kind):
    items = builtin_items(kind)
    assert {item.kind for item in items} == {kind}
    assert all(item.paths is None or item.paths.correct[0] in items.patterns.keys for item in items)


def test_both_kinds_load_together():
    both, apart = builtin_items(), [builtin_items(kind) for kind in BUILTIN]
    assert both.items == apart[0].items + apart[1].items
    assert set(both.patterns.keys) == set(apart[0].patterns.keys) | set(apart[1].patterns.keys)
    assert both.path is None


def test_another_kind_is_refused():
    with pytest.raises(InputError, match="no built-in items of kind 'poet'"):
        builtin_items("poet")


def test_an_installation_without_the_files_says_so(monkeypatch):
    monkeypatch.setitem(BUILTIN, "action", "absent")
    with pytest.raises(DataError, match="lacks the built-in items 'absent'"):
        builtin_items("action")


@pytest.mark.smollm2
def test_the_command_passes_the_built_in_set_with_the_model_named(capsys):
    assert main(["items", "check", "builtin", "--model", "smollm2", "--strict"]) == 0
    printed = capsys.readouterr().out
    assert f"{len(builtin_items())} items, all valid" in printed
    assert "tokens of smollm2, chat prompts" in printed
    assert "notices: none" in printed
