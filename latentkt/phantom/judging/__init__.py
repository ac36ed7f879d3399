"""Does an answer abstain? A judge model, a phrase list that says that it is one, and how far either can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.phantom.judging.annotators import AltTest as AltTest
    from latentkt.phantom.judging.annotators import alternative_annotator_test as alternative_annotator_test
    from latentkt.phantom.judging.annotators import read_annotations as read_annotations
    from latentkt.phantom.judging.claims import read_claims as read_claims
    from latentkt.phantom.judging.claims import write_claims_sheet as write_claims_sheet
    from latentkt.phantom.judging.judges import Judge as Judge
    from latentkt.phantom.judging.judges import ModelJudge as ModelJudge
    from latentkt.phantom.judging.judges import Verdict as Verdict
    from latentkt.phantom.judging.judges import model_judge as model_judge
    from latentkt.phantom.judging.labels import Agreement as Agreement
    from latentkt.phantom.judging.labels import agreement as agreement
    from latentkt.phantom.judging.labels import read_labels as read_labels
    from latentkt.phantom.judging.phrases import PhraseJudge as PhraseJudge
    from latentkt.phantom.judging.ratings import compare_ratings as compare_ratings
    from latentkt.phantom.judging.ratings import read_ratings as read_ratings
    from latentkt.phantom.judging.run import Judged as Judged
    from latentkt.phantom.judging.run import judge_answers as judge_answers
    from latentkt.phantom.judging.run import judge_file as judge_file

_HOME = {
    "Agreement": "labels",
    "AltTest": "annotators",
    "Judge": "judges",
    "Judged": "run",
    "ModelJudge": "judges",
    "PhraseJudge": "phrases",
    "Verdict": "judges",
    "agreement": "labels",
    "alternative_annotator_test": "annotators",
    "compare_ratings": "ratings",
    "judge_answers": "run",
    "judge_file": "run",
    "model_judge": "judges",
    "read_annotations": "annotators",
    "read_claims": "claims",
    "read_labels": "labels",
    "read_ratings": "ratings",
    "write_claims_sheet": "claims",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
