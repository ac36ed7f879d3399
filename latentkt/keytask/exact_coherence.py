"""A separately given P(z|k) held against the model's own, exactly; the float form is in `coherence`."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError
from latentkt.keytask.case import TheoryCase
from latentkt.keytask.checks import check_nonnegative
from latentkt.keytask.coherence import IncoherentLikelihoodError
from latentkt.keytask.exact import ExactModel
from latentkt.keytask.rational import exact_array, log_exact, precise, sqrt_exact

__all__ = ["cohere", "exact_tv_bound", "kappa_of", "kappa_spread"]


def cohere(model: ExactModel, case: TheoryCase) -> tuple[ExactModel, Any]:
    """The model with its likelihood rescaled to agree with a separate P(z|k), where the case asks for that.

    Raises:
        IncoherentLikelihoodError: The separate P(z|k) does not agree, and no rescaling is asked for or possible.
    """
    choice = case.inputs.get("incoherent", "refuse")
    if choice not in ("refuse", "rescale"):
        raise InputError("incoherent is not an option", expected="'refuse' or 'rescale'", found=repr(choice))
    if "lik_key" not in case.inputs:
        return model, None
    kappa = kappa_of(model.prior_key, model.prior_task, model.likelihood, case.inputs["lik_key"])
    spread = kappa_spread(kappa)
    if spread == 1 or (choice == "rescale" and spread != math.inf):
        factor = np.array([Fraction(1) if k is None else k for k in kappa], dtype=object)
        rescaled = ExactModel(model.prior_key, model.prior_task, model.likelihood * factor[:, None], model.emission)
        return rescaled, spread
    raise IncoherentLikelihoodError("lik_key", float(log_exact(spread) or 0), float(exact_tv_bound(spread)))


def kappa_of(
    prior_key: NDArray[Any], prior_task: NDArray[Any], likelihood: NDArray[Any], separate_likelihood: Any
) -> list[Any]:
    """κ(k) = P(z|k)/Σ_t π(t|k) L(k, t); None for keys that do not matter; inf where something is made of nothing."""
    separate = exact_array("lik_key", separate_likelihood)
    if separate.shape != prior_key.shape:
        raise InputError("lik_key has the wrong shape", expected=prior_key.shape, found=separate.shape)
    check_nonnegative("lik_key", separate)
    implied = (prior_task * likelihood).sum(axis=-1)
    kappa: list[Any] = []
    for prior, given, sum_ in zip(prior_key, separate, implied, strict=True):
        if prior == 0 or (given == 0 and sum_ == 0):
            kappa.append(None)
        else:
            kappa.append(given / sum_ if sum_ else math.inf)
    return kappa


def kappa_spread(kappa: list[Any]) -> Any:
    """Largest κ over smallest, among the keys that matter."""
    known = [k for k in kappa if k is not None]
    if not known or max(known) == min(known):
        return Fraction(1)
    return math.inf if min(known) == 0 or max(known) == math.inf else max(known) / min(known)


def exact_tv_bound(spread: Any) -> Decimal:
    """tanh(log(spread)/4) = (√spread − 1)/(√spread + 1)."""
    if spread == math.inf:
        return Decimal(1)
    root = precise(sqrt_exact(spread))
    with localcontext() as context:
        context.prec = 60
        return (root - 1) / (root + 1)
