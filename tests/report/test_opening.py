"""The page names the command that made the run, and its first words fit that kind of run."""

import pytest

from latentkt.report.opening import opening_of


@pytest.mark.parametrize(
    ("command", "made_by", "word"),
    [
        (["latentkt", "study", "smollm2"], "latentkt study", "constraint makes right"),
        (["latentkt", "patch", "smollm2"], "latentkt patch", "log-odds"),
        (["latentkt", "trapqa", "report"], "latentkt trapqa", "read as text"),
        (["latentkt", "synthetic", "run"], "latentkt synthetic", "prior is known"),
        (["latentkt", "phantom", "analyse"], "latentkt phantom", "does not exist"),
        (["(from Python)"], "latentkt", "trap item"),
    ],
)
def test_opening_fits_the_command(command: list[str], made_by: str, word: str) -> None:
    opening = opening_of(command)
    assert opening.made_by == made_by
    assert word in opening.lead.lower() or word in opening.lead
