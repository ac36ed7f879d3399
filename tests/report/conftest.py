"""One run and its page, drawn once for all tests of the report."""

from __future__ import annotations

import pytest

from latentkt.report.page import render
from latentkt.results import Run, load_run
from tests import result_tables


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> Run:
    return load_run(result_tables.write_run(tmp_path_factory.mktemp("report") / "run"))


@pytest.fixture(scope="session")
def page(run) -> str:
    return render(run)
