"""Channels together or one by one: what `channels="auto"` decides, and the result of either choice.

Files under the folders of DATA: colour images are used unchanged; grey images of --unrelated folders are
joined, three at a time, into images whose channels have nothing in common. White noise is added.
Prints the gain of joint handling in decibels, the decision, and the cost of wrong decisions.
"""

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import vnlem
from vnlem import io
from vnlem.features.channels import handling

SIDE = 256


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--colour", default="photo_pairs,polyu,movies_colour,colour")
    parser.add_argument("--unrelated", default="fmd,microscopy")
    parser.add_argument("--sigmas", default="5,10,25,50")
    options = parser.parse_args()
    losses = []
    images = [*_colour(options.data, options.colour), *_unrelated(options.data, options.unrelated)]
    for sigma in map(float, options.sigmas.split(",")):
        for name, clean in images:
            seed = zlib.crc32(f"{name} {sigma}".encode())
            noisy = clean + np.random.default_rng(seed).normal(0, sigma, clean.shape)
            gain = _psnr(clean, noisy, sigma, "joint") - _psnr(clean, noisy, sigma, "separate")
            decided = _decided(noisy, sigma)
            losses.append(max(gain, 0.0) - (gain if decided == "joint" else 0.0))
            print(f"{name:44s} {sigma:4g} {gain:+6.2f} {decided}", flush=True)
    wrong = sum(loss > 0.02 for loss in losses)
    print(f"{wrong} of {len(losses)} wrong, mean loss {np.mean(losses):.4f} dB, worst {max(losses):.2f} dB")


def _decided(noisy: np.ndarray, sigma: float) -> str:
    return handling("auto", len(noisy), lambda: (noisy, np.full(len(noisy), sigma)))


def _colour(data: Path, folders: str) -> Iterator[tuple[str, np.ndarray]]:
    for path in _files(data, folders):
        picture = io.read(path)
        if picture.n_channels == 3 and "_noisy" not in path.stem:
            yield path.stem, np.moveaxis(_crop(next(picture.pages()), picture.channel_axis), -1, 0)


def _unrelated(data: Path, folders: str) -> Iterator[tuple[str, np.ndarray]]:
    grey = []
    for path in _files(data, folders):
        if path.stem.endswith("_ref"):
            plane = _crop(io.read(path).pixels, None)
            if plane.shape == (SIDE, SIDE):
                grey.append((path.stem[:-4], plane * 200 / max(float(np.quantile(plane, 0.998)), 1.0)))
    for number in range(len(grey)):
        # Neighbours in the folder may show the same cells.
        chosen = [grey[(number + step) % len(grey)] for step in (0, 4, 9)]
        yield "+".join(name[:13] for name, _ in chosen), np.stack([plane for _, plane in chosen])


def _files(data: Path, folders: str) -> list[Path]:
    kinds = (".png", ".jpg", ".tif")
    found = [path for name in folders.split(",") for path in sorted((data / name).iterdir())]
    return [path for path in found if path.suffix in kinds]


def _crop(page: np.ndarray, channel_axis: int | None) -> np.ndarray:
    """The middle of a page, colours last."""
    image = np.moveaxis(page, channel_axis, -1) if channel_axis is not None else page
    top, left = (max(side - SIDE, 0) // 2 for side in image.shape[:2])
    return image[top : top + SIDE, left : left + SIDE].astype(np.float64)


def _psnr(clean: np.ndarray, noisy: np.ndarray, sigma: float, channels: str) -> float:
    found = vnlem.denoise_vnlr(noisy, sigma, channel_axis=0, profile="fast", channels=channels)
    return float(vnlem.metrics.psnr(clean, found, data_range=255.0))


if __name__ == "__main__":
    main()
