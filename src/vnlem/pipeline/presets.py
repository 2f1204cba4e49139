"""Which presets exist for which method."""

from vnlem.pipeline import checks

METHODS_WITH_PAPER_PRESET = ("nlem", "vnlem", "vnlem-dd")


def check_preset(method: str, preset: str) -> str:
    """A preset the method has, or an error that names those which have it.

    Examples
    --------
    >>> check_preset("nlem", "paper")
    'paper'
    >>> check_preset("nlm", "paper")
    Traceback (most recent call last):
    ...
    ValueError: preset='paper' exists for nlem, vnlem, vnlem-dd, not for nlm; use preset='auto'
    """
    checks.choice("preset", preset, ("auto", "paper"))
    if preset == "paper" and method not in METHODS_WITH_PAPER_PRESET:
        names = ", ".join(METHODS_WITH_PAPER_PRESET)
        raise ValueError(f"preset='paper' exists for {names}, not for {method}; use preset='auto'")
    return preset
