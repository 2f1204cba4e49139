"""The docs site in a real browser, opened from the disk; `make docs` builds it."""

from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "build" / "docs"
PAGES = (
    "index.html",
    "start.html",
    "choose.html",
    "compare.html",
    "faq.html",
    "citing.html",
    "noise.html",
    "noise-models.html",
    "noise-measured.html",
    "stacks.html",
    "command-line.html",
    "tutorials/index.html",
    "tutorials/confocal.html",
    "tutorials/mri.html",
    "tutorials/photographs.html",
    "tutorials/cluster.html",
    "theory.html",
    "vnlr.html",
    "napari.html",
    "generated/api.html",
    "generated/api/vnlem.denoise.html",
    "generated/support.html",
    "generated/gallery/index.html",
    "generated/gallery/plot_02_rotation.html",
    "troubleshooting.html",
)

pytestmark = pytest.mark.skipif(not SITE.exists(), reason="the site is not built; run make docs first")


CUT_CODE = "[...document.querySelectorAll('article pre')].filter(e => e.scrollWidth > e.clientWidth + 1)"


@pytest.mark.parametrize(
    "name",
    ["start.html", "tutorials/confocal.html", "tutorials/widefield.html", "generated/command-line-help.html"],
)
def test_code_is_read_whole_on_a_laptop(browser, name: str) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto((SITE / name).as_uri())
    assert page.evaluate(f"{CUT_CODE}.map(e => e.innerText.slice(0, 60))") == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_without_complaint_or_network_and_fits_its_window(
    browser, name: str, width: int, scheme: str
) -> None:
    complaints: list[str] = []
    requests: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((SITE / name).as_uri())
    page.wait_for_load_state("networkidle")
    assert complaints == []
    assert all(address.startswith(("file:", "data:")) for address in requests)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    unloaded = (
        "[...document.images].filter(image => image.complete && !image.naturalWidth).map(image => image.src)"
    )
    assert page.evaluate(unloaded) == []
    context.close()
