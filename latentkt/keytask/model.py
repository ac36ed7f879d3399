"""The latent key–task model: priors, one likelihood, emissions; posterior and predictive in log space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike

from latentkt.errors import InputError
from latentkt.keytask.checks import as_array, check_model, check_nonnegative
from latentkt.keytask.coherence import Coherence, coherence, refuse_incoherent
from latentkt.keytask.logspace import Logs, log, log_sum

__all__ = ["KeyTaskModel"]

_ARRAYS = ("prior_key", "prior_task", "likelihood", "emission")


@dataclass(frozen=True, slots=True, eq=False)
class KeyTaskModel:
    """K keys, T tasks, Y answers; a batch of prompts along any leading axes, which broadcast against each other.

    The only primitive likelihood is L(k, t) = P(z | k, t); P(z | k) and the posterior follow from it, so the model
    is coherent by construction. Logarithms are natural; a mass of zero is -inf.

    Attributes:
        log_prior_key: log π(k), shape (…, K).
        log_prior_task: log π(t | k), shape (…, K, T).
        log_likelihood: log P(z | k, t) up to a constant per prompt, shape (…, K, T).
        log_emission: log P(y | z; k, t), shape (…, K, T, Y).
        rescaled: Where the model was made from an incoherent P(z | k) with `incoherent="rescale"`: by how much.

    Example:
        >>> flat = [[0.3, 0.7], [0.2, 0.8]]
        >>> says = [[[0, 1, 0], [0, 0, 1]], [[0, 0, 1], [1, 0, 0]]]
        >>> model = KeyTaskModel.from_probabilities([0.25, 0.75], flat, [[1, 1], [1, 1]], says)
        >>> model.predictive().round(6).tolist()
        [0.6, 0.075, 0.325]
    """

    log_prior_key: Float[ndarray, "*batch K"]
    log_prior_task: Float[ndarray, "*batch K T"]
    log_likelihood: Float[ndarray, "*batch K T"]
    log_emission: Float[ndarray, "*batch K T Y"]
    rescaled: Coherence | None = None

    @classmethod
    def from_probabilities(
        cls,
        prior_key: ArrayLike,
        prior_task: ArrayLike,
        likelihood: ArrayLike,
        emission: ArrayLike,
        *,
        key_likelihood: ArrayLike | None = None,
        incoherent: Literal["refuse", "rescale"] = "refuse",
        tolerance: float = 1e-9,
    ) -> KeyTaskModel:
        """Make a model from probabilities.

        Args:
            prior_key: π(k), shape (…, K); rows sum to 1.
            prior_task: π(t | k), shape (…, K, T); rows sum to 1.
            likelihood: P(z | k, t), shape (…, K, T), 0 or more; only ratios matter.
            emission: P(y | z; k, t), shape (…, K, T, Y); rows sum to 1.
            key_likelihood: P(z | k) where you hold it separately, shape (…, K). It follows from the rest, so it is
                checked against it.
            incoherent: What to do where it does not agree: refuse, or use the likelihood κ(k) P(z | k, t) that agrees
                with it, and record that in `rescaled`.
            tolerance: Spread of log κ, in nats, that still counts as agreement.

        Raises:
            InputError: Wrong shapes, NaN, negative masses, rows that do not sum to 1, an impossible prompt.
            IncoherentLikelihoodError: `key_likelihood` does not agree.
        """
        given = (prior_key, prior_task, likelihood, emission)
        arrays = {name: as_array(name, value) for name, value in zip(_ARRAYS, given, strict=True)}
        check_model(arrays)
        model = cls(
            log(arrays["prior_key"]), log(arrays["prior_task"]), log(arrays["likelihood"]), log(arrays["emission"])
        )
        return model._with_key_likelihood(key_likelihood, incoherent, tolerance)

    @classmethod
    def from_logs(
        cls,
        log_prior_key: ArrayLike,
        log_prior_task: ArrayLike,
        log_likelihood: ArrayLike,
        log_emission: ArrayLike,
    ) -> KeyTaskModel:
        """Make a model from logarithms (masses too small for a float are welcome); the same checks.

        Raises:
            InputError: As in `from_probabilities`; values are named after taking the exponential.
        """
        given = (log_prior_key, log_prior_task, log_likelihood, log_emission)
        logs = {name: as_array(f"log_{name}", value) for name, value in zip(_ARRAYS, given, strict=True)}
        for name, values in logs.items():
            bad = np.isnan(values) | np.isposinf(values)
            if bad.any():
                index = tuple(int(i) for i in np.argwhere(bad)[0])
                raise InputError(
                    f"log_{name}{list(index)} is {values[index]}", expected="the logarithm of a mass: finite or -inf"
                )
        scaled = dict(logs)
        if logs["likelihood"].ndim >= 2 and logs["likelihood"].size:
            top = logs["likelihood"].max(axis=(-2, -1), keepdims=True)
            # The check wants to see which likelihoods are zero; the sign tells, however small the mass.
            scaled["likelihood"] = np.where(np.isfinite(top), np.isfinite(logs["likelihood"]) * 1.0, 0.0)
        probabilities = {name: np.exp(values) for name, values in scaled.items()}
        probabilities["likelihood"] = scaled["likelihood"]
        check_model(probabilities, {name: f"exp(log_{name})" for name in _ARRAYS})
        return cls(logs["prior_key"], logs["prior_task"], logs["likelihood"], logs["emission"])

    def _with_key_likelihood(
        self, key_likelihood: ArrayLike | None, incoherent: Literal["refuse", "rescale"], tolerance: float
    ) -> KeyTaskModel:
        if incoherent not in ("refuse", "rescale"):
            raise InputError("incoherent is not an option", expected="'refuse' or 'rescale'", found=repr(incoherent))
        if key_likelihood is None:
            return self
        separate = as_array("key_likelihood", key_likelihood)
        check_nonnegative("key_likelihood", separate)
        if separate.shape[-1:] != self.log_prior_key.shape[-1:]:
            raise InputError(
                "key_likelihood has the wrong shape",
                expected=f"(…, K) = (…, {self.n_keys})",
                found=separate.shape,
            )
        found = coherence(self.log_prior_key, self.log_prior_task, self.log_likelihood, log(separate))
        if incoherent == "refuse":
            refuse_incoherent(found, tolerance=tolerance)
            return self
        if np.isposinf(found.log_kappa).any():
            refuse_incoherent(found, tolerance=tolerance)  # no finite factor makes P(z|k) out of nothing
        factor = np.where(np.isnan(found.log_kappa), 0.0, found.log_kappa)[..., None]
        return KeyTaskModel(
            self.log_prior_key, self.log_prior_task, self.log_likelihood + factor, self.log_emission, found
        )

    @property
    def n_keys(self) -> int:
        """K."""
        return self.log_prior_key.shape[-1]

    @property
    def n_tasks(self) -> int:
        """T."""
        return self.log_emission.shape[-2]

    @property
    def n_answers(self) -> int:
        """Y."""
        return self.log_emission.shape[-1]

    def log_joint(self) -> Float[ndarray, "*batch K T"]:
        """Log of π(k) π(t | k) L(k, t): prior times likelihood, not normalised."""
        return self.log_prior_key[..., None] + self.log_prior_task + self.log_likelihood

    def log_posterior(self) -> Float[ndarray, "*batch K T"]:
        """Log w(k, t) = log P(k, t | z)."""
        joint = self.log_joint()
        flat = joint.reshape(*joint.shape[:-2], -1)
        return joint - log_sum(flat)[..., None, None]

    def posterior(self) -> Float[ndarray, "*batch K T"]:
        """P(k, t | z)."""
        return np.exp(self.log_posterior())

    def log_predictive(self) -> Logs:
        """Log P(y | z), shape (…, Y)."""
        paths = self.log_posterior()[..., None] + self.log_emission
        return log_sum(paths.reshape(*paths.shape[:-3], -1, paths.shape[-1]), axis=-2)

    def predictive(self) -> Float[ndarray, "*batch Y"]:
        """P(y | z) = Σ P(k, t | z) P(y | z; k, t)."""
        return np.exp(self.log_predictive())
