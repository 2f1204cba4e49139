"""Is it correlated noise or texture? Measures many pictures, and fits the tables of `vnlem.noise.odds`.

    python benchmarks/evidence.py DATA --processes 16 --csv evidence.csv
    python benchmarks/evidence.py --fit evidence.csv --module src/vnlem/noise/odds.py

The first command treats the pictures of `categories`, `set12`, `movies_colour` and the references of
`photo_pairs` and `polyu` as `saved.py` does, and takes crops of the real pairs of `fmd`, `microscopy`,
`photo_pairs` and `polyu`, and the patterns of `harm.py`. It denoises each with the default model without
correlation and with the correlated one, and writes the evidence and both PSNR. The second fits a logistic
regression and writes the module. A line per kind of picture goes to the standard error: the mean PSNR without
correlation, with the chosen model and with the better one, each picture judged by a fit to others. `bsd68`,
`kodak24_gray` and `colour` are measured and judged, but never fitted.
"""

import argparse
import csv
import sys
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import harm
import numpy as np
import saved
from scipy import ndimage, optimize
from scipy.linalg import block_diag
from skimage import data as pictures

import vnlem
from vnlem.noise import auto
from vnlem.noise.colours import parts_of_colours
from vnlem.noise.shape import Evidence
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.workers import Pool

FITTED = (
    *("categories", "set12", "movies_colour", "photo_pairs", "polyu"),
    *("fmd", "microscopy", "skimage", "patterns", "real_noise"),
)
JUDGED = ("bsd68", "kodak24_gray", "colour")
# Photographs without a reference whose noise is plain to see, and the gain in dB that counts for them.
NOISY_BY_EYE, GAIN_BY_EYE = ("David_Hilbert", "Marilyn", "Old_Tom_Morris", "Vinegar"), 4.0
OF_SKIMAGE = ("retina", "rocket", "immunohistochemistry", "hubble_deep_field")
GREY = ("categories", "set12", "bsd68", "kodak24_gray")
WHITE = tuple(f"white {sigma}" for sigma in (0, 2, 5, 10, 20))
SOFT = (
    "soft 0.7",
    "soft 1",
    "soft 1.4",
    "faint",
    "empty",
)  # width of the correlation; little contrast or none
OTHERS = ("photons", "blurred", "enlarged", "reduced", *SOFT)
INVISIBLE = 50.0  # dB: smaller errors are equal
QUANTILES = (0.005, 0.02, 0.08, 0.25, 0.5, 0.75, 0.92, 0.98, 0.995)  # of the values: levels of a table
STEP, SPREAD = 3.0, 30.0  # expected variance of the differences of entries in a table, and of the entries
HARM, LOSS = 6.0, 1.5  # weights of a result below its input, and of other losses
CLEAN = 3.0  # times that for pictures without noise
# Weights of real pairs, of pictures of little contrast, and of patterns.
REAL, FAINT, PATTERN = 18.0, 10.0, 3.0
REAL_COLOUR, BY_EYE = 600.0, 800.0  # of whole photographs in colour, and of those without a reference: few
MOST_GAIN, MOST_LOSS = 8.0, 12.0  # dB that one picture can count
FOLDS = 8

LEAST = 0.003  # smaller values are equal
HEAD = '''"""Log odds of correlated noise, by what an image shows of it: see :mod:`vnlem.noise.shape`.

Written by `benchmarks/evidence.py --fit`. Each table lists values and their log odds; between two values the
odds are interpolated along the logarithm of the value.
"""
'''

Made = Callable[[], tuple[np.ndarray | None, np.ndarray]]


# A case: PSNR in dB with the default model that is not correlated, and with the correlated one; and what is
# known of the noise.
Row = namedtuple("Row", ("folder", "name", "kind", "noisy", "other", "correlated", *Evidence._fields))


def main() -> None:
    """Parse the options; measure, or fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder with the sets of images")
    parser.add_argument("--fit", type=Path, metavar="CSV", help="fit the tables to what was measured")
    parser.add_argument("--every", type=int, default=1, help="take every n-th case")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--csv", type=Path, default=Path("evidence.csv"), help="what was measured")
    parser.add_argument("--module", type=Path, default=Path("odds.py"), help="where the tables are written")
    options = parser.parse_args()
    if options.fit:
        with options.fit.open(newline="") as file:
            rows = [_read(row) for row in csv.DictReader(file)]
        options.module.write_text(fitted(rows))
    elif options.data:
        chosen = list(cases(options.data))[:: options.every]
        harm.measured_all(measured, chosen, options.processes, options.csv)
    else:
        parser.error("give a folder of images, or --fit with a table")


def cases(data: Path) -> Iterator[tuple[str, str, str, Made]]:
    """Set, name and kind of every case, and its clean and noisy pixels."""
    sets = [name for name in (*FITTED, *JUDGED) if name in GREY]
    for path, how in saved.sources(data, sets, 1):
        folder = next(part for part in (*FITTED, *JUDGED) if part in path.parts)
        for kind in (*WHITE, *OTHERS, *saved.kinds(how)):
            for seed in [sum(path.stem.encode())]:
                yield folder, f"{path.stem} ({how})", kind, partial(_treated, path, how, kind, seed)
    for number, pattern in enumerate(harm.PATTERNS):
        for kind in (*WHITE, *OTHERS, *saved.kinds("grey")):
            yield "patterns", f"{pattern.__name__} (grey)", kind, partial(_drawn, pattern, kind, number)
    for name in NOISY_BY_EYE:
        path = data / "real_noise" / f"rni6_{name}.png"
        yield "real_noise", f"{name} (grey)", "by eye", partial(_by_eye, path)
    for name in OF_SKIMAGE:
        for kind in (*WHITE, *OTHERS, *saved.kinds("colour")):
            yield "skimage", f"{name} (colour)", kind, partial(_of_skimage, name, kind)
    for folder in ("fmd", "microscopy", "photo_pairs", "polyu"):
        for noisy in sorted((data / folder).glob("*_noisy.*")):
            clean = next(noisy.parent.glob(noisy.name.split("_noisy")[0] + "_ref.*"))
            for colour in (False, True) if folder in ("photo_pairs", "polyu") else (False,):
                for crop in range(5):
                    name = f"{noisy.stem} ({'colour' if colour else 'grey'})"
                    yield folder, name, "real", partial(_real, clean, noisy, colour, crop)


def _treated(path: Path, how: str, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return treated(saved.opened(path, how), kind, seed)


def _of_skimage(name: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    return treated(getattr(pictures, name)()[: saved.CROP, : saved.CROP, :3].astype(float), kind, 1)


def _by_eye(path: Path) -> tuple[None, np.ndarray]:
    return None, harm.opened(path, colour=False).astype(np.uint8)


def _drawn(pattern: Callable[[], np.ndarray], kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return treated(pattern()[: saved.CROP, : saved.CROP], kind, seed)


def treated(clean: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A clean picture, and the same with noise of a kind."""
    colours = (1.0,) * (clean.ndim - 2)
    if kind.startswith("white"):
        return harm.white(clean, float(kind.split()[1]), seed)
    if kind == "photons":
        return clean, 2.55 * np.random.default_rng(seed).poisson(clean / 2.55)
    if kind == "blurred":
        changed = ndimage.gaussian_filter(clean, (0.7, 0.7, *(0.0 for _ in colours)))
    elif kind == "enlarged":
        changed = ndimage.zoom(
            clean[: saved.CROP // 3 * 2, : saved.CROP // 3 * 2], (1.5, 1.5, *colours), order=1
        )
    elif kind in SOFT:
        contrast = {"faint": 0.12, "empty": 0.0}.get(kind, 1.0)
        width = 0.9 if contrast < 1 else float(kind.split()[1])
        scene = clean if contrast == 1 else 110 + contrast * (clean - clean.mean())
        noise = np.random.default_rng(seed).standard_normal(clean.shape)
        soft = ndimage.gaussian_filter(noise, (width, width, *(0.0 for _ in colours)), mode="wrap")
        return scene, saved.as_bytes(scene + 10 * soft / soft.std())
    elif kind == "reduced":
        noisy = saved.as_bytes(clean + np.random.default_rng(seed).normal(0, 20, clean.shape))
        smaller = partial(ndimage.zoom, zoom=(0.7, 0.7, *colours), order=1, grid_mode=True, mode="nearest")
        return smaller(clean), saved.as_bytes(smaller(noisy.astype(float)))
    else:
        return saved.saved(clean, kind, seed)[:2]
    return saved.as_bytes(changed).astype(float), saved.as_bytes(changed)


def _real(clean: Path, noisy: Path, colour: bool, crop: int) -> tuple[np.ndarray, np.ndarray]:
    """A corner of a real pair, or a larger part from its middle; the reference in the units of the frame."""
    reference, frame = harm.opened(clean, colour), harm.opened(noisy, colour)
    if "microscopy" in noisy.parts:
        reference = np.polyval(np.polyfit(reference.ravel(), frame.ravel(), 1), reference)
    side, corner = (2 * saved.CROP, (0.5, 0.5)) if crop == 4 else (saved.CROP, divmod(crop, 2))
    starts = (int(max(0, length - side) * at) for length, at in zip(frame.shape, corner, strict=False))
    place = tuple(slice(start, start + side) for start in starts)
    return reference[place], frame[place].astype(np.uint8)


def measured(case: tuple[str, str, str, Made]) -> Row:
    """What is known of the noise, and the PSNR with each of the two models."""
    folder, name, kind, make = case
    clean, noisy = make()
    axis = -1 if noisy.ndim == 3 else None
    planes = to_planes(noisy, axis)
    pool = Pool(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        channels = auto.channels_of(planes, pool)
        parts = partial(parts_of_colours, planes, pool)
        other = auto.uncorrelated(planes, channels, 1.0, "auto", "", parts) if channels else None
        found = auto.correlated(planes, channels, pool) if channels else None
        call = partial(vnlem.denoise, noisy, profile="fast", channel_axis=axis, workers=1)
        known = found[1] if found else [None] * len(Evidence._fields)
        if clean is None:
            return Row(folder, name, kind, 0.0, 0.0, GAIN_BY_EYE, *known)
        levels = [harm.psnr(clean, noisy)]
        for model in (other, found and found[0]):
            levels.append(harm.psnr(clean, call(noise_model=model)) if model and model.sigma else levels[0])
    return Row(folder, name, kind, *levels, *known)


def _read(row: dict[str, str]) -> Row:
    """A row of the table; what is not known is not a number."""
    return Row(*list(row.values())[:3], *(float(value or "nan") for value in list(row.values())[3:]))


def fitted(rows: list[Row]) -> str:
    """The module with the tables; how they judge goes to the standard error."""
    rows = [row for row in rows if np.isfinite(row.floor)]
    known = np.array([row[-len(Evidence._fields) :] for row in rows], np.float64)
    noisy, other, correlated = np.minimum([row[3:6] for row in rows], INVISIBLE).T
    gain = np.clip(correlated - other, -MOST_LOSS, MOST_GAIN)
    weight = np.where(gain > 0, gain, -gain * np.where(correlated < noisy - 0.1, HARM, LOSS)) + 0.02
    weight *= np.where((gain < 0) & [_is_clean(row.kind) for row in rows], CLEAN, 1.0)
    weight *= [_importance(row) for row in rows]
    fits = np.array([row.folder in FITTED for row in rows])
    knots = [_knots(values[fits]) for values in known.T]
    hats = [_hats(values, levels) for values, levels in zip(known.T, knots, strict=True)]
    design = np.hstack([*hats, np.ones((len(rows), 1))])
    prior = _prior([len(levels) for levels in knots])
    # A picture is judged by a fit to others.
    pictures = {name: number for number, name in enumerate(sorted({row.name for row in rows}))}
    fold = np.random.default_rng(0).permutation(len(pictures))[[pictures[row.name] for row in rows]] % FOLDS
    odds = np.empty(len(rows))
    for number in range(FOLDS):
        those = fits & (fold != number)
        entries = _regression(design[those], gain[those] > 0, weight[those], prior)
        odds[fold == number] = design[fold == number] @ entries
    _report(rows, noisy, other, correlated, odds > auto.LEAST_ODDS["auto"])
    entries = _regression(design[fits], gain[fits] > 0, weight[fits], prior)
    lines = [
        f"AT_ALL = {entries[-1]:.2f}",
        "TABLES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {",
    ]
    for name, levels in zip(Evidence._fields, knots, strict=True):
        own, entries = entries[: len(levels)], entries[len(levels) :]
        lines.append(f'    "{name}": (({_listed(levels, "g")}), ({_listed(own, ".2f")})),')
    return "\n".join([HEAD, *lines, "}", ""])


def _is_clean(kind: str) -> bool:
    return kind in ("white 0", "blurred", "enlarged") or "sigma 0" in kind


def _importance(row: Row) -> float:
    if row.folder == "real_noise":
        return BY_EYE
    if row.kind == "real":
        return REAL_COLOUR if row.folder == "photo_pairs" and "(colour)" in row.name else REAL
    if row.folder == "patterns":
        return PATTERN
    return FAINT if row.kind.endswith(("faint", "empty")) else 1.0


def _knots(values: np.ndarray) -> np.ndarray:
    """Levels of a table: quantiles of two digits."""
    usual = np.nanquantile(np.maximum(values, LEAST), QUANTILES)
    return np.unique([float(f"{value:.2g}") for value in usual])


def _hats(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The share of each entry of a table in what is read from it; none for what is not known."""
    at = np.log(np.maximum(np.nan_to_num(values, nan=levels[0]), levels[0]))
    shares = [np.interp(at, np.log(levels), one) for one in np.eye(len(levels))]
    return np.stack(shares, axis=1) * np.isfinite(values)[:, None]


def _prior(sizes: list[int]) -> np.ndarray:
    """Precision of the entries of all tables: neighbouring ones are expected to be similar."""
    steps = [np.diff(np.eye(size), axis=0) for size in sizes]
    return block_diag(*(step.T @ step / STEP + np.eye(step.shape[1]) / SPREAD for step in steps), 0.0)


def _regression(design: np.ndarray, right: np.ndarray, weight: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Logistic regression."""
    weight = weight / weight.mean()

    def loss(entries: np.ndarray) -> tuple[float, np.ndarray]:
        odds, pull = design @ entries, prior @ entries
        wrong = 1 / (1 + np.exp(-odds)) - right
        value = np.sum(weight * (np.logaddexp(0, odds) - right * odds)) + entries @ pull / 2
        return float(value), design.T @ (weight * wrong) + pull

    start = np.zeros(design.shape[1])
    return optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 4000}).x


def _listed(values: np.ndarray, form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def _report(
    rows: list[Row], noisy: np.ndarray, other: np.ndarray, correlated: np.ndarray, chosen: np.ndarray
) -> None:
    result = np.where(chosen, correlated, other)
    shown = (noisy, other, result, np.maximum(other, correlated))
    print("| | n | input | none correlated | as chosen | the better model | worse |", file=sys.stderr)
    print("|---|---|---|---|---|---|---|", file=sys.stderr)
    groups = [f"{'judged' if row.folder in JUDGED else 'fitted'}, {row.kind}" for row in rows]
    for group in dict.fromkeys(groups):
        those = np.array([one == group for one in groups])
        means = " | ".join(f"{values[those].mean():.2f}" for values in shown)
        worse = np.count_nonzero((result < noisy - saved.MOST_WORSE) & those)
        print(f"| {group} | {those.sum()} | {means} | {worse} |", file=sys.stderr)


if __name__ == "__main__":
    main()
