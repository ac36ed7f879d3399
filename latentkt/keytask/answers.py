"""Everything that is known of one exact model: what `theory check` prints and `theory explain` puts into words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from latentkt.keytask.binding import check_binding
from latentkt.keytask.bounds import Caps, margin_bounds, ratio_bounds
from latentkt.keytask.case import TheoryCase, model_of
from latentkt.keytask.certificate import Limits, brackets, threshold_odds
from latentkt.keytask.exact import ExactModel, decompose_exact
from latentkt.keytask.exact_coherence import cohere
from latentkt.keytask.paths import PathPair
from latentkt.keytask.quantities import Bounds, Quantities

__all__ = ["ModelAnswers", "answer_model"]


@dataclass(frozen=True, slots=True, eq=False)
class ModelAnswers:
    """What is known of a case of type `model`.

    Attributes:
        paths: The two paths.
        quantities: Of the identity.
        ratio_bounds: Theorem A with the model's own emissions as caps.
        margin_bounds: Theorem B likewise.
        blind: Theorem B with nothing known but the confidences.
        threshold: Key odds (task odds in the same-key mode) from which on dominance is certified; inf: saturated.
        spread: Spread of κ(k), largest over smallest, where the case gave an incoherent P(z|k) and was rescaled.
        model: The model (after rescaling).
    """

    paths: PathPair
    quantities: Quantities
    ratio_bounds: Bounds
    margin_bounds: Bounds
    blind: Bounds
    threshold: Any
    spread: Any
    model: ExactModel


def answer_model(case: TheoryCase) -> ModelAnswers:
    """Work out a case of type `model`."""
    model, paths = model_of(case)
    model, spread = cohere(model, case)
    q = decompose_exact(model, paths)
    e = q.emissions
    if "binding" in case.inputs:
        check_binding(e, case.inputs["binding"])
    confident = {"alpha_s": e.alpha_s, "alpha_0": e.alpha_0}
    caps, blind = Caps.own(e), Caps.blind(**confident)
    return ModelAnswers(
        paths=paths,
        quantities=q,
        ratio_bounds=ratio_bounds(q.masses, **confident, caps=caps),
        margin_bounds=margin_bounds(q.masses, **confident, caps=caps),
        blind=margin_bounds(q.masses, **confident, caps=blind),
        threshold=_threshold(q, paths, caps),
        spread=spread,
        model=model,
    )


def _threshold(q: Quantities, paths: PathPair, caps: Caps) -> Any:
    e = q.emissions
    if paths.mode == "same_key":
        if q.eps_t_s is None:
            return math.inf
        return threshold_odds(e.alpha_s - caps.B_0, e.alpha_0, 1 - (1 - q.eps_k) * (1 - q.eps_t_s))
    if None in (q.tau_s, q.tau_0, q.eps_t_s, q.eps_t_0):
        return None
    limits = Limits(
        alpha_s=e.alpha_s,
        alpha_0=e.alpha_0,
        B_0=caps.B_0,
        C_1=caps.C_1,
        C_2=caps.C_2,
        eps_k=q.eps_k,
        eps_t_s=q.eps_t_s,
        eps_t_0=q.eps_t_0,
    )
    return threshold_odds(*brackets(q.tau_s, q.tau_0, limits), q.eps_k)
