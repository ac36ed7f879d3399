"""Inside the model: can it be read whether a concept exists, does that predict what is said, does pushing change it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.phantom.inside.abstaining import direction_and_abstention as direction_and_abstention
    from latentkt.phantom.inside.activations import ConceptActivations as ConceptActivations
    from latentkt.phantom.inside.activations import read_concepts as read_concepts
    from latentkt.phantom.inside.activations import subword_frequencies as subword_frequencies
    from latentkt.phantom.inside.contrasts import CONTRASTS as CONTRASTS
    from latentkt.phantom.inside.contrasts import Contrast as Contrast
    from latentkt.phantom.inside.matching import Matched as Matched
    from latentkt.phantom.inside.matching import match_concepts as match_concepts
    from latentkt.phantom.inside.options import InsideOptions as InsideOptions
    from latentkt.phantom.inside.run import probe_concepts as probe_concepts
    from latentkt.phantom.inside.steering import steer_existence as steer_existence

_HOME = {
    "CONTRASTS": "contrasts",
    "ConceptActivations": "activations",
    "Contrast": "contrasts",
    "InsideOptions": "options",
    "Matched": "matching",
    "direction_and_abstention": "abstaining",
    "match_concepts": "matching",
    "probe_concepts": "run",
    "read_concepts": "activations",
    "steer_existence": "steering",
    "subword_frequencies": "activations",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
