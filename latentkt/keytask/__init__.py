"""The latent key–task model, exact: posterior, odds identity, certificates, divergence floors.

Keys, tasks, priors, one likelihood and emissions make a posterior over paths (k, t) and a predictive distribution. This
part says, without approximation, why the shortcut answer is more or less probable than the correct one, and what can be
proved about that from priors and stated limits. It needs NumPy and SciPy only. The mathematics is in `theory/`.

Names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "binding": ("Binding", "bound_ratio", "check_binding", "find_binding"),
    "bounds": ("Caps", "margin_bounds", "ratio_bounds"),
    "case": ("TheoryCase", "check_case", "load_case", "parse_case"),
    "certificate": (
        "Certificate",
        "Limits",
        "certify",
        "certify_same_key",
        "dominance_threshold",
        "margin_certificate",
        "threshold_odds",
    ),
    "coherence": ("Coherence", "IncoherentLikelihoodError", "coherence"),
    "decomposition": ("TERMS", "Decomposition", "decompose", "exact_factors"),
    "estimated": (
        "PriorDraws",
        "bonferroni_level",
        "certificate_quantile",
        "draw_priors",
        "sample_size",
        "sample_size_approximate",
    ),
    "evidence": (
        "CriticalEvidence",
        "critical_key_evidence",
        "critical_odds",
        "critical_path_evidence",
        "critical_task_evidence",
        "dominance_curve",
        "dominance_slope",
        "greatest_slope",
        "key_margins",
    ),
    "exact": ("ExactModel", "decompose_exact"),
    "explain": ("explain_case",),
    "floors": (
        "Floors",
        "binary_pair",
        "chi2",
        "chi2_floor",
        "end_to_end_floors",
        "f_divergence",
        "f_divergence_floor",
        "four_probability_floor",
        "hellinger2",
        "hellinger2_floor",
        "kl",
        "kl_floor",
        "margin_floor",
        "merge_to_pair",
        "reverse_kl_floor",
        "total_variation",
    ),
    "model": ("KeyTaskModel",),
    "paths": ("PathPair",),
    "printed": ("Need", "PrintedTheorem", "printed_theorem"),
    "quantities": ("Bounds", "Contributions", "Emissions", "Masses", "Quantities"),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
