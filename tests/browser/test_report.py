"""The report in a real browser, opened from the disk."""

from urllib.parse import quote

import pytest

from vnlem.bench.datasets import Item
from vnlem.bench.protocols import Case
from vnlem.bench.report import write_report
from vnlem.bench.results import Row
from vnlem.bench.runner import Outcome, write_summary
from vnlem.bench.variants import NOISY, parse_variants

SECOND = "Möbel/image 2 ß.png"


def gains(page):
    texts = page.locator("#thumbnails .thumbnail span:last-child").all_text_contents()
    return [float(text.replace("\N{MINUS SIGN}", "-")) for text in texts]


def shown_image(page):
    return page.locator("#viewer h3").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_opens_without_a_complaint_without_network_and_fits_its_window(visit, width, scheme):
    seen = visit(width=width, scheme=scheme)
    assert seen.complaints == []
    assert all(address.startswith(("file:", "data:")) for address in seen.requests)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.page.locator("#table tbody tr").count() > 7
    assert seen.page.locator("#distribution-chart svg").count() == 1
    assert seen.page.locator("#category-chart svg").count() >= 1
    assert "broken.png" in seen.page.locator("#problem-list").inner_text()
    background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 23, 28)") is (scheme == "dark")


def test_the_slider_wipes_with_the_keyboard_and_with_the_mouse(visit):
    page = visit().page
    figure = page.locator(".wipe")
    at = "element => element.style.getPropertyValue('--at')"
    assert figure.evaluate(at) == "50%"
    page.locator("#wipe").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert figure.evaluate(at) == "55%"
    box = figure.bounding_box()
    page.mouse.click(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
    assert abs(float(figure.evaluate(at).rstrip("%")) - 20) <= 2
    clip = page.locator(".wipe .left").evaluate("element => getComputedStyle(element).clipPath")
    assert "80%" in clip or "79%" in clip or "81%" in clip


def test_both_pictures_of_the_wipe_and_the_errors_are_there(visit):
    page = visit().page
    page.locator("#viewer").scroll_into_view_if_needed()
    page.wait_for_function(
        "[...document.querySelectorAll('#viewer img')].every((i) => i.complete && i.naturalWidth === 64)"
    )
    assert page.locator(".wipe img").count() == 2
    assert page.locator(".errors .error").count() == 3


def test_sorting_sorts_the_gallery(visit):
    page = visit().page
    assert gains(page) == sorted(gains(page), reverse=True)
    assert len(set(gains(page))) > 1
    page.select_option("#sort", "gain-up")
    assert gains(page) == sorted(gains(page))
    page.select_option("#sort", "name")
    names = page.locator("#thumbnails .thumbnail").evaluate_all("all => all.map((b) => b.dataset.image)")
    assert names == sorted(names)
    page.select_option("#category", "flowers")
    assert page.locator("#thumbnails .thumbnail").count() == 3


def test_the_table_of_tests_sorts_by_its_headings(visit):
    page = visit().page
    heading = page.locator("#tests-table th button", has_text="mean difference")
    heading.click()
    assert page.locator("#tests-table th[aria-sort='descending']").count() == 1
    page.locator("#tests-table th button", has_text="mean difference").click()
    assert page.locator("#tests-table th[aria-sort='ascending']").count() == 1


def test_a_deep_link_shows_its_image_condition_and_pictures(visit):
    page = visit(f"#image={quote(SECOND)}&case=awgn-40&left=noisy&right=nlm").page
    assert shown_image(page) == SECOND
    assert page.locator("#case").input_value() == "awgn-40"
    assert page.locator(".wipe .name.l").inner_text() == "noisy"
    assert page.locator(".wipe .name.r").inner_text() == "nlm"
    assert page.locator("#thumbnails [aria-selected='true']").get_attribute("data-image") == SECOND
    box = page.locator(".wipe").bounding_box()
    assert -box["height"] < box["y"] < 900


def test_the_address_follows_the_image_and_leads_back_to_it(visit):
    page = visit().page
    page.locator(f"#thumbnails [data-image='{SECOND}']").click()
    link = "#" + page.url.partition("#")[2]
    assert shown_image(visit(link).page) == SECOND


@pytest.mark.parametrize(
    "link", ["#image=nowhere.png", "#image=%E0%A4%A", "#case=x&measure=y&right=z", "#=&&"]
)
def test_a_link_to_something_that_is_not_there_shows_the_usual_page(visit, link):
    seen = visit(link)
    assert seen.complaints == []
    assert seen.page.locator(".wipe img").count() == 2


def test_the_gallery_can_be_used_with_the_keyboard_alone(visit):
    page = visit().page
    page.locator("#thumbnails [tabindex='0']").focus()
    page.keyboard.press("Home")
    first = shown_image(page)
    page.keyboard.press("ArrowRight")
    second = shown_image(page)
    assert first != second
    assert page.evaluate("document.activeElement.dataset.image") == second
    assert page.locator("#thumbnails [tabindex='0']").count() == 1
    page.keyboard.press("k")
    assert shown_image(page) == first
    page.keyboard.press("2")
    assert page.locator(".wipe .name.r").inner_text() == "noisy"


def test_another_measure_and_condition_redraw_the_page(visit):
    seen = visit()
    page = seen.page
    before = page.locator("#table").inner_text()
    page.select_option("#case", "awgn-40")
    assert page.locator("#table").inner_text() != before
    for measure in page.locator("#measure option").evaluate_all("all => all.map((o) => o.value)"):
        page.select_option("#measure", measure)
    assert seen.complaints == []


def test_hovering_over_a_point_shows_its_image_and_a_click_opens_it(visit):
    page = visit().page
    page.locator("#scatter").scroll_into_view_if_needed()
    point = page.locator("#scatter-chart svg circle").nth(4)
    box = point.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.wait_for_selector("#preview strong")
    name = page.locator("#preview strong").inner_text()
    page.mouse.click(box["x"] + 3, box["y"] + 3)
    assert shown_image(page) == name


def test_the_theme_can_be_switched_by_hand(visit):
    page = visit(scheme="light").page
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    assert page.locator("#theme").inner_text() == "Light"


def test_a_report_of_two_thousand_images_asks_only_for_thumbnails_in_sight(visit, tmp_path):
    case = Case("awgn", 0, 25.0)
    (nlm,) = parse_variants(["nlm"], "awgn")
    items = [Item(f"{k:04d}.png", "", f"c{k % 5}", k) for k in range(2000)]
    outcome = Outcome(items, [case], [nlm], provenance={"folder": "x", "vnlem": "0", "started": "2026"})
    outcome.provenance["pictures"] = True
    for item in items:
        for label, hash_, gain in ((NOISY, NOISY, 0), ("nlm", nlm.hash, item.index % 83 / 10)):
            measures = dict.fromkeys(case.measures, 0.5) | {"psnr": 20.0 + gain}
            row = Row(item.name, "", case, label, "", hash_, 1, "", 8, 8, 25.0, measures, 1.0, 1.0)
            outcome.rows[item.name, case.name, hash_] = row
    write_report(outcome, write_summary(outcome, tmp_path), tmp_path)
    seen = visit(page=tmp_path / "report.html")
    assert seen.page.locator("#thumbnails .thumbnail").count() == 2000
    asked = [address for address in seen.requests if "thumbnail.jpg" in address]
    assert len(asked) < 500
