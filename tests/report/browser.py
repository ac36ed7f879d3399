"""Measure a page in headless Chromium: how wide its elements are, and whether its pictures have painted pixels."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--virtual-time-budget=10000",
]

# A window cannot be narrower than 500 pixels, a frame can: the page is measured inside one.
FRAME = """<!DOCTYPE html><body style="margin:0"><iframe id="page" style="border:0;width:{width}px;height:2000px"
srcdoc="{page}"></iframe><script>{script}</script></body>"""

MEASURE = """
addEventListener("load", async () => {
  const page = document.getElementById("page").contentDocument, view = page.defaultView.innerWidth;
  const name = e => `${e.tagName.toLowerCase()}.${e.className}: ${e.textContent.slice(0, 40)}`;
  const tooWide = [...page.querySelectorAll("body, body *")].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width > view + 0.5 || box.right > view + 0.5 || box.left < -0.5;
  }).map(name);
  const pictures = [];
  for (const image of page.querySelectorAll("img, svg, canvas")) {
    if (image.decode) await image.decode();
    const canvas = document.createElement("canvas"), box = image.getBoundingClientRect();
    canvas.width = Math.round(box.width); canvas.height = Math.round(box.height);
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
    let painted = 0, coloured = 0;
    for (let i = 0; i < data.length; i += 4) {
      const [red, green, blue, opaque] = data.slice(i, i + 4);
      const least = Math.min(red, green, blue), most = Math.max(red, green, blue);
      if (opaque && least < 200) painted++;
      if (opaque && most - least > 60) coloured++;
    }
    pictures.push({alt: image.alt, width: canvas.width, height: canvas.height, painted, coloured});
  }
  const texts = [...page.querySelectorAll("p, li, td, dd, figcaption")];
  const fonts = texts.map(e => parseFloat(getComputedStyle(e).fontSize));
  const result = {view, scroll: page.documentElement.scrollWidth, tooWide, pictures, smallest: Math.min(...fonts)};
  document.body.innerHTML = "<pre id=result></pre>";
  document.getElementById("result").textContent = JSON.stringify(result);
});
"""


def chromium() -> str:
    """The browser; without one the test is skipped, and fails in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        reason = "needs headless Chromium (Debian package `chromium`)"
        if os.environ.get("CI", "").lower() in {"true", "1"}:
            pytest.fail(f"{reason}, and CI is set")
        pytest.skip(reason)
    return found


def measure(page: str, *, width: int, folder: Path) -> dict[str, object]:
    """Widths and painted pixels of a page shown `width` pixels wide."""
    frame = folder / f"frame-{width}.html"
    frame.write_text(FRAME.format(width=width, page=html.escape(page), script=MEASURE), encoding="utf-8")
    command = [
        chromium(),
        *FLAGS,
        f"--user-data-dir={folder / f'profile-{width}'}",
        f"--window-size={max(width, 500)},2000",
    ]
    done = subprocess.run([*command, "--dump-dom", frame.as_uri()], capture_output=True, text=True, timeout=120)
    result = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.S)
    assert result, f"the page was not measured\n{done.stderr[-2000:]}"
    return json.loads(html.unescape(result[1]))
