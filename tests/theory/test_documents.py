"""Every theorem has its document, every document its parts, every claim its place; the mathematics is well formed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "theory"
DOCUMENTS = sorted(FOLDER.glob("[0-9][0-9]-*.md"))
SECTIONS = ["Statement", "Assumptions", "Proof", "Equality case", "Counterexamples to weaker readings"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_document_has_its_parts(path):
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, flags=re.M) == SECTIONS
    for body in re.split(r"^## .*$", text, flags=re.M)[1:]:
        assert len(body.strip()) > 30


@pytest.mark.parametrize("path", [FOLDER / "README.md", *DOCUMENTS], ids=lambda path: path.stem)
def test_mathematics_is_well_formed(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("```") % 2 == 0
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    prose = re.sub(r"`[^`]*`", "", prose)
    for line in prose.splitlines():
        assert line.count("$") % 2 == 0, line
        for formula in re.findall(r"\$([^$]*)\$", line):
            assert formula.count("{") == formula.count("}"), formula
            assert "*" not in formula, f"an asterisk in inline mathematics may be read as emphasis: {formula}"
            assert not re.search(r"\\[!-/:-@\[-`{-~]", formula), f"an escape that Markdown takes for its own: {formula}"
            assert "operatorname" not in formula
            if line.startswith("|"):
                assert "|" not in formula, f"a bar in a table's formula ends the cell: {formula}"


@pytest.mark.parametrize("path", [FOLDER / "README.md", *DOCUMENTS], ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        assert (FOLDER / target).is_file(), target


def test_top_page_judges_every_claim():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "Verdict" not in line]
    verdicts = [line.split(" | ")[1] for line in rows]
    assert set(verdicts) == {"**true**", "**true with repair**", "**false**", "**not mathematics**"} and len(rows) >= 18
    for path in DOCUMENTS:
        assert f"({path.name})" in text


def test_claims_and_documents_name_each_other():
    pytest.importorskip("z3", reason="the extra 'theory' is not installed")
    from theory.prove import all_claims

    claims = all_claims()
    for claim in claims:
        assert f"`{claim.name}`" in (FOLDER / claim.document).read_text(encoding="utf-8"), claim.name
    named = {name for path in DOCUMENTS for part in re.findall(r"\(Machine: ([^)]*)", path.read_text("utf-8"))
             for name in re.findall(r"`([a-zA-Z0-9-]+)`", part)}  # fmt: skip
    assert named <= {claim.name for claim in claims}
    assert f"runs {len(claims)} proofs" in (FOLDER / "README.md").read_text(encoding="utf-8")
