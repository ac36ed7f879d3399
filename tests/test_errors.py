from __future__ import annotations

from latentkt.cli import main
from latentkt.errors import InputError, MissingExtraError


def test_a_message_says_what_was_expected_found_and_what_to_do():
    text = str(InputError("weights of 'x'", expected="4", found=3, fix="pad them"))
    assert text.splitlines() == ["weights of 'x'", "  expected: 4", "  found:    3", "  to do:    pad them"]


def test_a_missing_extra_names_the_command_that_brings_it():
    assert "pip install 'latentkt[fast]'" in str(MissingExtraError("numba", extra="fast", purpose="the kernel"))


def test_unknown_command_is_refused_with_the_list(capsys):
    assert main(["nonsense"]) == 2
    assert "no command 'nonsense'" in capsys.readouterr().err
