"""``vnlem noise IMAGE``: what noise is this, in words, as a picture, as a model for later."""

import json
from pathlib import Path
from typing import Annotated

import typer


def command(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="Image file of any format.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Write a picture (.png, .pdf, .svg), or the model itself (.json)."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="'auto', 'gaussian', 'poisson-gaussian', 'correlated', 'rician' (MRI) or 'speckle'."
        ),
    ] = "auto",
    caution: Annotated[
        str, typer.Option(help="In doubt what is noise: 'auto', 'safe' (texture stays) or 'strong'.")
    ] = "auto",
    coils: Annotated[
        int | None, typer.Option(help="Coils whose squares were added up, for Rician noise.")
    ] = None,
    looks: Annotated[
        float | None, typer.Option(help="Pictures that were averaged, for speckle; estimated by default.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="What speckled pixels are: 'intensity', 'amplitude' or 'log'.")
    ] = None,
    page: Annotated[int, typer.Option(help="The page of a file with several, from 1.")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the model as JSON and nothing else.")
    ] = False,
) -> None:
    """Say what noise an image has: its kind, how strong it is at each brightness, and its correlation.

    A model written as JSON can be given to denoise with --noise, for every image of the same detector.
    """
    from vnlem import io
    from vnlem.check import check_noise
    from vnlem.noise.auto import estimate_noise

    suffixes = (".json", ".png", ".pdf", ".svg")
    if out is not None and out.suffix.lower() not in suffixes:
        raise ValueError(f"OUT must end in one of {', '.join(suffixes)}, got {out}")
    picture = io.read(image)
    pages = list(picture.pages())
    if not 1 <= page <= len(pages):
        raise ValueError(f"the file has {len(pages)} pages, got --page {page}")
    pixels = pages[page - 1]
    model = estimate_noise(
        pixels,
        picture.channel_axis,
        kind=kind,
        caution=caution,
        coils=coils,
        looks=looks,
        domain=domain,
    )
    if out is not None and out.suffix.lower() == ".json":
        model.save(out)
    elif out is not None:
        model.draw(out, pixels, picture.channel_axis)
    if as_json:
        print(json.dumps(model.to_dict(), indent=1))
        return
    print(f"{image}: {model.describe()}")
    print(f"kind {model.kind}, confidence {model.confidence:.2f}")
    if model.doubt or model.confidence < 0.5:
        bounds = (
            estimate_noise(pixels, picture.channel_axis, kind=kind, caution=c) for c in ("safe", "strong")
        )
        low, high = ("none" if b.sigma == 0 else b.describe().split(";")[0] for b in bounds)
        print(f"it may be as little as {low} (--caution safe), or as much as {high} (--caution strong)")
    else:
        print("large parts of the image show this noise and nothing else")
    print(check_noise(pixels, model, picture.channel_axis).describe())
    if out is not None:
        print(f"written: {out}")
