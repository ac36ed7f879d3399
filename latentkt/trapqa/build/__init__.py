"""Construction: trap items from profiles of people and from word associations, with what was removed and why.

The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:  # what type checkers and editors see
    from latentkt.trapqa.build.artefacts import ArtefactReport as ArtefactReport
    from latentkt.trapqa.build.artefacts import artefact_tests as artefact_tests
    from latentkt.trapqa.build.embedding import Embedder as Embedder
    from latentkt.trapqa.build.embedding import embedder as embedder
    from latentkt.trapqa.build.everyday.bank import Cleaning as Cleaning
    from latentkt.trapqa.build.everyday.seeds import SeedLimits as SeedLimits
    from latentkt.trapqa.build.everyday.stages import ScenarioOptions as ScenarioOptions
    from latentkt.trapqa.build.everyday.stages import make_associations as make_associations
    from latentkt.trapqa.build.everyday.stages import make_scenarios as make_scenarios
    from latentkt.trapqa.build.hard_pairs import HardPairs as HardPairs
    from latentkt.trapqa.build.hard_pairs import hard_pairs as hard_pairs
    from latentkt.trapqa.build.language import Failure as Failure
    from latentkt.trapqa.build.language import generate as generate
    from latentkt.trapqa.build.lists import ClosedList as ClosedList
    from latentkt.trapqa.build.lists import read_list as read_list
    from latentkt.trapqa.build.log import StageLog as StageLog
    from latentkt.trapqa.build.output import Source as Source
    from latentkt.trapqa.build.output import construction_tables as construction_tables
    from latentkt.trapqa.build.output import write_items as write_items
    from latentkt.trapqa.build.pair_stage import load_pairs as load_pairs
    from latentkt.trapqa.build.pair_stage import make_pairs as make_pairs
    from latentkt.trapqa.build.profiles import Profile as Profile
    from latentkt.trapqa.build.question_stage import QuestionOptions as QuestionOptions
    from latentkt.trapqa.build.question_stage import make_questions as make_questions
    from latentkt.trapqa.build.reading import read_profiles as read_profiles
    from latentkt.trapqa.build.wording import read_wordings as read_wordings

_HOME = {
    "ArtefactReport": "artefacts",
    "artefact_tests": "artefacts",
    "Embedder": "embedding",
    "embedder": "embedding",
    "Cleaning": "everyday.bank",
    "SeedLimits": "everyday.seeds",
    "ScenarioOptions": "everyday.stages",
    "make_associations": "everyday.stages",
    "make_scenarios": "everyday.stages",
    "HardPairs": "hard_pairs",
    "hard_pairs": "hard_pairs",
    "Failure": "language",
    "generate": "language",
    "ClosedList": "lists",
    "read_list": "lists",
    "StageLog": "log",
    "Source": "output",
    "construction_tables": "output",
    "write_items": "output",
    "load_pairs": "pair_stage",
    "make_pairs": "pair_stage",
    "Profile": "profiles",
    "QuestionOptions": "question_stage",
    "make_questions": "question_stage",
    "read_profiles": "reading",
    "read_wordings": "wording",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
