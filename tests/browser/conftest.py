"""A report to look at and a browser to look at it with."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from vnlem import io
from vnlem.bench.protocols import Case
from vnlem.bench.report import write_report
from vnlem.bench.runner import run_bench, write_summary
from vnlem.bench.variants import parse_variants

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Nothing may be fetched, and a container has no sandbox.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser():
    path = os.environ.get("VNLEM_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail("no Chromium was found; run tests/browser/install.sh, or set VNLEM_BROWSER to its path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory) -> Path:
    """The page of a small run: nine images in three categories, two methods, two noise levels."""
    base = tmp_path_factory.mktemp("report")
    row, column = np.mgrid[:64, :64]
    for k in range(9):
        folder = base / "images" / ("flowers", "faces & co", "Möbel")[k % 3]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = 120 + 60 * np.sin((row + k * column) / (2 + k)) + 40 * (column > 7 * k)
        io.write(folder / f"image {k} ß.png", np.clip(pixels, 0, 255).astype(np.uint8))
    (base / "images" / "broken.png").write_bytes(b"no image")
    out = base / "out"
    cases = [Case("awgn", 0, 15.0), Case("awgn", 0, 40.0)]
    variants = parse_variants(["nlm", "nlm:patch_size=11"], "awgn")
    outcome = run_bench(base / "images", out, cases, variants)
    write_report(outcome, write_summary(outcome, out), out)
    return out / "report.html"


class Visit:
    """A page, its errors and its requests."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)
        page.wait_for_selector("html[data-ready]", timeout=20_000)


@pytest.fixture
def visit(browser: Browser, report: Path):
    """Opens the report, perhaps at a link, in a window of a given width and colour scheme."""
    contexts = []

    def open_page(link="", *, width=1400, scheme="light", page=report) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        return Visit(context.new_page(), page.resolve().as_uri() + link)

    yield open_page
    for context in contexts:
        context.close()
