"""Tables from judged answers: rates, selectivity, correlation, comparisons, kinds; and the paper's own figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.phantom.analysis.analysis import Analysis as Analysis
    from latentkt.phantom.analysis.analysis import analyse as analyse
    from latentkt.phantom.analysis.comparisons import SettingFacts as SettingFacts
    from latentkt.phantom.analysis.comparisons import read_setting_facts as read_setting_facts
    from latentkt.phantom.analysis.frame import judged_frame as judged_frame
    from latentkt.phantom.analysis.output import write_analysis as write_analysis
    from latentkt.phantom.analysis.paper import paper_checks as paper_checks
    from latentkt.phantom.analysis.paper import paper_rates as paper_rates

_HOME = {
    "Analysis": "analysis",
    "SettingFacts": "comparisons",
    "analyse": "analysis",
    "judged_frame": "frame",
    "paper_checks": "paper",
    "paper_rates": "paper",
    "read_setting_facts": "comparisons",
    "write_analysis": "output",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
