"""What inspect-ai finds under the name `latentkt`: the tasks of TrapQA and of PhantomBench.

This module needs the extra `eval`.
"""

from __future__ import annotations

from latentkt.phantom.inspect_tasks import phantom, phrase_list_says_it_abstains
from latentkt.trapqa.inspect_tasks import (
    trapqa_match,
    trapqa_names,
    trapqa_neutral,
    trapqa_probes,
    trapqa_profiles,
    trapqa_real_life,
)

__all__ = [
    "phantom",
    "phrase_list_says_it_abstains",
    "trapqa_match",
    "trapqa_names",
    "trapqa_neutral",
    "trapqa_probes",
    "trapqa_profiles",
    "trapqa_real_life",
]
