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


def test_every_kind_of_error_survives_the_way_out_of_a_worker():
    """A process pool pickles what a worker raises; a kind with a signature of its own must come back as itself."""
    import pickle

    from latentkt.errors import DataError, MissingExtraError

    for error in (
        MissingExtraError("z3", extra="theory", purpose="a certificate"),
        DataError("line 3", expected="a number", found="x", fix="mend it"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and again.fix == error.fix


def test_what_the_system_refuses_is_one_screen_and_exit_code_2(tmp_path, capsys, monkeypatch):
    from latentkt import cli
    from latentkt.commands import runs

    def refuse(args):
        raise PermissionError(13, "Permission denied", "/somewhere/" + "x" * 5000)

    monkeypatch.setattr(runs, "run", refuse)
    assert cli.main(["runs", "show", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "Permission denied" in error and "to do:" in error and len(error) < 1000
