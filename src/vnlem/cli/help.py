"""How the help pages look: texts of options from docstrings, paragraphs, panels and examples."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import typer

# The panels of options of `vnlem denoise`; other options name their panel where they are declared.
_PANELS = {
    "The noise (found from the image by default)": (
        "sigma",
        "noise_model",
        "noise",
        "gain",
        "offset",
        "read_noise",
        "caution",
        "coils",
        "looks",
        "domain",
    ),
    "What the dimensions of the image mean": ("axes", "channels", "page_by_page"),
}


def parameter_help(function: Callable[..., Any], name: str) -> str:
    """What a numpydoc docstring says about a parameter.

    >>> from vnlem.api import denoise
    >>> parameter_help(denoise, "workers")
    'Threads; all cores when not given. The result does not depend on it.'
    """
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    start = next((k for k, line in enumerate(lines) if line.startswith(f"{name} : ")), None)
    if start is None:
        raise LookupError(f"the docstring of {function.__name__} says nothing about {name}")
    text: list[str] = []
    for line in lines[start + 1 :]:
        if not line.startswith(" "):
            break
        text.append(line.strip())
    return " ".join(text).replace("when None", "when not given").replace("When None", "When not given")


def tidy(command: Any, examples: Sequence[str]) -> None:
    """Make a help page easy to read at 80 columns: whole paragraphs, flags without a type, examples."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    if examples:
        command.epilog = "\n\n".join(["Examples:", *examples])
    help_option = command.get_help_option(typer.Context(command))
    for parameter in [*command.params, *filter(None, [help_option])]:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        if command.name == "denoise":
            for panel, names in _PANELS.items():
                if parameter.name in names:
                    parameter.rich_help_panel = panel
