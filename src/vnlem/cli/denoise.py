"""``vnlem denoise IN OUT``: one file in, one file out."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from vnlem import __version__
from vnlem.api import denoise
from vnlem.cli import batch, large, raw
from vnlem.cli import noise as noise_options
from vnlem.cli import pixels as single
from vnlem.cli.help import parameter_help
from vnlem.noise.find import ABOUT_NOISE
from vnlem.pipeline.axes import LETTERS
from vnlem.pipeline.dtypes import check_dtype
from vnlem.pipeline.lazy import load
from vnlem.pipeline.progress import Report, progress_bar
from vnlem.pipeline.settings import parse_settings
from vnlem.pipeline.warn import said_once
from vnlem.registry import DEFAULT_METHOD, find_function, find_method, methods_with, names, stack_method
from vnlem.repair import NAMES
from vnlem.repair_stack import shows_impulses
from vnlem.stacks import denoise_pages_on_disk

if TYPE_CHECKING:
    from vnlem.io import PagesOnDisk, Picture, ScratchPages


EXAMPLES: tuple[str, ...] = (
    "vnlem denoise noisy.tif denoised.tif",
    "vnlem denoise noisy.png denoised.png --sigma 25",
    "vnlem denoise movie.tif clean.tif --axes tyx",
    "vnlem denoise scan.nii.gz clean.nii.gz --noise-model rician",
    "vnlem denoise photographs clean --pattern '*.jpg' --to .png",
    "vnlem denoise scan.ome.zarr clean.ome.zarr --memory 4GB --resume",
)


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN",
            help="Image file, such as PNG, TIFF, NIfTI, MRC, FITS, CZI, ND2 or LIF, or an OME-Zarr store; "
            "FILE:2 is the second image of a file that holds several.",
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="File or store to write; its suffix decides the format.")
    ],
    method: Annotated[str, typer.Option(help=f"One of {', '.join(names())}.")] = DEFAULT_METHOD,
    sigma: Annotated[
        float | None,
        typer.Option(help=parameter_help(denoise, "sigma").partition(" May be a map")[0]),
    ] = None,
    noise_model: Annotated[
        str,
        typer.Option(
            help="What the noise is: 'auto', 'gaussian', 'poisson-gaussian', 'correlated', 'field' (varies "
            "over the image), 'rician' (MRI) or 'speckle' (OCT, ultrasound, radar)."
        ),
    ] = "auto",
    gain: Annotated[float | None, typer.Option(help="Grey levels per photon, for photon noise.")] = None,
    offset: Annotated[float | None, typer.Option(help="The camera's level without light.")] = None,
    read_noise: Annotated[float | None, typer.Option(help="Standard deviation without light.")] = None,
    caution: noise_options.Caution = "auto",
    lines: Annotated[
        bool | None,
        typer.Option(
            "--lines/--no-lines", help="Remove offsets of rows and columns; by default if they are obvious."
        ),
    ] = None,
    coils: noise_options.Coils = None,
    looks: noise_options.Looks = None,
    domain: noise_options.Domain = None,
    noise: Annotated[
        Path | None, typer.Option(metavar="MODEL.json", help="A noise model that 'vnlem noise' wrote.")
    ] = None,
    preset: Annotated[str, typer.Option(help=parameter_help(denoise, "preset"))] = "auto",
    profile: Annotated[
        str | None, typer.Option(help="'best', 'quality', 'balanced' or 'fast', for methods with profiles.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be repeated."),
    ] = None,
    channels: Annotated[
        str,
        typer.Option(
            help="Where a TIFF or NPY array has its colours: 'auto', 'last', 'first' or 'none' (all pages)."
        ),
    ] = "auto",
    workers: Annotated[int | None, typer.Option(help=parameter_help(denoise, "workers"))] = None,
    device: Annotated[
        str | None, typer.Option(help="'cpu', 'cuda', 'cuda:1' or 'auto': a GPU if there is one.")
    ] = None,
    page_by_page: large.PageByPage = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
    memory: large.Memory = None,
    resume: large.Resume = False,
    region: large.RegionText = None,
    dry_run: large.DryRun = False,
    cluster: large.Cluster = None,
    part: large.Part = None,
    axes: large.Axes = None,
    pattern: batch.Pattern = None,
    to: batch.To = None,
    one_noise_model: batch.OneNoiseModel = False,
    dtype: Annotated[
        str | None,
        typer.Option(help="dtype of OUT, e.g. float32 for low photon counts; that of IN by default."),
    ] = None,
    mask: single.Mask = None,
    fill: single.Fill = True,
    defects: single.Defects = None,
    protect: single.Protect = None,
    only: single.Only = None,
    strength: single.Strength = 1.0,
    impulses: single.Impulses = None,
) -> str:
    """Denoise an image file, or with --pattern the files of a folder.

    The dtype, pages, alpha and metadata are kept. The frames of a movie (axis T) and the slices of a volume
    (Z) help each other if the file or --axes names the axes; other pages are denoised one by one. From TIFF
    to TIFF only the pages being worked on are in memory. No file is written if there is an error.
    """
    arguments = dict(locals())
    from vnlem import io

    if pattern is not None:
        return batch.run(command, arguments)
    if one_noise_model:
        raise ValueError("--one-noise-model is for the files of a folder; name them with --pattern '*.tif'")
    if raw.is_raw(source):
        return raw.run(arguments)
    if to is not None:
        raise ValueError("--to is for the files of a folder, with --pattern; OUT says it for a single file")
    begun = time.perf_counter()
    wanted = None if dtype is None else check_dtype(dtype)
    function = find_function(method)
    parameters = _settings(settings or [], function, method)
    if profile is not None:
        parameters["profile"] = _checked_profile(profile, method)
    model: Any = noise_model
    if noise is not None:
        from vnlem.noise.model import NoiseModel

        if noise_model != "auto":
            raise ValueError(f"--noise {noise} holds the whole model; leave --noise-model {noise_model} out")
        model = NoiseModel.load(noise)
    about_noise = {name: arguments[name] for name in ABOUT_NOISE}
    pixels = single.options(arguments)
    common: dict[str, Any] = {"method": method, "preset": preset, "workers": workers, "device": device}
    common |= {"noise_model": model, "dtype": wanted, **about_noise, **parameters, **pixels}
    asked = {name: arguments[name] for name in large.OPTIONS}
    if large.is_large(source, target, asked):
        large.refuse(channels=channels != "auto", overwrite=overwrite)
        options = {**asked, "axes": axes, "stack": not page_by_page, **common}
        return large.run(source, target, sigma, quiet, **options)
    if source.is_dir():
        raise IsADirectoryError(
            f"{source} is a folder; name an image file, or denoise its files with --pattern '*.tif'"
        )
    with ExitStack() as held:

        def letters_of(picture: "Picture") -> str:
            return "" if page_by_page else stack_axes(axes, picture)

        def in_memory(picture: "Picture", pages: "PagesOnDisk") -> bool:
            options = common | {"axes": letters_of(picture)}
            return single.need_memory(pixels) or _have_holes(pages, sigma, options)

        picture, pages = held.enter_context(_opened(source, target, channels, axes, in_memory))
        single.warn_of_inverted(pixels, picture)
        letters = letters_of(picture)
        if target.exists() and target.samefile(io.split_series(source)[0]):
            raise ValueError(f"OUT is IN ({target}); choose another name, so that the original stays")
        io.check_writable(target, _to_be_written(picture, wanted))
        if target.exists() and not overwrite:
            raise ValueError(f"OUT exists ({target}); choose another name, or replace it with --overwrite")
        if letters and len(letters) == picture.pixels.ndim:
            large.check_fits(letters, picture.pixels.shape, method, {"preset": preset, **parameters})
        out = None
        if pages is not None:
            out = held.enter_context(io.ScratchPages(target, pages.shape, wanted or pages.dtype))
        with progress_bar(f"denoising {source.name}", quiet=quiet) as report:
            if letters:
                common |= {"axes": letters, "progress": lambda done, total: report(done / max(total, 1))}
                result, found = _denoise_stack(picture, pages, out, sigma, common)
            else:
                result, found = denoise_pages(picture, sigma, report, pages, out, **common)
        result = _with_history(result, method, found)
        if out is None:
            io.write(target, result)
        else:
            io.write_pages(target, _to_be_written(result, wanted), out)
    estimated = sigma is None and gain is None and noise is None
    level = f"{_noise_of(found)} ({'estimated' if estimated else 'given'})"
    if estimated and all(model.sigma == 0 for model in found):
        level = "no noise found"
    sizes = zip(picture.pixels.shape, letters, strict=False)
    n_pages = math.prod(n for n, axis in sizes if axis not in "YX") if letters else picture.n_pages
    count = f", {n_pages} pages" if n_pages > 1 or picture.page_axes else ""
    line = f"{method}{count}, {level}, {time.perf_counter() - begun:.1f} s: {target}"
    if not quiet:
        print(line)
        if estimated and caution == "auto" and _may_be_more(found):
            print("what was left may be noise or texture; if it is noise, --caution strong removes it")
    return line


def _may_be_more(found: list[Any]) -> bool:
    """Whether the noise of a page may be much stronger than what was assumed."""
    from vnlem.noise.auto import MAY_BE_MORE

    return any(model.doubt in MAY_BE_MORE for model in found)


def _to_be_written(picture: "Picture", dtype: Any) -> "Picture":
    """The content of OUT, in another dtype: the pixels are zeros that take no memory."""
    if dtype is None:
        return picture
    return replace(picture, pixels=np.broadcast_to(np.zeros((), dtype), picture.pixels.shape))


@contextmanager
def _opened(
    source: Path,
    target: Path,
    channels: str,
    axes: str | None,
    in_memory: "Callable[[Picture, PagesOnDisk], bool]",
) -> "Iterator[tuple[Picture, PagesOnDisk | None]]":
    """What IN holds. From TIFF to TIFF its pages stay on the disk if they are grey, follow each other and
    have neither missing pixels nor impulses; then the picture has the shape of the pixels, not the pixels."""
    from vnlem import io

    in_pages = axes is None or set(axes[-2:].upper()) == {"Y", "X"}
    if in_pages and channels in ("auto", "none") and io.takes_pages(target):
        with io.open_pages(source) as opened:
            if opened is not None and not in_memory(opened.picture, opened.pages):
                yield opened.picture, opened.pages
                return
    yield io.read(source, "none" if axes is not None and channels == "auto" else channels), None


def _have_holes(pages: "PagesOnDisk", sigma: float | None, options: dict[str, Any]) -> bool:
    """Whether pixels are missing, or pages that help each other show impulses."""
    if pages.dtype.kind == "f" and any(bool(np.isnan(page).any()) for page in pages):
        return True
    return bool(options["axes"]) and shows_impulses(pages, sigma, **options)


def _denoise_stack(
    picture: "Picture",
    pages: "PagesOnDisk | None",
    out: "ScratchPages | None",
    sigma: float | None,
    options: dict[str, Any],
) -> tuple["Picture", list[Any]]:
    """Denoise pages that may help each other; also the noise of each channel."""
    if pages is None or out is None:
        pixels, info = denoise(picture.pixels, sigma, return_info=True, **options)
        return replace(picture, pixels=pixels), info.details.get("noise_models", [info.noise])
    # Options for single pixels have their defaults here; other values need the pages in memory.
    others = {name: value for name, value in options.items() if name not in NAMES}
    _, info = denoise_pages_on_disk(pages, out, sigma, **others)
    return picture, info.details["noise_models"]


def _with_history(picture: "Picture", method: str, found: list[Any]) -> "Picture":
    """The picture with a history line that says how it was denoised."""
    line = f"vnlem {__version__} denoise, method {method}, {_noise_of(found)}"
    return replace(picture, metadata=replace(picture.metadata, history=line))


def _settings(settings: list[str], function: Any, method: str) -> dict[str, Any]:
    """--set as keywords: parameters of the method, or of its version for stacks."""
    try:
        return parse_settings(settings, function, method)
    except ValueError:
        stack = stack_method(method)
        if stack is not None:
            with suppress(ValueError):
                return parse_settings(settings, load(stack.prepare), method)
        raise


def stack_axes(axes: str | None, picture: "Picture") -> str:
    """The letters of a stack whose pages may help each other; empty otherwise."""
    if axes is not None:
        return axes.upper()
    letters = picture.metadata.axes.upper()
    if picture.channel_axis is not None:
        letters = letters.replace("S", "C")  # samples of a pixel
    known = (
        len(letters) == picture.pixels.ndim and set(letters) <= set(LETTERS) and {"Y", "X"} <= set(letters)
    )
    return letters if known and picture.n_pages > 1 else ""


def denoise_pages(
    picture: "Picture",
    sigma: float | None,
    report: Report,
    pages: "PagesOnDisk | None" = None,
    out: "ScratchPages | None" = None,
    **options: Any,
) -> tuple["Picture", list[Any]]:
    """Denoise every page; also return the noise of each page, given or estimated.

    The pages are the picture's own, or are read from and written to disk.
    """
    n_pages = picture.n_pages
    found: list[Any] = []

    def one(page: Any) -> Any:
        number = len(found)
        try:
            pixels, info = denoise(
                page,
                sigma,
                channel_axis=picture.channel_axis,
                progress=lambda done, total: report((number + done / max(total, 1)) / n_pages),
                return_info=True,
                **single.of_page(options, picture, number),
            )
        except ValueError as error:
            if n_pages == 1:
                raise
            raise ValueError(f"page {number + 1} of {n_pages}: {error}") from error
        found.append(info.noise)
        report(len(found) / n_pages)
        return pixels

    with said_once():
        if pages is None or out is None:
            return picture.map(one), found
        for number, page in enumerate(pages):
            out.put(number, one(page))
        return picture, found


def _checked_profile(profile: str, method: str) -> str:
    if "profile" not in find_method(method).parameters:
        able = methods_with(lambda one: "profile" in one.parameters)
        cure = f"use --method {' or '.join(able)}" if able else "leave --profile out"
        raise ValueError(f"method {method!r} has no profiles; {cure}")
    return profile


def _noise_of(found: list[Any]) -> str:
    """The noise of all pages: in words for one page, the range of sigma if all are white."""
    if all(model.is_white for model in found):
        return f"sigma {_range([model.sigma for model in found])}"
    others = "" if len(found) == 1 else f" on the first of {len(found)} pages"
    return f"{found[0].describe()}{others}"


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"
