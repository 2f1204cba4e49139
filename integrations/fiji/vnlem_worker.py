"""The Python side of the Fiji script: an Appose task that denoises an image in shared memory, in place.

Inputs: image (appose.NDArray), axes (a letter for each axis, "YX" for a single image), sigma (None to
estimate the noise), profile. Output: noise, in words.
"""

# ruff: noqa: F821 - Appose gives a script its inputs, and `task`, as names.
import vnlem

pixels = image.ndarray()
task.update("denoising", current=0, maximum=100)
options = {} if axes == "YX" else {"axes": axes}
result, info = vnlem.denoise(
    pixels.copy(),
    sigma,
    profile=profile,
    progress=lambda done, total: task.update(current=int(100 * done / max(total, 1)), maximum=100),
    return_info=True,
    **options,
)
pixels[...] = result
models = info.details.get("noise_models") or [info.noise]
task.outputs["noise"] = "; ".join("sigma given" if model is None else model.describe() for model in models)
