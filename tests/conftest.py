"""Shared by all tests: one thread, no hub, and where the development data lie."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The development data; a test that needs them is skipped where they are not named, and fails in CI."""
    value = os.environ.get("LATENTKT_DATA")
    if not value:
        pytest.skip("needs the development data: set LATENTKT_DATA to their folder")
    path = Path(value)
    if not path.is_dir():
        pytest.fail(f"LATENTKT_DATA names no folder: {path}")
    return path


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Two threads under load are ten times slower than one."""
    import sys

    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    """In a run that names the development data, a skipped data test is a failure."""
    report = yield
    needs_data = "data_dir" in getattr(item, "fixturenames", ()) or item.get_closest_marker("data") is not None
    if report.skipped and needs_data and os.environ.get("LATENTKT_DATA"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a data test was skipped although LATENTKT_DATA is set"
    return report
