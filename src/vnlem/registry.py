"""Which methods there are, where each one lives, and what solves it on which engine.

Only this module says where methods live. Everything here is text until it is asked for, so that methods
may ask for their own solvers and nothing heavy is loaded early. A new method is a line in METHODS; the other
tables say what else a method can do, and a method may be missing from all of them.
"""

from typing import Any

from vnlem.pipeline import checks
from vnlem.pipeline.places import load

# Method name -> where its public function lives. What solves it is called `solve` and stands beside it: it
# takes a Job and gives the denoised planes.
METHODS = {
    "nlm": "vnlem.methods.nlm:denoise_nlm",
    "nlem": "vnlem.methods.nlem:denoise_nlem",
    "nlpr": "vnlem.methods.nlem:denoise_nlpr",
    "vnlem": "vnlem.methods.vnlem:denoise_vnlem",
    "vnlem-dd": "vnlem.methods.vnlem_dd:denoise_vnlem_dd",
    "vnlr": "vnlem.methods.vnlr:denoise_vnlr",
}
DEFAULT_METHOD = "vnlr"
DEFAULT_SCALES = 3  # where the noise is estimated, for methods that can work at several

# Methods whose kernels take longest to compile, and are begun first where several are compiled ahead.

# Methods with parameters of the paper.
METHODS_WITH_PAPER_PRESET = ("nlem", "vnlem", "vnlem-dd")

# (method, engine) -> what solves it in another way than `solve`. A new backend is a line per method.
SOLVERS = {
    ("nlm", "reference"): "vnlem.methods.nlm:solve_plainly",
    ("nlem", "reference"): "vnlem.methods.nlem:solve_plainly",
    ("nlem", "printed"): "vnlem.methods.nlem:solve_plainly",
    ("nlpr", "reference"): "vnlem.methods.nlem:solve_plainly",
    ("vnlem", "printed"): "vnlem.methods.vnlem:solve_as_printed",
    ("vnlem-dd", "printed"): "vnlem.methods.vnlem_dd:solve_as_printed",
    ("vnlr", "reference"): "vnlem.methods.vnlr_passes:solve_plainly",
    ("nlm", "cuda"): "vnlem.methods.cuda.nlm:solve",
    ("nlem", "cuda"): "vnlem.methods.cuda.nlem:solve",
    ("nlpr", "cuda"): "vnlem.methods.cuda.nlem:solve",
    ("vnlem", "cuda"): "vnlem.methods.cuda.vnlem:solve",
    ("vnlem-dd", "cuda"): "vnlem.methods.cuda.vnlem_dd:solve",
    ("vnlr", "cuda"): "vnlem.methods.cuda.vnlr:solve",
}

# Method -> how far around a part of an image its result depends on pixels, from the method's parameters.
# A method that is not here needs the whole image at once.
HALOS = {
    "nlm": "vnlem.methods.window:halo",
    "nlem": "vnlem.methods.window:halo",
    "nlpr": "vnlem.methods.window:halo",
    "vnlem": "vnlem.methods.vnlem:halo",
    "vnlr": "vnlem.methods.vnlr_passes:halo",
}

# Where less than all of the halo is worked on in every pass: the mean over the passes.
WORK_HALOS = {"vnlr": "vnlem.methods.vnlr_passes:work_halo"}
# Method -> what prepares it for all pages of a series at once; other methods take stacks page by page.
STACKS = {"vnlr": "vnlem.methods.vnlr_stack:prepare", "nlm": "vnlem.methods.nlm_stack:prepare"}
# The same on a device: what takes the standardised pages and gives the denoised ones.
STACK_SOLVERS = {
    ("vnlr", "cuda"): "vnlem.methods.cuda.vnlr_stack:solve_stack",
    ("nlm", "cuda"): "vnlem.methods.cuda.nlm_stack:solve_stack",
}
# The series it can do: along time, along depth, several images.
STACK_KINDS = {"vnlr": "TZN", "nlm": "TZ"}
# How far around a part of a stack its result depends on pixels, and how many planes it holds.
STACK_HALOS = {"vnlr": "vnlem.methods.vnlr_stack_params:halo", "nlm": "vnlem.methods.nlm_stack:halo"}
STACK_PLANES = {
    "vnlr": "vnlem.methods.vnlr_stack_params:planes_in_flight",
    "nlm": "vnlem.methods.nlm_stack:planes_in_flight",
}


def find_method(name: str) -> Any:
    """The public function of a method; names accept - and _.

    Examples
    --------
    >>> find_method("nlm").__name__
    'denoise_nlm'
    """
    key = str(name).lower().replace("_", "-")
    if key not in METHODS:
        raise ValueError(f"unknown method {name!r}; the methods are {', '.join(METHODS)}")
    return load(METHODS[key])


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


def find_solver(method: str, engine: str, device: str = "cpu") -> Any:
    """The solver of a method on an engine and a device, or an error that names those it has.

    Examples
    --------
    >>> find_solver("nlm", "fast").__module__
    'vnlem.methods.nlm'
    """
    if device != "cpu":
        if engine != "fast":
            raise ValueError(f"engine={engine!r} runs on the CPU only; pass device='cpu'")
        if (method, "cuda") not in SOLVERS:
            able = ", ".join(name for name, known in SOLVERS if known == "cuda")
            raise ValueError(f"{method} does not run on a GPU; pass device='cpu', or one of {able}")
        return load(SOLVERS[method, "cuda"])
    if engine == "fast":
        module, _ = METHODS[method].split(":")
        return load(f"{module}:solve")
    others = (known for name, known in SOLVERS if name == method and known != "cuda")
    checks.choice("engine", engine, ("fast", *others))
    return load(SOLVERS[method, engine])


def find_halo(method: str) -> Any:
    """The function that gives a method's halo from its parameters.

    Examples
    --------
    >>> find_halo("vnlem-dd")
    Traceback (most recent call last):
    ...
    ValueError: vnlem-dd needs the whole image at once; in parts there are nlm, nlem, nlpr, vnlem, vnlr
    """
    if method not in HALOS:
        raise ValueError(f"{method} needs the whole image at once; in parts there are {', '.join(HALOS)}")
    return load(HALOS[method])


def find_work_halo(method: str) -> Any:
    """The function that gives the mean width of what is worked on around a part of an image."""
    return load(WORK_HALOS[method]) if method in WORK_HALOS else find_halo(method)


def find_stack_method(name: str, kind: str = "") -> Any:
    """What denoises all pages of a series together, or None for methods that take them one by one.

    Parameters
    ----------
    name : str
    kind : {"", "T", "Z", "N"}
        The kind of series; any when empty.

    Examples
    --------
    >>> find_stack_method("vnlem") is None, find_stack_method("nlm", "N") is None
    (True, True)
    """
    key = str(name).lower().replace("_", "-")
    return load(STACKS[key]) if key in STACKS and kind in STACK_KINDS[key] else None


def find_stack_solver(name: str, engine: str, device: str) -> Any:
    """What denoises the pages of a series together on a device, for the engine "fast"."""
    if engine != "fast":
        raise ValueError(f"engine={engine!r} runs on the CPU only; pass device='cpu'")
    key = str(name).lower().replace("_", "-")
    return load(STACK_SOLVERS[key, device.partition(":")[0]])


def find_stack_needs(name: str) -> tuple[Any, Any]:
    """The functions that give a stack method's halo and its planes in flight from its parameters."""
    key = str(name).lower().replace("_", "-")
    return load(STACK_HALOS[key]), load(STACK_PLANES[key])
