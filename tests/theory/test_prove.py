"""The machine proofs: all claims hold, and the prover can say no."""

from __future__ import annotations

import json

import pytest

z3 = pytest.importorskip("z3", reason="the extra 'theory' is not installed")
sympy = pytest.importorskip("sympy", reason="the extra 'theory' is not installed")

from theory import claims_identities, prove  # noqa: E402
from theory.claim import Claim, always, exists, identity  # noqa: E402


def test_all_claims_are_proved(capsys):
    assert prove.main(["--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(prove.all_claims()) >= 50
    for row in rows:
        assert row == {
            "name": row["name"],
            "verdict": "proved",
            "hypotheses_sat": True,
            "false_variant_refuted": True,
        }
    assert len({row["name"] for row in rows}) == len(rows)


def test_table_and_names(capsys):
    assert prove.main(["tv-floor", "critical-key"]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 claims proved" in out and "tv-floor" in out and "can hold" in out
    assert prove.main(["no-such-claim"]) == 2
    assert "no claims named no-such-claim" in capsys.readouterr().err


x, y = z3.Reals("x y")
a, b = sympy.symbols("a b", positive=True)
POINT = {a: sympy.Rational(1, 3), b: sympy.Rational(1, 5)}
FAULTY = {
    "false claim": lambda: always([x > 0], x > 1, false=x > 2),
    "vacuous claim": lambda: always([x > 0, x < 0], x > 1, false=x > 2),
    "true variant": lambda: always([x > 0], x + 1 > 0, false=x + 2 > 0),
    "no witness": lambda: exists([x > 0], x < 0, false=x > 1),
    "variant with a witness": lambda: exists([x > 0], x < 1, false=x > 0),
    "wrong identity": lambda: identity(a + b, a - b, false=a, point=POINT),
    "identity with a true variant": lambda: identity(a + b, b + a, false=b + a, point=POINT),
    "identity outside its domain": lambda: identity(
        1 / (a - a.subs(POINT)), 1 / (a - a.subs(POINT)), false=a, point=POINT
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_claim_is_not_accepted(name, monkeypatch, capsys):
    claim = Claim(name, "none.md", name, FAULTY[name])
    assert not claim.check().good
    monkeypatch.setattr(prove, "all_claims", lambda: (claim,))
    assert prove.main([]) == 1
    assert "0 of 1 claims proved" in capsys.readouterr().out


def test_undecided_is_not_proved(monkeypatch):
    from theory import claim

    monkeypatch.setattr(claim, "_z3", lambda *_: "unknown")
    assert always([x > 0], x > 0, false=x > 1).verdict == "unknown"


def test_missing_packages_are_named(monkeypatch, capsys):
    monkeypatch.setattr(prove, "_missing", lambda: ["z3"])
    assert prove.main([]) == 2 and "latentkt[theory]" in capsys.readouterr().err


def test_points_are_generic():
    """The point at which a false variant must differ has no two equal coordinates."""
    symbols = sympy.symbols("u v w")
    assert len(set(claims_identities._point(*symbols).values())) == 3
