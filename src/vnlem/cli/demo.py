"""``vnlem demo``: every method on an embedded image, with figures, times and pictures."""

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from vnlem.cli.table import metric_table
from vnlem.pipeline.progress import Report, progress_bar

SMALLEST, LARGEST = 64, 512
# The peers most people know; `vnlem bench` has the others.
DEMO_PEERS = ("skimage-nlm", "bm3d")
Denoiser = Callable[[Any, float, Report], Any]


@dataclass(frozen=True)
class Outcome:
    """The result of one denoiser."""

    name: str
    image: Any
    metrics: dict[str, float | None]
    seconds: float | None = None

    @property
    def file_name(self) -> str:
        """A file name made from the denoiser's name."""
        words = "".join(letter if letter.isalnum() else " " for letter in self.name.lower()).split()
        return "-".join(words)


EXAMPLES: tuple[str, ...] = (
    "vnlem demo",
    "vnlem demo --size 256 --out pictures",
)


def command(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the pictures; created if missing.")
    ] = Path("vnlem-demo"),
    size: Annotated[int, typer.Option(help=f"Height and width of the image, {SMALLEST} to {LARGEST}.")] = 192,
    noise: Annotated[
        float, typer.Option(help="Noise variance for a clean image of variance 1; the paper's is 0.3.")
    ] = 0.3,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")] = False,
) -> None:
    """Denoise an embedded image with every method, and with other packages that are installed.

    Prints the metrics and the times, and writes the pictures, their errors and a contact sheet.
    Nothing is downloaded.
    """
    if not SMALLEST <= size <= LARGEST:
        raise ValueError(f"--size must lie between {SMALLEST} and {LARGEST}, got {size}")
    if not (math.isfinite(noise) and noise > 0):
        raise ValueError(f"--noise must be positive, got {noise:g}")
    begun = time.perf_counter()
    denoisers = find_denoisers()
    rotating = particle_denoisers(denoisers)
    _show(out, f"camera, {size}x{size}", embedded_image(size), noise, denoisers, quiet)
    _show(out / "particles", "half discs at random angles", particles(), noise, rotating, quiet)
    print(f"pictures in {out} (start with contact-sheet.png), {time.perf_counter() - begun:.0f} s in all")


def _show(
    out: Path, title: str, clean: Any, noise: float, denoisers: dict[str, Denoiser], quiet: bool
) -> None:
    """Denoise one image with all these denoisers; print the figures, write the pictures."""
    from vnlem.noise import add_gaussian, estimate_sigma

    _make_folder(out)
    sigma = math.sqrt(noise) * float(clean.std())
    noisy = add_gaussian(clean, sigma, seed=0)
    outcomes = [Outcome("noisy", noisy, _evaluate(clean, noisy, noisy))]
    for k, (name, denoiser) in enumerate(denoisers.items(), 1):
        with progress_bar(f"{name} ({k}/{len(denoisers)})", quiet=quiet) as report:
            outcomes.append(_run(name, denoiser, clean, noisy, sigma, report))
    estimated = estimate_sigma(noisy)
    title = f"{title}, noise sigma {sigma:.1f} of 255 (estimated from the noisy image: {estimated:.1f})"
    write_pictures(out, clean, outcomes, sigma, title)
    metric_table(title, {o.name: {**o.metrics, "seconds": o.seconds} for o in outcomes})


def embedded_image(size: int) -> Any:
    """The middle of the camera image that ships with the package, as floats 0..255.

    >>> embedded_image(64).shape
    (64, 64)
    """
    from vnlem.io.samples import camera

    image = camera().astype(float)
    # A crop that has the head, the camera and the sky in it.
    top = min(60, image.shape[0] - size)
    left = min(130, image.shape[1] - size)
    return image[top : top + size, left : left + size]


def particles() -> Any:
    """Half discs at random angles, 128x128, as floats 0..255, where rotation helps.

    >>> particles().shape
    (128, 128)
    """
    from vnlem.bench.phantoms import half_discs

    return 100 + 50 * half_discs(6, 16, 2, seed=1)


def find_denoisers() -> dict[str, Denoiser]:
    """Every method, the default first, with the paper's preset if there is one, and the peers."""
    from vnlem.bench.peers import available_peers
    from vnlem.registry import DEFAULT_METHOD, find_method, names

    found: dict[str, Denoiser] = {}
    for method in (DEFAULT_METHOD, *(name for name in names() if name != DEFAULT_METHOD)):
        if find_method(method).has_paper_preset:
            found[f"{method} (paper)"] = _ours(method, preset="paper")
        found[method] = _ours(method)
    for name, peer in available_peers().items():
        if name in DEMO_PEERS:
            found[name] = lambda noisy, sigma, report, peer=peer: peer(noisy, sigma, os.cpu_count() or 1)  # type: ignore[misc]
    return found


def particle_denoisers(found: dict[str, Denoiser]) -> dict[str, Denoiser]:
    """VNLR without rotation, with the symmetries of the square, with any angle; and the peers."""
    groups = {f"vnlr, group {group}": _ours("vnlr", group=group) for group in ("identity", "d4", "so2")}
    return groups | {name: found[name] for name in DEMO_PEERS if name in found}


def _ours(method: str, **options: Any) -> Denoiser:
    """A method of the package as the demo calls it."""
    from vnlem.api import denoise

    return lambda noisy, sigma, report: denoise(
        noisy, sigma, method=method, progress=lambda done, total: report(done / max(total, 1)), **options
    )


def _run(name: str, denoiser: Denoiser, clean: Any, noisy: Any, sigma: float, report: Report) -> Outcome:
    """One denoiser's result and its time."""
    started = time.perf_counter()
    image = denoiser(noisy, sigma, report)
    seconds = time.perf_counter() - started
    return Outcome(name, image, _evaluate(clean, image, noisy), seconds)


def _evaluate(clean: Any, image: Any, noisy: Any) -> dict[str, float | None]:
    from vnlem.metrics import evaluate

    return asdict(evaluate(clean, image, noisy=noisy, data_range=255))


def write_pictures(out: Path, clean: Any, outcomes: list[Outcome], sigma: float, title: str) -> None:
    """The pictures, their errors on one scale, a contact sheet and the figures as JSON."""
    from vnlem import io
    from vnlem.bench.contact_sheet import Entry, contact_sheet, error_image, to_bytes
    from vnlem.bench.protocols import ERROR_LIMIT
    from vnlem.registry import DEFAULT_METHOD

    limit = ERROR_LIMIT * sigma
    entries: list[Entry] = [Entry("clean", f"errors: black -{limit:.0f}, white +{limit:.0f}", clean)]
    io.write(out / "clean.png", to_bytes(clean))
    for outcome in outcomes:
        error = error_image(outcome.image - clean, limit)
        io.write(out / f"{outcome.file_name}.png", to_bytes(outcome.image))
        io.write(out / f"error-{outcome.file_name}.png", error)
        note = f"SNR {outcome.metrics['snr']:.2f} dB, SSIM {outcome.metrics['ssim']:.3f}"
        large = outcome is outcomes[0] or outcome.name in (DEFAULT_METHOD, "vnlr, group d4")
        label = f"{outcome.name} (the default)" if outcome.name == DEFAULT_METHOD else outcome.name
        entries.append(Entry(label, note, outcome.image, error, large))
    io.write(out / "contact-sheet.png", contact_sheet(title, entries))
    figures = {o.name: {**o.metrics, "seconds": o.seconds} for o in outcomes}
    text = json.dumps({"sigma": sigma, "methods": figures}, indent=2)
    (out / "metrics.json").write_text(text + "\n", encoding="utf-8")


def _make_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; name a folder for the pictures")
    out.mkdir(parents=True, exist_ok=True)
