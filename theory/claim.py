"""What a machine-checked claim is, and how z3 and sympy judge one.

Three things are asked of every claim: it is proved; its hypotheses can hold (so it is not vacuously true); and a
variant that is false on purpose is refuted (so that the check can fail).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Claim", "Verdict", "always", "exists", "identity", "judge"]

TIMEOUT_MS = 20_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one claim."""

    verdict: str  # "proved", "refuted" or "unknown"
    hypotheses_sat: bool
    false_variant_refuted: bool

    @property
    def good(self) -> bool:
        """All three asked for."""
        return self.verdict == "proved" and self.hypotheses_sat and self.false_variant_refuted


@dataclass(frozen=True, slots=True)
class Claim:
    """A named statement: where it is proved by hand, and what judges it."""

    name: str
    document: str
    statement: str
    check: Callable[[], Verdict]


def judge(claim: Claim) -> Verdict:
    """Run the check of a claim."""
    return claim.check()


def _z3(*formulas: Any) -> str:
    """`sat`, `unsat` or `unknown`."""
    import z3

    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*formulas)
    return str(solver.check())


def always(hypotheses: list[Any], conclusion: Any, *, false: Any) -> Verdict:
    """Hypotheses ⇒ conclusion, for all values; `false` is a conclusion that does not follow."""
    import z3

    verdict = {"unsat": "proved", "sat": "refuted"}.get(_z3(*hypotheses, z3.Not(conclusion)), "unknown")
    return Verdict(verdict, _z3(*hypotheses) == "sat", _z3(*hypotheses, z3.Not(false)) == "sat")


def exists(hypotheses: list[Any], witness: Any, *, false: Any) -> Verdict:
    """Some values meet hypotheses and witness; together with `false` (a hypothesis more) none do."""
    verdict = {"sat": "proved", "unsat": "refuted"}.get(_z3(*hypotheses, witness), "unknown")
    return Verdict(verdict, _z3(*hypotheses) == "sat", _z3(*hypotheses, witness, false) == "unsat")


def identity(left: Any, right: Any, *, false: Any, point: Mapping[Any, Any]) -> Verdict:
    """Two expressions are one rational function; `false` is another right side, and it differs at `point`.

    The hypotheses of an identity are that its denominators are not zero; `point` shows that they can be met.
    """
    import sympy

    difference = sympy.cancel(sympy.together(left - right))
    verdict = "proved" if difference == 0 else "refuted" if difference.is_Rational else "unknown"
    at_left, at_right, at_false = (sympy.nsimplify(sympy.sympify(x).subs(point)) for x in (left, right, false))
    defined = all(value.is_finite for value in (at_left, at_right, at_false))
    return Verdict(verdict, bool(defined and sympy.simplify(at_left - at_right) == 0), bool(at_left != at_false))
