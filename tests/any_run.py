"""Many drawn cases in processes that may die, and what an error or a warning of the package looks like.

Shared by any_call.py (calls), any_file.py (damaged files) and any_command.py (command lines).
"""

import argparse
import faulthandler
import re
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

HANGS = 600  # seconds; kernels may have to be compiled, and the machine may be busy
CHUNK = 50  # cases of a process

# Words of Python and of other libraries, which no user can act on.
FOREIGN = re.compile(
    r"Traceback|NoneType|has no attribute|object is not|not subscriptable|unsupported operand|positional arg"
    r"|unexpected keyword|KeyError|IndexError|invalid literal|could not convert|cannot reshape|broadcast"
    r"|buffer size|unpack requires|list index|ufunc|<built-in|0x[0-9a-f]{6}|inhomogeneous"
)


def unclear(error: BaseException) -> list[str]:
    """What is wrong with an error. The package raises one sentence of its own."""
    if isinstance(error, MemoryError):  # the command line reports it
        return []
    last = traceback.extract_tb(error.__traceback__)[-1]
    own = "vnlem" in last.filename and (last.line or "").startswith("raise ")
    text = str(error)
    words = re.sub(r"\(.*\)", "", text)  # the cause may follow in brackets
    kind = isinstance(error, ValueError | TypeError | OSError | ImportError)
    if own and kind and text and "\n" not in text and not FOREIGN.search(words):
        return []
    return [f"unclear {type(error).__name__}: {' '.join(text.split())[:300]} ({last.filename}:{last.lineno})"]


def foreign_warnings(caught: list[warnings.WarningMessage], callers: tuple[str, ...]) -> list[str]:
    """Warnings that do not point at the caller's own line, as those of the package do."""
    return [
        f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno})"
        for one in caught
        if not any(name in one.filename for name in callers) or FOREIGN.search(str(one.message))
    ]


def main(
    script: str,
    description: str | None,
    default: int,
    draw: Callable[[int], Any],
    problems: Callable[[Any], list[str]],
) -> None:
    """The command line: a case depends only on its number."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=default)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="one case, printed in full")
    parser.add_argument("--chunk", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        case = draw(options.only)
        print(case)
        print("\n".join(problems(case)) or "all is well")
    elif options.chunk:
        for number in range(*options.chunk):
            print(f"\nbegin {number}", flush=True)
            faulthandler.dump_traceback_later(HANGS, exit=True)
            case = draw(number)
            found = problems(case)
            if found:
                print(f"{case} -> {'; '.join(found)}", flush=True)
    else:
        numbers = range(options.first, options.first + options.cases)
        sys.exit(_run(script, numbers, options.jobs, draw) > 0)


def _run(script: str, numbers: range, jobs: int, draw: Callable[[int], Any]) -> int:
    """Run cases in separate processes; returns how many went wrong."""
    wrong, done, begun = 0, 0, time.monotonic()
    chunks = [numbers[k : k + CHUNK] for k in range(0, len(numbers), CHUNK)]
    active: list[tuple[range, subprocess.Popen[str]]] = []
    while chunks or active:
        while chunks and len(active) < jobs:
            chunk = chunks.pop(0)
            command = [sys.executable, script, "--chunk", str(chunk.start), str(chunk.stop)]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            active.append((chunk, child))
        chunk, child = active.pop(0)
        lines = child.communicate()[0].splitlines()
        begins = [int(line.split()[1]) for line in lines if line.startswith("begin ")]
        told = [line for line in lines if line.startswith("case ")]
        if child.returncode:
            at = begins[-1] if begins else chunk.start
            told.append(f"{draw(at)} -> the process died or hung (status {child.returncode})")
            if at + 1 < chunk.stop:
                chunks.insert(0, range(at + 1, chunk.stop))
        for line in told:
            print(line, flush=True)
        wrong += len(told)
        done += len(begins)
    print(f"{done} cases, {wrong} wrong, {time.monotonic() - begun:.0f} s")
    return wrong
