"""The call path of `vnlem.denoise(image)`, as docs/architecture.md shows it."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import vnlem
from vnlem.kernels.cpu import match

PACKAGE = str(Path(vnlem.__file__).parent)
MOST_HOPS = 12
MOST_MODULES = 28


def traced():
    """How often each function of the package was called, and the functions on the way to the first tile."""
    image = np.tile(np.arange(64.0), (64, 1)) + np.random.default_rng(0).normal(0, 5, (64, 64))
    vnlem.denoise(image, profile="fast", workers=1)  # imports
    calls: Counter[str] = Counter()
    road: list[str] = []

    def look(frame, event, _):
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        calls[frame.f_code.co_name] += 1
        if not road and frame.f_code.co_name == "match":
            at = frame
            while at is not None:
                code = at.f_code
                if code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
                    road.insert(0, f"{Path(code.co_filename).stem}.{code.co_name}")
                at = at.f_back

    sys.setprofile(look)
    try:
        vnlem.denoise(image, profile="fast", workers=1)
    finally:
        sys.setprofile(None)
    assert match.match_tile is not None
    return calls, road


def test_a_call_enters_a_device_once_and_makes_planes_once():
    calls, _ = traced()
    assert calls["run_where_asked"] == 1
    assert calls["to_planes"] == 1
    assert calls["make_plan"] == 1
    assert calls["execute"] == 1


def test_the_road_from_the_call_to_a_tile_is_short_and_documented():
    _, road = traced()
    assert road[0] == "api.denoise"
    hops = road[: road.index("ridge.run_passes") + 1]
    assert len(hops) <= MOST_HOPS, hops
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
    shown = page[page.index("## `vnlem.denoise(image)`") :]
    missing = [hop for hop in hops if hop.split(".")[1].lstrip("_") not in shown]
    assert missing == []


def test_importing_nlm_reaches_few_modules():
    code = "import sys, vnlem.methods.nlm; print(*(m for m in sys.modules if m.split('.')[0] == 'vnlem'))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(found.stdout.split()) <= MOST_MODULES, found.stdout


def test_a_call_imports_neither_the_experiment_nor_its_packages():
    code = "import sys, numpy, vnlem; vnlem.denoise(numpy.eye(48)); print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"skimage", "matplotlib", "vnlem.bench", "vnlem.figures", "vnlem.theory", "vnlem.reference"}
    assert heavy.isdisjoint(found.stdout.split())
