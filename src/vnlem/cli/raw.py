"""``vnlem denoise photo.dng clean.dng``: the mosaic of a camera, to a DNG or to a developed picture."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from vnlem import __version__

# Options of `vnlem denoise` that a mosaic takes; the others have a value that means "not given".
_TAKEN = (
    "source",
    "target",
    "gain",
    "read_noise",
    "profile",
    "workers",
    "device",
    "quiet",
    "overwrite",
    "resume",
    "pattern",
)
_NOT_GIVEN: tuple[Any, ...] = (None, False, "auto", "vnlr", [])
_DEFAULTS = {"fill": True, "strength": 1.0}  # of options with another default


def is_raw(source: Path) -> bool:
    """Whether a file holds the mosaic of a camera."""
    from vnlem.io.formats import sniff

    return source.is_file() and sniff(source) in ("dng", "raw")


def noise_in_file(mosaic: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Gain and read noise of each colour, from the NoiseProfile of a DNG."""
    gains, reads = zip(*mosaic.noise, strict=True)
    return dict(zip("RGB", gains, strict=True)), dict(zip("RGB", reads, strict=True))


def run(arguments: dict[str, Any]) -> str:
    """Denoise the mosaic of a raw file.

    arguments: those of `vnlem denoise`.
    """
    from vnlem import io
    from vnlem.io.camera_raw import developed
    from vnlem.pipeline.progress import progress_bar
    from vnlem.raw import denoise_raw

    source, target, quiet = arguments["source"], arguments["target"], arguments["quiet"]
    for name, value in arguments.items():
        if name not in _TAKEN and value not in (*_NOT_GIVEN, _DEFAULTS.get(name)):
            raise ValueError(
                f"--{name.replace('_', '-')} is not for camera raw files, whose mosaic VNLR denoises with "
                "the noise of each colour; leave it out, or convert the file to TIFF first"
            )
    begun = time.perf_counter()
    picture = io.read(source)
    mosaic = picture.metadata.native
    if target.exists() and target.samefile(source):
        raise ValueError(f"OUT is IN ({target}); choose another name, so that the original stays")
    as_mosaic = target.suffix.lower() == ".dng"
    io.check_writable(target, picture if as_mosaic else developed(picture))
    if target.exists() and not arguments["overwrite"]:
        raise ValueError(f"OUT exists ({target}); choose another name, or replace it with --overwrite")
    gain, read_noise, origin = arguments["gain"], arguments["read_noise"], "given"
    if gain is None and read_noise is None and mosaic.noise:
        gain, read_noise = noise_in_file(mosaic)
        origin = "from the file"
    elif gain is None:
        origin = "estimated"
    with progress_bar(f"denoising {source.name}", quiet=quiet) as report:
        pixels, info = denoise_raw(
            picture.pixels,
            mosaic.pattern,
            black_level=mosaic.black,
            white_level=mosaic.white,
            gain=gain,
            read_noise=read_noise,
            profile=arguments["profile"] or "balanced",
            workers=arguments["workers"],
            device=arguments["device"],
            progress=lambda done, total: report(done / max(total, 1)),
            return_info=True,
            colour=not as_mosaic,
        )
    found = info.details["noise"]
    words = found["G"].describe()
    level = "no noise found" if info.sigma == 0 else f"{words} in green ({origin})"
    history = f"vnlem {__version__} denoise, mosaic, {level}"
    result = replace(picture, pixels=pixels, metadata=replace(picture.metadata, history=history))
    io.write(target, result if as_mosaic else developed(result))
    line = f"vnlr, mosaic {'/'.join(mosaic.pattern)}, {level}, {time.perf_counter() - begun:.1f} s: {target}"
    if not quiet:
        print(line)
    return line
