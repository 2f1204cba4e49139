"""``vnlem noise IMAGE``: what noise is this, in words, as a picture, as a model for later."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from vnlem.noise import NoiseModel

SUFFIXES = (".json", ".png", ".pdf", ".svg")

EXAMPLES: tuple[str, ...] = (
    "vnlem noise frame.tif",
    "vnlem noise frame.tif --out noise.png",
    "vnlem noise frame.tif --out camera.json",
)


# Options that `vnlem denoise` has too.
Caution = Annotated[
    str, typer.Option(help="If texture could be noise: 'auto', 'safe' (keep it) or 'strong'.")
]
Coils = Annotated[
    int | None, typer.Option(help="Number of coils whose squares were summed, for Rician noise.")
]
Looks = Annotated[
    float | None, typer.Option(help="Number of averaged pictures, for speckle; estimated by default.")
]
Domain = Annotated[
    str | None, typer.Option(help="What speckled pixels are: 'intensity', 'amplitude' or 'log'.")
]


def command(
    image: Annotated[
        Path | None, typer.Argument(metavar="IMAGE", help="Image file of any format.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a picture (.png, .pdf, .svg), or the model itself (.json)."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="'auto', 'gaussian', 'poisson-gaussian', 'correlated', 'field', 'rician' (MRI) or 'speckle'."
        ),
    ] = "auto",
    caution: Caution = "auto",
    coils: Coils = None,
    looks: Looks = None,
    domain: Domain = None,
    lines: Annotated[
        bool | None,
        typer.Option(
            "--lines/--no-lines",
            help="Find offsets of rows and columns; by default if they are obvious.",
        ),
    ] = None,
    dark: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DARKS", help="Calibrate a camera: a stack of frames without light, or a folder of them."
        ),
    ] = None,
    flat: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FLATS",
            help="Calibrate a camera: frames of even light; once for each brightness.",
        ),
    ] = None,
    saturation: Annotated[
        float | None, typer.Option(help="Value of a saturated pixel; found in the flat fields by default.")
    ] = None,
    page: Annotated[int, typer.Option(help="Number of the page in a file with several, from 1.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the model, as JSON.")] = False,
) -> None:
    """Say what noise an image has: its kind, how strong it is at each brightness, and its correlation.

    Pass a model written as JSON to denoise with --noise, for every image of the same detector. --dark DARKS
    --flat FLATS --out camera.json calibrates every pixel of a camera.
    """
    if out is not None and out.suffix.lower() not in SUFFIXES:
        raise ValueError(f"OUT must end in one of {', '.join(SUFFIXES)}, got {out}")
    if dark or flat:
        _calibrate(image, dark or [], flat or [], saturation, out, as_json)
        return
    if image is None:
        raise ValueError("name an image, or calibrate a camera with --dark and --flat")
    from vnlem import io
    from vnlem.check import check_noise
    from vnlem.noise.auto import estimate_noise
    from vnlem.noise.words import explain
    from vnlem.pipeline.image import Planes, to_planes
    from vnlem.repair import impulse_rule, without_impulses

    picture = io.read(image)
    pages = list(picture.pages())
    if not 1 <= page <= len(pages):
        raise ValueError(f"the file has {len(pages)} pages, got --page {page}")
    pixels = pages[page - 1]
    told: dict[str, Any] = {"kind": kind, "lines": "auto" if lines is None else lines}
    told |= {"coils": coils, "looks": looks, "domain": domain}

    def estimate(seen: Any, caution: str = caution) -> "NoiseModel":
        return estimate_noise(seen, picture.channel_axis, caution=caution, **told)

    model = estimate(pixels)
    planes = to_planes(pixels, picture.channel_axis)
    count = 0
    if model.maps is None:

        def of_planes(seen: Planes) -> "NoiseModel":
            return estimate(seen.restore(seen.data))

        rule = impulse_rule(planes, None, model, "auto", of_planes)
        found = None if rule is None else without_impulses(planes, None, rule, of_planes)
        if found is not None:
            planes, holes = found
            count, pixels = int(holes.missing.sum()), planes.restore(planes.data)
            model = estimate(pixels)
    _write(model, out, pixels, picture.channel_axis)
    if as_json:
        print(json.dumps(model.to_dict(), indent=1))
        return
    print(f"{image}: {model.describe()}")
    for sentence in explain(model, planes.data):
        print(sentence)
    if count:
        print(
            f"{count} impulses (hot, dead or stuck pixels, salt and pepper, cosmic rays): denoise replaces "
            "them (--no-impulses keeps them); the noise is that of the other pixels"
        )
    print(f"kind {model.kind}, confidence {model.confidence:.2f}")
    if model.doubt or model.confidence < 0.5:
        bounds = (estimate(pixels, caution) for caution in ("safe", "strong"))
        low, high = ("none" if b.sigma == 0 else b.describe().split(";")[0] for b in bounds)
        print(f"it may be as little as {low} (--caution safe), or as much as {high} (--caution strong)")
    else:
        print("large parts of the image show this noise and nothing else")
    print(check_noise(pixels, model, picture.channel_axis).describe())
    if out is not None:
        print(f"written: {out}")


def _calibrate(
    image: Path | None,
    dark: list[Path],
    flat: list[Path],
    saturation: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """The model of a camera from dark frames and flat fields."""
    from vnlem.noise.calibrate import calibrate_sensor

    if image is not None:
        raise ValueError(f"--dark and --flat calibrate a camera without an image; leave {image} out")
    if not dark:
        raise ValueError("a camera is calibrated with dark frames too; pass --dark")
    if out is not None and out.suffix.lower() != ".json":
        raise ValueError(f"the maps of a camera are written as .json, got {out}")
    frames = (frame for path in dark for frame in _frames(path))
    model = calibrate_sensor(frames, [_frames(path) for path in flat], saturation=saturation)
    _write(model, out)
    if as_json:
        print(json.dumps(model.to_dict(), indent=1))
        return
    print(model.describe())
    print("give it to denoise with --noise, for every image of the same camera and region of interest")
    if out is not None:
        print(f"written: {out}")


def _frames(path: Path) -> Iterator[Any]:
    """The pages of a file, or of all files of a folder in the order of their names."""
    from vnlem import io

    files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"the folder {path} is empty; it must hold frames")
    for file in files:
        yield from io.read(file, "none").pages()


def _write(
    model: "NoiseModel", out: Path | None, pixels: Any = None, channel_axis: int | None = None
) -> None:
    if out is not None and out.suffix.lower() == ".json":
        model.save(out)
    elif out is not None:
        model.draw(out, pixels, channel_axis)
