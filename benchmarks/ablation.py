"""The ablation of VNLEM on the paper's protocol, as a Markdown table.

    python benchmarks/ablation.py --data ../shared/data/categories --out bench-out/ablation.csv

Images, noise (variance 0.3 of the standardised image, seed 1000 + i for the i-th file in sorted order) and
measures are those of `vnlem bench`, whose results for the same methods are the same numbers.
Results are written image by image; an interrupted run continues where it stopped. Results of other sources
are refused. With `--processes` images are processed in parallel.
"""

import argparse
import csv
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu, wilcoxon
from skimage.restoration import denoise_nl_means

import vnlem
from vnlem.bench import phantoms
from vnlem.bench.datasets import READABLE, Item, find_images
from vnlem.bench.protocols import Case, Scene, measure, scenes
from vnlem.bench.sources import sources_hash

VARIANCE = 0.3
SIGMA = float(np.sqrt(VARIANCE))
MEASURES = ("snr", "psnr", "ssim", "fsim")
# Images in the order 0, 8, 16, ..., 4, 12, ...: the first few cover all categories.
STRIDES = (0, 4, 2, 6, 7, 1, 3, 5)


def methods(workers: int) -> dict[str, Callable[[np.ndarray, float], np.ndarray]]:
    """Row name -> denoiser of an image with noise of a given level."""

    def rotation(**options):
        return lambda z, sigma: vnlem.denoise_vnlem(z, sigma, workers=workers, **options)

    return {
        "NLEM (paper)": lambda z, sigma: vnlem.denoise_nlem(z, sigma, preset="paper", workers=workers),
        "NLEM, 50 nearest, VNLEM's bandwidth": lambda z, sigma: vnlem.denoise_nlpr(
            z,
            sigma,
            gamma=0.1,
            patch_size=13,
            patch_distance=10,
            n_neighbors=50,
            bandwidth=16.5,
            noise_correction=False,
            workers=workers,
        ),
        # With a margin that no rotation can beat: only VNLEM's features and selection.
        "VNLEM without rotation": rotation(preset="paper", rotation_margin=100, try_unrotated=True),
        "VNLEM without angle refinement": rotation(preset="paper", angle_range=0),
        "VNLEM (paper)": rotation(preset="paper"),
        "VNLEM and the unrotated patch tried": rotation(preset="paper", try_unrotated=True),
        "VNLEM, patches averaged down": rotation(preset="paper", average_down=True),
        "VNLEM, averaged down, without rotation": rotation(
            preset="paper", average_down=True, rotation_margin=100, try_unrotated=True
        ),
        "VNLEM whole circle": rotation(preset="paper", angle_range=180),
        "VNLEM auto": rotation(),
        "scikit-image NLM, sigma-corrected": lambda z, sigma: denoise_nl_means(
            z, patch_size=7, patch_distance=10, h=0.6 * sigma, sigma=sigma, fast_mode=True
        ),
    }


def cases(options: argparse.Namespace) -> list[tuple[str, Callable[[], Scene]]]:
    """Name and noisy scene of every case: images of the data as `vnlem bench` sees them, then phantoms."""
    case = Case("paper", options.size, VARIANCE)
    folder = Path(options.data) if options.data else None
    items = [item for item in find_images(folder) if item.path.lower().endswith(READABLE)] if folder else []
    found = [
        (item.name, partial(first_scene, item, case))
        for item in [item for first in STRIDES for item in items[first :: len(STRIDES)]][: options.limit]
    ]
    found += [
        (f"cells {seed}", partial(on_grey_scale, phantoms.discs(5, 18, 3, seed), seed))
        for seed in range(1, 4)
    ]
    return [*found, ("rings", partial(on_grey_scale, phantoms.rings(128), 1))]


def first_scene(item: Item, case: Case) -> Scene:
    """An image of the data with its noise."""
    return next(scenes(item, [case]))[1]


def on_grey_scale(phantom: np.ndarray, seed: int) -> Scene:
    """A standardised phantom in 0..255 with noise."""
    scale = 255 / np.ptp(phantom)
    clean = (phantom - phantom.min()) * scale
    noise = SIGMA * scale * np.random.default_rng(seed).standard_normal(clean.shape)
    return Scene(clean, clean + noise, SIGMA * scale, seed)


def run(options: argparse.Namespace) -> list[dict[str, str]]:
    """Denoise the images missing in the CSV file; returns all its rows."""
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    fields = ["image", "size", "method", *MEASURES, "sources"]
    rows = list(csv.DictReader(out.open())) if out.exists() else []
    if any(row.get("sources") != sources_hash() for row in rows):
        sys.exit(f"{out} holds results of other sources than these; choose another --out or remove it")
    rows = [row for row in rows if row["size"] == str(options.size) or not Path(row["image"]).suffix]
    done = {(row["image"], row["method"]) for row in rows}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if file.tell() == 0:
            writer.writeheader()
        with ProcessPoolExecutor(options.processes) as pool:
            tasks = []
            for name, make in cases(options):
                wanted = [method for method in methods(1) if (name, method) not in done]
                if wanted:
                    tasks.append(pool.submit(rows_of, name, make, wanted, options.workers))
            for task in as_completed(tasks):
                for row in task.result():
                    writer.writerow(row)
                    rows.append({key: str(value) for key, value in row.items()})
                file.flush()
                print(task.result()[0]["image"], file=sys.stderr, flush=True)
    return rows


def rows_of(name: str, make: Callable[[], Scene], wanted: list[str], workers: int) -> list[dict[str, object]]:
    """The rows of one image."""
    scene = make()
    rows = []
    for method in wanted:
        measures = measure(scene, methods(workers)[method](scene.noisy, scene.sigma))
        row = {"image": name, "size": len(scene.noisy), "method": method}
        rows.append(row | {key: measures[key] for key in MEASURES} | {"sources": sources_hash()})
    return rows


def table(rows: list[dict[str, str]]) -> str:
    """Means over the images, and p values of each row's SNR and FSIM against VNLEM (paper)."""
    names = list(methods(1))
    images = sorted({row["image"] for row in rows if not row["image"].startswith(("cells", "rings"))})
    value = {(row["image"], row["method"]): row for row in rows}
    lines = [
        f"{len(images)} images; p values against VNLEM (paper): Mann-Whitney U / paired Wilcoxon.\n",
        "| | SNR | PSNR | SSIM | FSIM | p of SNR | p of FSIM | cells, SNR | rings, SNR |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        columns = {m: np.array([float(value[image, name][m]) for image in images]) for m in MEASURES}
        base = {m: np.array([float(value[image, "VNLEM (paper)"][m]) for image in images]) for m in MEASURES}
        p_values = []
        for quantity in ("snr", "fsim"):
            if name == "VNLEM (paper)" or len(images) < 2:
                p_values.append("")
                continue
            rank = mannwhitneyu(columns[quantity], base[quantity]).pvalue
            pair = wilcoxon(columns[quantity], base[quantity]).pvalue
            p_values.append(f"{rank:.1g} / {pair:.1g}")
        cells = [
            float(row["snr"]) for row in rows if row["method"] == name and row["image"].startswith("cells")
        ]
        rings = [float(row["snr"]) for row in rows if row["method"] == name and row["image"] == "rings"]
        means = " | ".join(
            f"{columns[m].mean():.{digits}f}" for m, digits in zip(MEASURES, (2, 2, 3, 4), strict=True)
        )
        phantom = f"{np.mean(cells):.2f} | {np.mean(rings):.2f}"
        lines.append(f"| {name} | {means} | {p_values[0]} | {p_values[1]} | {phantom} |")
    return "\n".join(lines)


def wins(rows: list[dict[str, str]]) -> str:
    """On how many images one row of the table is above another."""
    pairs = [
        ("VNLEM (paper)", "NLEM (paper)"),
        ("VNLEM without rotation", "VNLEM (paper)"),
        ("VNLEM auto", "VNLEM without rotation"),
        ("VNLEM auto", "scikit-image NLM, sigma-corrected"),
    ]
    value = {(row["image"], row["method"]): row for row in rows}
    images = sorted({row["image"] for row in rows if not row["image"].startswith(("cells", "rings"))})
    lines = []
    for one, other in pairs:
        counts = [
            sum(float(value[image, one][m]) > float(value[image, other][m]) for image in images)
            for m in MEASURES
        ]
        ahead = ", ".join(f"{m.upper()} {n}" for m, n in zip(MEASURES, counts, strict=True))
        lines.append(f"- {one} above {other}, of {len(images)} images: {ahead}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default="../shared/data/categories", help="folder of images, searched deep")
    parser.add_argument("--out", default="bench-out/ablation.csv")
    parser.add_argument("--size", type=int, default=512, help="side of the images, which are resized to it")
    parser.add_argument("--limit", type=int, default=None, help="the most images to use")
    parser.add_argument("--workers", type=int, default=2, help="threads of each process")
    parser.add_argument("--processes", type=int, default=1, help="images in parallel")
    rows = run(parser.parse_args())
    print(f"{table(rows)}\n\n{wins(rows)}")


if __name__ == "__main__":
    main()
