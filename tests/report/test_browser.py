"""The page in a real browser, at the width of a phone and of a desk."""

from __future__ import annotations

import pytest

from tests.report.browser import chromium, measure

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window_and_every_figure_is_painted(page, width, tmp_path):
    found = measure(page, width=width, folder=tmp_path)
    assert found["view"] == width
    assert found["tooWide"] == [] and found["scroll"] <= width
    assert len(found["pictures"]) == page.count("<figure") >= 7
    for picture in found["pictures"]:
        assert picture["width"] > 300, picture
        assert picture["painted"] > 0.01 * picture["width"] * picture["height"], picture
        assert picture["coloured"] > 200, picture
        assert len(picture["alt"]) > 30
    assert found["smallest"] >= 12


def test_a_wide_element_and_an_empty_figure_are_seen(page, tmp_path):
    """The check can fail: a page with a table wider than a phone, and a picture without ink."""
    blank = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='400' height='300'/%3E"
    broken = page.replace("</main>", f'<div style="width:800px">wide</div><img src="{blank}" alt="blank"></main>')
    found = measure(broken, width=390, folder=tmp_path)
    assert any(name.startswith("div") for name in found["tooWide"])
    assert found["pictures"][-1]["painted"] == 0


def test_without_a_browser_the_check_is_skipped_and_fails_in_ci(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="chromium"):
        chromium()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI is set"):
        chromium()
