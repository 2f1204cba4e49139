"""What user pages tell readers to type: blocks of Python and of commands, run unchanged."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    """The fenced blocks of a language, in order."""
    return [text for kind, text in _FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands(page):
    """Every line of the shell blocks, split into words, without comments and continued lines joined."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


def run_python(page):
    """Run all Python blocks of a page in one namespace."""
    namespace = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), namespace)
    return namespace
