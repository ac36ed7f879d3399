"""Shares in the section on answers as text stay between 0 and 100 %, however few the families."""

import re
from types import SimpleNamespace

from latentkt.report.sections import trapqa
from tests import result_tables


def test_no_interval_of_a_share_leaves_its_range() -> None:
    table = result_tables.trapqa()
    few = table["family"].drop_duplicates().iloc[:2]
    chosen = table[table["family"].isin(few)].copy()
    chosen.loc[chosen["family"] == few.iloc[0], "answer"] = "correct"  # two families that differ: Student's t is wide
    section = trapqa.section(SimpleNamespace(tables={"trapqa": chosen}, has=lambda name: name == "trapqa", identity={}))
    assert section is not None
    shares = [
        (int(low.replace("−", "-")), int(high))
        for finding in section.findings
        for low, high in re.findall(r"% \[([−-]?\d+), (\d+)\]", finding.text)
    ]
    assert shares
    assert all(0 <= low <= high <= 100 for low, high in shares)
