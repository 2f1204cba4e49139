"""The choices of the widget's controls with their labels, and errors of the library in these words."""

import re

NOISE = {
    "auto": "auto: find out",
    "gaussian": "white (sigma)",
    "poisson-gaussian": "photons and read noise",
    "correlated": "alike in neighbouring pixels",
    "rician": "Rician: magnitudes (MRI)",
    "speckle": "speckle (OCT, ultrasound, radar)",
    "file": "a saved model",
}
METHODS = {
    "vnlr": "best result (VNLR)",
    "vnlem": "paper: aligned patches (VNLEM)",
    "vnlem-dd": "paper: diffusion distance, slow (VNLEM-DD)",
    "nlem": "median of similar patches (NLEM)",
    "nlpr": "robust mean of similar patches (NLPR)",
    "nlm": "mean of similar patches, quick (NLM)",
}
PROFILES = {"balanced": "balanced", "fast": "fast", "quality": "quality (slower)", "best": "best (slowest)"}
ROTATIONS = {
    "d4": "quarter turns and reflections",
    "identity": "none",
    "c4": "quarter turns",
    "so2": "any angle (slower)",
    "similarity": "any angle, wide window (slowest)",
}
CAUTIONS = {"auto": "auto", "safe": "safe: texture stays", "strong": "strong: known to be noisy"}
LINES = {"auto": "auto: if they are obvious", "yes": "remove", "no": "keep"}
IMPULSES = {"auto": "auto: if they are obvious", "yes": "replace", "no": "keep"}
DEVICES = {"cpu": "processor (CPU)", "cuda": "graphics card (CUDA)", "auto": "graphics card if there is one"}

# Parameter of the library -> label of its control, and the words of its values.
_CONTROLS: dict[str, tuple[str, dict[str, str]]] = {
    "noise_model": ("noise", NOISE),
    "method": ("method", METHODS),
    "profile": ("profile", PROFILES),
    "group": ("rotations", ROTATIONS),
    "caution": ("caution", CAUTIONS),
    "device": ("device", DEVICES),
    "read_noise": ("read noise", {}),
    "channel_axis": ("axes", {}),
}
# Advice that only a programmer can follow -> what to do in napari.
_ADVICE = (
    (r"pass a smaller patch_size or a larger image", "take a larger image, or another method"),
    (
        r"replace them first, e\.g\. with numpy\.nan_to_num; vnlem\.denoise takes NaN for missing pixels",
        "give infinite pixels a number, or crop the image, before you denoise",
    ),
    (r"convert it to a grey scale first, e\.g\. image\.astype\(float\)", "choose a layer of grey values"),
    (r"pass the magnitude \(abs of the complex image\), or", "choose"),
    (r", or denoise page by page", ""),
)


def in_words_of_the_widget(message: str) -> str:
    """An error of the library in the words of the controls.

    >>> in_words_of_the_widget("group='so2' is not available for stacks")
    'rotations "any angle (slower)" is not available for stacks'
    """
    for pattern, advice in _ADVICE:
        message = re.sub(pattern, advice, message)
    for name, (label, choices) in _CONTROLS.items():
        message = re.sub(
            rf"\b{name}='([\w-]+)'",
            lambda found, label=label, choices=choices: (  # type: ignore[misc]
                f'{label} "{choices.get(found[1], found[1])}"'
            ),
            message,
        )
        if "_" in name:
            message = re.sub(rf"\b{name}\b", label, message)
    return message
