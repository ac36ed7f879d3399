from __future__ import annotations

from pathlib import Path

import pytest

from latentkt.trapqa.build.everyday.families import families

HEADER = "cue\tresponse\tR1\tN\tR1.Strength"


def row(cue: str, response: str, count: int, n: int = 100) -> str:
    return f"{cue}\t{response}\t{count}\t{n}\t{count / n}"


@pytest.fixture(scope="session")
def strengths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A strength file that knows the associations of every written scene, and some noise."""
    lines = [HEADER]
    for family in families():
        for scene in family.scenes:
            for side in ("a", "b"):
                lines.append(row(scene.cue[side].word.lower(), scene.option[side].word, 40))
    lines += [row("nail", "the", 30), row("nail", "x9", 10), row("nail", "hangnail", 1), row("nail", "nail", 9)]
    path = tmp_path_factory.mktemp("associations") / "strength.csv"
    path.write_text("\n".join(dict.fromkeys(lines)) + "\n")
    return path
