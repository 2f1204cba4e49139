"""``vnlem warm-up``: compile the kernels once, in parallel processes."""

import time
from typing import Annotated

import typer


def command(
    methods: Annotated[
        str | None, typer.Option(metavar="NAME,NAME,...", help="Methods to prepare; all when not given.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes side by side; as many as cores when not given.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing but warnings and errors.")] = False,
) -> None:
    """Compile the kernels ahead, so that the first image does not wait for it.

    Worth a line in the recipe of a container or a cluster node. NUMBA_CACHE_DIR says where machine code goes.
    """
    from vnlem.warming import warm_up

    begun = time.perf_counter()
    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    found = warm_up(names, processes)
    if not quiet:
        each = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.items())
        print(f"ready: {each}; {time.perf_counter() - begun:.1f} s in all")
