"""Every CUDA kernel once on small images, each array in its own memory, for NVIDIA's memory checker.

compute-sanitizer --tool memcheck python benchmarks/gpu_small.py
compute-sanitizer --tool racecheck python benchmarks/gpu_small.py
"""

import numpy as np

import vnlem

SMALL = {"profile": "fast", "passes": 1, "patch_distance": 6}
VNLEM = {"patch_distance": 5}


def pictures():
    """A grey image, clean and with noise of standard deviation 20, and a colour image."""
    y, x = np.mgrid[:44, :52]
    clean = 100 + 50 * np.sin(x / 4) * np.cos(y / 5) + 40 * (x > 26)
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    return clean, noisy, np.stack([noisy, noisy + 5, noisy[::-1]], -1)


def calls():
    """Images, and the calls on them."""
    clean, noisy, colour = pictures()
    few = noisy[:30, :33]
    yield noisy, {"method": "nlm"}
    yield colour, {"method": "nlm", "channel_axis": -1}
    yield noisy[0], {"method": "nlm"}
    yield noisy, {"method": "nlem", "patch_size": 5, "patch_distance": 4}
    yield colour, {"method": "nlpr", "channel_axis": -1, "patch_distance": 3}
    yield noisy, SMALL
    yield noisy, SMALL | {"group": "so2"}
    yield noisy, SMALL | {"group": "similarity"}
    yield noisy, SMALL | {"aim": "perception"}
    yield np.tile(noisy, (3, 2)), SMALL | {"scales": 2}
    yield colour, SMALL | {"channel_axis": -1, "channels": "joint"}
    yield noisy, SMALL | {"group": "so2", "sigma": np.full(noisy.shape, 20.0)}
    yield clean + 1e-3 * noisy, SMALL | {"sigma": 1e-3}
    movie = np.stack([noisy, noisy[::-1], clean])[:, :24, :26]
    for axes in ("TYX", "ZYX", "NYX"):
        yield movie, SMALL | {"axes": axes}
    yield movie, {"method": "nlm", "axes": "TYX"}
    yield few, VNLEM | {"method": "vnlem", "preset": "paper"}
    yield few, VNLEM | {"method": "vnlem", "preset": "auto"}
    yield few, VNLEM | {"method": "vnlem-dd", "preset": "auto", "embedding_dim": 8}


def main():
    import cupy

    cupy.cuda.set_allocator(None)  # no pool: in a pool arrays lie side by side
    for image, options in calls():
        result = vnlem.denoise(image, **({"sigma": 20, "device": "cuda"} | options))
        if not np.isfinite(result).all():
            raise RuntimeError(f"{options} gave something that is not a number")
        print(options.get("method", "vnlr"), flush=True)


if __name__ == "__main__":
    main()
