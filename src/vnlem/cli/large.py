"""The options of ``vnlem denoise`` for images larger than memory, and what they do."""

import math
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from vnlem.pipeline.progress import progress_bar

_PANEL = "Images larger than memory"


def _option(*names: str, metavar: str | None = None, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=_PANEL)


Memory = Annotated[
    str | None,
    _option(metavar="SIZE", help="Memory limit, e.g. 4GB; half of the free memory by default."),
]
Resume = Annotated[bool, _option("--resume", help="Continue OUT from an earlier run.")]
RegionText = Annotated[
    str | None, _option("--region", metavar="y=0:2048,x=0:2048", help="Only this part of the image.")
]
DryRun = Annotated[
    bool, _option("--dry-run", help="Print units, halo, memory and an estimate of the time; write nothing.")
]
Cluster = Annotated[
    str | None,
    _option(metavar="ADDRESS", help="Dask scheduler, e.g. tcp://host:8786, or local:4 for processes here."),
]
Part = Annotated[
    str | None, _option(metavar="3/16", help="The third of sixteen parts, for the members of a job array.")
]
Axes = Annotated[
    str | None, _option(metavar="tczyx", help="Names of the axes, if the file does not give them.")
]

PageByPage = Annotated[
    bool,
    typer.Option("--page-by-page", help="Denoise every frame and slice on its own; it needs less memory."),
]

TIFF_SUFFIXES = (".tif", ".tiff")
# A TIFF file whose pages are larger than this share of the free memory is done in parts: a pixel of two
# bytes, or less if compressed, takes a hundred bytes during denoising.
SHARE_OF_MEMORY = 0.01


# Options that only apply to images in parts.
OPTIONS = ("memory", "resume", "region", "dry_run", "cluster", "part")


def is_store(path: Path) -> bool:
    """Whether a folder is that of a zarr group or array, of version 3 or 2."""
    return any((path / name).exists() for name in ("zarr.json", ".zgroup", ".zarray"))


def is_large(source: Path, target: Path, options: dict[str, Any]) -> bool:
    """Whether this is work for ``vnlem.denoise_large``: zarr, one of its options, or a file of big planes."""
    if (
        any(options.values())
        or is_store(source)
        or any(".zarr" in path.name.lower() for path in (source, target))
    ):
        return True
    if target.suffix.lower() not in TIFF_SUFFIXES:
        return False
    from vnlem.large.memory import free_memory

    if source.suffix.lower() not in TIFF_SUFFIXES:
        return _plane_bytes(source) > SHARE_OF_MEMORY * free_memory()
    if not source.is_file():
        return False
    size, most = os.path.getsize(source), SHARE_OF_MEMORY * free_memory()
    return size > most and size > most * _pages_of(source)


def _plane_bytes(source: Path) -> int:
    """Bytes of a plane of a file that is read plane by plane; zero for a file that is read whole."""
    from vnlem import io
    from vnlem.io.series import choose_series

    place, key = io.split_series(source)
    try:
        with io.open_series(place) as found:
            series = choose_series(found, key, place)
            return math.prod(series.shape) // series.n_planes * series.dtype.itemsize
    except (ValueError, OSError):
        return 0  # reading it reports what is wrong with it


def _pages_of(source: Path) -> int:
    """How many pages of a TIFF file are read one by one."""
    from vnlem import io

    with io.open_pages(source) as opened:
        return 1 if opened is None else opened.picture.n_pages


def check_fits(letters: str, shape: tuple[int, ...], method: str, parameters: dict[str, Any]) -> None:
    """Refuse a stack whose pages in flight need more memory than there is, before the work."""
    from vnlem.large.memory import free_memory, human_bytes
    from vnlem.large.stack_solver import BYTES_IN_FLIGHT
    from vnlem.pipeline.axes import check_axes
    from vnlem.pipeline.lazy import load
    from vnlem.pipeline.stack_task import StackTask
    from vnlem.registry import check_stack_params, stack_method

    sizes = dict(zip(check_axes(letters, shape), shape, strict=True))
    free = free_memory()
    for kind in "TZ":
        together = stack_method(method, kind)
        if together is None or sizes.get(kind, 1) < 2:
            continue
        prepare = load(together.prepare)
        parameters = {name: value for name, value in parameters.items() if name != "channels"}
        check_stack_params(prepare, method, parameters)
        height, width = sizes["Y"], sizes["X"]
        used, _ = prepare(StackTask(kind, [(height, width)] * sizes[kind], 1.0), **parameters)
        channels = sizes.get("C", 1) if together.channels else 1
        need = BYTES_IN_FLIGHT * load(together.planes_in_flight)(used) * height * width * channels
        if need > free:
            raise ValueError(
                f"pages of {height}x{width} that help each other take about {human_bytes(need)}, and "
                f"{human_bytes(free)} are free; take --profile fast or --set plane_distance=1, or denoise "
                "--page-by-page"
            )


def refuse(*, channels: bool, overwrite: bool) -> None:
    """Refuse options that do not apply to images in parts."""
    if channels:
        raise ValueError("--channels is for files that fit in memory; name the axes with --axes, e.g. cyx")
    if overwrite:
        raise ValueError(
            "--overwrite is for files that fit in memory; remove OUT, or continue it with --resume"
        )


def run(source: Path, target: Path, sigma: float | None, quiet: bool, **options: Any) -> str:
    """Run it with the options of ``vnlem.denoise_large``, and print a summary."""
    _need_extra()
    from vnlem.large.api import denoise_large
    from vnlem.large.dry_run import Forecast, human_time

    with progress_bar(f"denoising {source.name}", quiet=quiet) as report:
        found = denoise_large(
            source, target, sigma, progress=lambda done, total: report(done / max(total, 1)), **options
        )
    if isinstance(found, Forecast):
        print(found)
        return str(found)
    what = f"{found.units_done} of {found.units} units, {human_time(found.seconds)}"
    state = "" if found.complete else " (other parts are not done yet)"
    line = f"{found.settings['method']}, {found.settings['noise']}, {what}: {target}{state}"
    if not quiet:
        print(line)
    return line


def _need_extra() -> None:
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise ValueError(
            "large images and zarr stores need the extra 'large': pip install 'vnlem[large]'"
        ) from None
