"""A likelihood of the key that is given separately, held against the one that the model implies.

Appendix K.1 of the TrapQA paper multiplies P(k|z) from P(z|k) with P(t|k, z) from P(z|k, t). The law of total
probability asks that P(z|k) = Σ_t π(t|k) P(z|k, t). With κ(k) = P(z|k)/Σ_t π(t|k) P(z|k, t), the product is the joint
posterior of the likelihood κ(k) P(z|k, t), so it equals the joint posterior of P(z|k, t) itself if and only if κ is
constant on the keys that matter. See `theory/01-model.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from latentkt.errors import InputError
from latentkt.keytask.logspace import Logs, log_ratio, log_sum

__all__ = ["Coherence", "IncoherentLikelihoodError", "coherence", "refuse_incoherent"]


class IncoherentLikelihoodError(InputError):
    """P(z|k) and P(z|k, t) cannot both be true. Attributes: `spread` (nats) and `tv_bound`."""

    def __init__(self, name: str, spread: float, tv_bound: float) -> None:
        super().__init__(
            f"{name} contradicts the likelihood of the paths: P(z|k) is not Σ_t π(t|k) P(z|k, t)",
            expected="the same factor κ(k) between the two for every key (spread 0 nats)",
            found=f"spread {spread:.17g} nats; the two posteriors can differ by a total variation of up to "
            f"tanh(spread/4) = {tv_bound:.17g}",
            fix="leave it out (it follows from the rest), or pass incoherent='rescale' to use κ(k) P(z|k, t) and "
            "have that recorded",
        )
        self.spread, self.tv_bound = spread, tv_bound


@dataclass(frozen=True, slots=True, eq=False)
class Coherence:
    """How far a separate P(z|k) is from the one implied.

    Attributes:
        log_kappa: log κ(k), shape (…, K); NaN for keys of prior or likelihood zero, which do not matter.
        spread: max − min of log κ over the keys that matter, shape (…), in nats.
        tv_bound: tanh(spread/4): no posterior moves by more than that in total variation (sharp for two keys).
    """

    log_kappa: Float[ndarray, "*batch K"]
    spread: Float[ndarray, "*batch"]
    tv_bound: Float[ndarray, "*batch"]


def coherence(log_prior_key: Logs, log_prior_task: Logs, log_likelihood: Logs, log_key_likelihood: Logs) -> Coherence:
    """Compare P(z|k), given as logarithms of shape (…, K), with Σ_t π(t|k) P(z|k, t).

    A key whose separate likelihood is above 0 while the implied one is 0 (or the other way about) has spread inf.

    Example:
        >>> import numpy as np
        >>> half = np.log([0.5, 0.5])
        >>> found = coherence(half, np.stack([half, half]), np.log([[1, 1], [0.1, 0.1]]), np.log([1.0, 1.0]))
        >>> round(float(found.spread), 12), round(float(found.tv_bound), 12)
        (2.302585092994, 0.519493853296)
    """
    implied = log_sum(log_prior_task + log_likelihood)
    log_kappa = log_ratio(log_key_likelihood, implied)
    log_kappa = np.where(np.isneginf(log_prior_key), np.nan, log_kappa)
    known = ~np.isnan(log_kappa)
    highest = np.where(known, log_kappa, -np.inf).max(axis=-1)
    lowest = np.where(known, log_kappa, np.inf).min(axis=-1)
    with np.errstate(invalid="ignore"):
        spread = np.where(highest == lowest, 0.0, np.maximum(highest - lowest, 0.0))
    return Coherence(log_kappa, spread, np.tanh(spread / 4))


def refuse_incoherent(found: Coherence, *, tolerance: float, name: str = "key_likelihood") -> None:
    """Refuse a spread above `tolerance` nats.

    Raises:
        IncoherentLikelihoodError: With the largest spread of the batch and its bound.
    """
    if found.spread.size and float(found.spread.max()) > tolerance:
        raise IncoherentLikelihoodError(name, float(found.spread.max()), float(found.tv_bound.max()))
