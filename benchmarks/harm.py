"""Does the blind default harm an image? Photographs, patterns and backgrounds, with little noise or none.

    python benchmarks/harm.py DATA --processes 16 --csv harm.csv

DATA holds `categories`, `kodak24_gray`, `bsd68`, `set12` and `colour`. White noise of sigma 0, 2, 5, 10 and
20 is added to every photograph, rounded and clipped to uint8; `vnlem.denoise(noisy)` is compared with the
input and with the call with sigma given. Text, lines, a halftone, a zone plate, a weave, photon counts on
empty backgrounds and photographs with painted borders are generated here. Prints one line per set and noise
level, the worst cases, and pass or FAIL for every limit.
"""

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import vnlem
from vnlem.bench.sources import sources_hash

SETS = ("categories", "kodak24_gray", "bsd68", "set12", "colour")
SIGMAS = (0, 2, 5, 10, 20)
PATTERN_SIGMAS = (0, 2, 5, 15)
DRAWS = 20
SIDE = 384  # of the generated pictures


class Case(NamedTuple):
    """An image to denoise, and its reference."""

    group: str
    name: str
    sigma: float
    make: Callable[[], tuple[np.ndarray, np.ndarray]]  # -> clean, noisy
    told: dict[str, Any]  # the noise, as a user who knows it would give it


class Row(NamedTuple):
    """PSNR of a case in dB."""

    group: str
    name: str
    sigma: float
    noisy: float
    blind: float
    told: float
    words: str


def main() -> None:
    """Parse the options, run the cases, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the sets of images")
    parser.add_argument("--sets", default=",".join(SETS), help="sets of photographs, by commas")
    parser.add_argument("--sigmas", default=",".join(map(str, SIGMAS)))
    parser.add_argument("--every", type=int, default=1, help="take every n-th photograph")
    parser.add_argument("--profile", default="fast", choices=("best", "quality", "balanced", "fast"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-patterns", action="store_true", help="photographs only")
    parser.add_argument("--csv", type=Path, help="write every case here")
    options = parser.parse_args()
    sigmas = [float(s) for s in options.sigmas.split(",")]
    cases = list(photographs(options.data, [s for s in options.sets.split(",") if s], sigmas, options.every))
    if not options.no_patterns:
        cases += [*patterns(), *backgrounds(), *borders(options.data)]
    print(f"sources {sources_hash()[:12]}, profile {options.profile}, {len(cases)} cases", flush=True)
    rows = measured_all(partial(measured, profile=options.profile), cases, options.processes, options.csv)
    report(rows)
    sys.exit(0 if judged(rows) else 1)


def measured_all(
    measure: Callable[[Any], Any], cases: list[Any], processes: int, table: Path | None
) -> list[Any]:
    """The rows of all cases, written to a table if one is named."""
    with ProcessPoolExecutor(processes) as pool:
        rows = list(pool.map(measure, cases, chunksize=2))
    if table:
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(rows[0]._fields)
            writer.writerows(rows)
    return rows


def measured(case: Case, profile: str) -> Row:
    """Denoise a case with estimated and with given noise."""
    clean, noisy = case.make()
    axis = -1 if clean.ndim == 3 else None
    call = partial(vnlem.denoise, profile=profile, channel_axis=axis, workers=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blind, info = call(noisy, return_info=True)
        told = noisy if case.told.get("sigma") == 0 else call(noisy, **case.told)
    words = info.noise.describe() if info.noise is not None else ""
    levels = (psnr(clean, image) for image in (noisy, blind, told))
    return Row(case.group, case.name, case.sigma, *levels, words)


def psnr(clean: np.ndarray, image: np.ndarray) -> float:
    """PSNR in dB for a peak of 255; 99 if nothing differs."""
    error = float(np.mean((clean - np.asarray(image, float)) ** 2))
    return min(99.0, 10 * np.log10(255**2 / error)) if error else 99.0


def white(clean: np.ndarray, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Clean image, and the same with white noise as bytes."""
    noise = np.random.default_rng(seed).normal(0, 1, clean.shape)
    return clean, np.clip(np.round(clean + sigma * noise), 0, 255).astype(np.uint8)


def opened(path: Path, colour: bool) -> np.ndarray:
    """A picture as numbers from 0 to 255."""
    return np.asarray(Image.open(path).convert("RGB" if colour else "L"), float)


def photographs(data: Path, sets: list[str], sigmas: list[float], every: int) -> Iterator[Case]:
    """Every photograph at every noise level."""
    for folder in sets:
        for number, path in enumerate(sorted((data / folder).rglob("*.png"))[::every]):
            for sigma in sigmas:
                make = partial(_photograph, path, folder == "colour", sigma, 1000 + number)
                yield Case(folder, path.stem, sigma, make, {"sigma": sigma})


def _photograph(path: Path, colour: bool, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return white(opened(path, colour), sigma, seed)


def patterns() -> Iterator[Case]:
    """Pages of text and regular patterns, which are structure at the highest frequencies."""
    for number, make in enumerate(PATTERNS):
        for sigma in PATTERN_SIGMAS:
            made = partial(_pattern, make, sigma, 50 + number)
            yield Case("patterns", make.__name__, sigma, made, {"sigma": float(sigma)})


def _pattern(make: Callable[[], np.ndarray], sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return white(make(), sigma, seed)


def text() -> np.ndarray:
    """A page in letters of 9 to 14 pixels."""
    page = Image.new("L", (SIDE, SIDE), 234)
    draw = ImageDraw.Draw(page)
    words = ["noise", "is", "everywhere", "and", "structure", "somewhere", "the", "quick", "brown", "fox"]
    rng = np.random.default_rng(3)
    y = 6
    while y < SIDE - 8:
        size = int(rng.integers(9, 15))
        draw.text((8, y), " ".join(rng.permutation(words)), fill=int(rng.integers(10, 60)), font=_font(size))
        y += size + 4
    return np.asarray(page, float)


def small_print() -> np.ndarray:
    """A page without margins, in letters of 11 pixels."""
    page = Image.new("L", (SIDE, SIDE), 250)
    rng = np.random.default_rng(4)
    for y in range(0, SIDE, 14):
        letters = "".join(rng.choice(list("abcdefghijklmnop ABC 0123,."), SIDE // 3))
        ImageDraw.Draw(page).text((2, y), letters, fill=10, font=_font(11))
    return np.asarray(page, float)


def tiny_print(paper: int = 250) -> np.ndarray:
    """Lines of letters of 8 pixels, so close that no block of the page is empty."""
    page = Image.new("L", (SIDE, SIDE), paper)
    rng = np.random.default_rng(5)
    for y in range(2, SIDE, 9):
        letters = "".join(rng.choice(list("abcdefghijklmnop ABC 0123,."), SIDE // 3))
        ImageDraw.Draw(page).text((2, y), letters, fill=20, font=_font(8))
    return np.asarray(page, float)


def tiny_print_on_white() -> np.ndarray:
    """The same on white paper, whose noise is clipped."""
    return tiny_print(255)


def line_drawing(seed: int = 6) -> np.ndarray:
    """Thin lines between random points, with smooth edges, as in a chart."""
    rng = np.random.default_rng(seed)
    page = Image.new("L", (4 * SIDE, 4 * SIDE), 255)
    points = rng.uniform(0.05, 0.95, (80, 2)) * 4 * SIDE
    for number, point in enumerate(points):
        for other in points[rng.integers(0, len(points), 3)]:
            ImageDraw.Draw(page).line((*point, *other), fill=number % 2 * 60, width=2)
    return np.asarray(page.resize((SIDE, SIDE), Image.Resampling.BOX), float)


def fingerprint() -> np.ndarray:
    """Ridges of seven pixels in changing directions."""
    y, x = np.mgrid[:SIDE, :SIDE]
    bend = 9 * np.sin(x / 70) * np.cos(y / 50)
    return np.round(127.5 + 107 * np.sin(0.9 * np.hypot(y - 120, x - 130) + bend))


def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def screenshot() -> np.ndarray:
    """Windows of one grey each, with buttons and text."""
    page = Image.new("L", (SIDE, SIDE), 240)
    draw = ImageDraw.Draw(page)
    for number in range(5):
        left, top = 20 + 60 * (number % 3), 15 + 70 * number
        draw.rectangle((left, top, left + 210, top + 62), fill=250 - 20 * number, outline=90)
        draw.rectangle((left, top, left + 210, top + 13), fill=70 + 20 * number)
        draw.text((left + 4, top + 1), f"window {number}", fill=245, font=_font(10))
        for line in range(3):
            draw.text(
                (left + 6, top + 16 + 14 * line),
                "File  Edit  View  values: 3.14 2.72 1.41",
                fill=20,
                font=_font(11),
            )
    return np.asarray(page, float)


def lines() -> np.ndarray:
    """Lines of one pixel in several directions."""
    page = Image.new("L", (SIDE, SIDE), 210)
    draw = ImageDraw.Draw(page)
    for number in range(0, SIDE, 12):
        draw.line((number, 0, number // 2, SIDE // 2), fill=30)
        draw.line((0, SIDE // 2 + number // 2, SIDE, SIDE // 2 + number // 3), fill=60)
        draw.line((SIDE - number, SIDE // 2, SIDE, number // 2), fill=20)
    return np.asarray(page, float)


def halftone() -> np.ndarray:
    """Dots on a rotated grid, sized by the brightness."""
    y, x = np.mgrid[:SIDE, :SIDE]
    grey = 0.2 + 0.6 * (x + y) / (2 * SIDE)
    u, v = (x * 0.8 + y * 0.6) * 2 * np.pi / 5, (y * 0.8 - x * 0.6) * 2 * np.pi / 5
    return np.round(20 + 215 / (1 + np.exp(-6 * (np.cos(u) + np.cos(v) - 4 * (grey - 0.5)))))


def zone_plate() -> np.ndarray:
    """Every frequency in every direction."""
    y, x = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    return np.round(127.5 + 100 * np.cos(np.pi * 0.9 * (x**2 + y**2) / SIDE))


def weave() -> np.ndarray:
    """Threads that cross."""
    y, x = np.mgrid[:SIDE, :SIDE]
    over = (x // 4 + y // 4) % 2 == 0
    threads = np.where(over, np.cos(np.pi * (x % 4 - 1.5) / 5), np.cos(np.pi * (y % 4 - 1.5) / 5))
    return np.round(60 + 130 * threads + 20 * np.sin(x / 40) * np.cos(y / 50))


PATTERNS = (
    *(text, lines, halftone, zone_plate, weave, screenshot),
    *(small_print, tiny_print, tiny_print_on_white, fingerprint, line_drawing),
)


def backgrounds() -> Iterator[Case]:
    """Photon counts on a background of exact zeros, twenty draws each; the given model is the gain."""
    for seed in range(DRAWS):
        for name, photons, gain in (
            ("filaments", 0.5, 1.0),
            ("cells", 6.0, 1.0),
            ("cells, gain 8", 12.0, 8.0),
        ):
            make = partial(_counts, name.startswith("cells"), photons, gain, seed)
            yield Case("zero background", name, photons, make, {"gain": gain})


def _counts(cells: bool, photons: float, gain: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and counts of structures that cover a part of the field; zero elsewhere."""
    rng = np.random.default_rng([seed, int(cells)])
    y, x = np.mgrid[:256, :256]
    clean = np.zeros((256, 256))
    for _ in range(14):
        cy, cx = rng.uniform(20, 236, 2)
        if cells:
            radius = rng.uniform(10, 24)
            clean += photons * rng.uniform(0.5, 1.5) * (np.hypot(y - cy, x - cx) < radius)
        else:
            angle = rng.uniform(0, np.pi)
            away = np.abs((y - cy) * np.cos(angle) - (x - cx) * np.sin(angle))
            clean += 2 * photons * np.exp(-0.5 * (away / 2.0) ** 2)
    clean[clean < 0.02 * photons] = 0
    return gain * clean, gain * rng.poisson(clean).astype(float)


def borders(data: Path) -> Iterator[Case]:
    """Noisy photographs with a border of one grey, or a round field of view."""
    paths = sorted((data / "set12").glob("*.png"))
    for seed in range(DRAWS if paths else 0):
        for name in ("border", "round field"):
            make = partial(_bordered, paths[seed % len(paths)], name == "border", seed)
            yield Case("borders", f"{name} {seed}", 15, make, {"sigma": 15.0})


def _bordered(path: Path, border: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    clean, noisy = white(opened(path, False)[:256, :256], 15, seed)
    y, x = np.mgrid[: clean.shape[0], : clean.shape[1]] - 127.5
    outside = np.maximum(np.abs(y), np.abs(x)) > 100 if border else np.hypot(y, x) > 112
    value = 128 if border else 0
    return np.where(outside, value, clean), np.where(outside, value, noisy).astype(np.uint8)


def report(rows: list[Row]) -> None:
    """One line per group and noise level, then the worst cases."""
    print(
        f"{'':18s}{'sigma':>6s}{'n':>5s}{'noisy':>8s}{'blind':>8s}{'given':>8s}{'worse':>7s}{'loss':>7s}{'q99':>7s}{'worst':>7s}"
    )
    for group, sigma in dict.fromkeys((row.group, row.sigma) for row in rows):
        some = [row for row in rows if (row.group, row.sigma) == (group, sigma)]
        means = [np.mean([getattr(row, name) for row in some]) for name in ("noisy", "blind", "told")]
        loss = losses(some)
        worse = sum(row.blind < row.noisy - 0.1 for row in some if row.sigma)
        line = f"{group:18s}{sigma:6g}{len(some):5d}" + "".join(f"{mean:8.2f}" for mean in means)
        if sigma:
            line += f"{worse:7d}{loss.mean():7.2f}{np.quantile(loss, 0.99):7.2f}{loss.max():7.2f}"
        else:
            blind = [row.blind for row in some]
            line += f"   least {min(blind):.1f}, median {np.median(blind):.1f}"
        print(line)
    print("largest losses against a given sigma:")
    for row in sorted((row for row in rows if row.sigma), key=lambda row: row.blind - row.told)[:24]:
        change = f"{row.noisy:.2f} -> {row.blind:.2f}, told {row.told:.2f}"
        print(f"  {row.group} {row.name}, sigma {row.sigma:g}: {change}; {row.words}")
    print("clean images that changed the most:")
    for row in sorted((row for row in rows if not row.sigma), key=lambda row: row.blind)[:16]:
        print(f"  {row.group} {row.name}: {row.blind:.2f}; {row.words}")


def losses(rows: list[Row]) -> np.ndarray:
    """Loss against a given sigma, in dB."""
    return np.array([row.told - row.blind for row in rows])


def judged(rows: list[Row]) -> bool:
    """Print the limits, and whether they are met."""
    made = ("patterns", "zero background", "borders")
    photographs = [row for row in rows if row.group not in made]
    noisy, clean = ([row for row in photographs if bool(row.sigma) == wanted] for wanted in (True, False))
    pattern = [row for row in rows if row.group == "patterns"]
    others = [row for row in rows if row.group in made[1:]]
    checks: list[tuple[bool, str]] = []
    if noisy:
        loss = losses(noisy)
        worse = [row for row in noisy if row.blind < row.noisy - 0.1]
        checks += [
            (not worse, f"photographs worse than their input by more than 0.1 dB: {len(worse)} (0)"),
            (loss.mean() <= 0.05, f"mean loss {loss.mean():.3f} dB (0.05)"),
            (
                np.quantile(loss, 0.99) <= 0.3,
                f"99 % quantile of the loss {np.quantile(loss, 0.99):.2f} dB (0.3)",
            ),
            (loss.max() <= 1.0, f"worst loss {loss.max():.2f} dB (1.0)"),
        ]
    if clean:
        least, median = min(row.blind for row in clean), float(np.median([row.blind for row in clean]))
        checks.append(
            (
                least >= 42 and median >= 55,
                f"clean photographs: least {least:.1f} dB (42), median {median:.1f} (55)",
            )
        )
    if pattern:
        some = [row for row in pattern if row.sigma]
        worse = [row for row in some if row.blind < row.noisy]
        change = max(255 * 10 ** (-row.blind / 20) for row in pattern if not row.sigma)
        checks += [
            (not worse, f"patterns worse than their input: {len(worse)} (0)"),
            (losses(some).mean() <= 0.5, f"patterns, mean loss {losses(some).mean():.2f} dB (0.5)"),
            (change < 0.5, f"clean patterns change by rms {change:.2f} (0.5)"),
        ]
    if others:
        checks.append(
            (
                losses(others).max() <= 0.5,
                f"backgrounds and borders, worst loss {losses(others).max():.2f} dB (0.5)",
            )
        )
    for good, words in checks:
        print(f"{'pass' if good else 'FAIL'}  {words}")
    return all(good for good, _ in checks)


if __name__ == "__main__":
    main()
