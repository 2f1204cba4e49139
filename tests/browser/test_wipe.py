"""The wipe between two images in a real browser."""

from pathlib import Path

import numpy as np
import pytest

import vnlem


@pytest.mark.parametrize("width", [1400, 390])
def test_dragging_moves_the_edge(browser, tmp_path: Path, width: int) -> None:
    page_path = tmp_path / "wipe.html"
    vnlem.compare_view(np.zeros((64, 96)), np.ones((64, 96)), contrast=(0, 1), width=384).save(page_path)
    requests: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 700})
    page.on("request", lambda request: requests.append(request.url))
    page.goto(page_path.as_uri())
    box = page.locator("input").bounding_box()
    assert box["width"] <= width
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.25 * box["width"], middle)
    page.mouse.up()
    edge = page.locator("input").evaluate("e => parseFloat(e.parentNode.style.getPropertyValue('--edge'))")
    assert edge == pytest.approx(25, abs=4)
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    page.close()
