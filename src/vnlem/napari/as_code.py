"""What the widget does, as text to paste: lines of Python, or a command for a shell."""

import shlex

from vnlem.napari.settings import Settings


def as_python(settings: Settings, image: str, axes: str, colours: int = 0) -> str:
    """Lines of Python that do what the widget does.

    image: the expression that gives the pixels.
    axes: one letter for each dimension.
    colours: how many the last dimension of an RGB layer holds: 3, or 4 with transparency; 0 for other layers.

    >>> print(as_python(Settings(profile="fast"), "viewer.layers['cells'].data", "YX"))
    import vnlem
    <BLANKLINE>
    image = viewer.layers['cells'].data
    result = vnlem.denoise(image, method='vnlr', profile='fast')
    """
    words = [f"{name}={value!r}" for name, value in settings.arguments().items()]
    if settings.noise == "file":
        words.append(f"noise_model=vnlem.NoiseModel.load({settings.model_file!r})")
    alone = not colours and set(axes) == set("CYX")
    if colours:
        words.append("channel_axis=-1")
    elif axes != "YX" and not alone:
        words.append(f"axes={axes!r}")
        words += [f"{name}={value!r}" for name, value in settings.channel_arguments(axes).items()]
    lines = ["import vnlem", "", f"image = {image}{'[..., :3]' if colours == 4 else ''}"]
    each = f"[vnlem.denoise({', '.join(['page', *words])}) for page in pages]"
    if colours and axes != "YXC":
        lines.insert(0, "import numpy as np")
        lines.append("pages = image.reshape(-1, *image.shape[-3:])")
        lines.append(f"result = np.stack({each}).reshape(image.shape)")
    elif alone:
        # The channels of a layer are denoised one by one.
        channel = axes.index("C")
        lines.insert(0, "import numpy as np")
        lines.append(f"pages = np.moveaxis(image, {channel}, 0)")
        lines.append(f"result = np.stack({each}, axis={channel})")
    else:
        lines.append(f"result = vnlem.denoise({', '.join(['image', *words])})")
    return "\n".join(lines)


def as_command(settings: Settings, source: str, target: str, axes: str, colours: int = 0) -> str:
    """The line for a shell that does what the widget does.

    >>> as_command(Settings(noise="gaussian", sigma=5.0), "my cells.tif", "out.tif", "TYX")
    "vnlem denoise 'my cells.tif' out.tif --method vnlr --profile balanced --sigma 5.0 --axes TYX"
    """
    words = ["vnlem", "denoise", source, target]
    for name, value in settings.arguments().items():
        if name == "group":
            words += ["--set", f"group={value}"]
        elif isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            words += [f"--{name.replace('_', '-')}", str(value)]
    if settings.noise == "file":
        words += ["--noise", settings.model_file]
    if axes != "YX" and not colours:
        words += ["--axes", axes]
        for name, value in settings.channel_arguments(axes).items():
            words += ["--set", f"{name}={value}"]
    return shlex.join(words)
