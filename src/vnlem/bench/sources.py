"""The fingerprint of the code that makes figures: stored results of other code are not mixed with it."""

import functools
import hashlib
from pathlib import Path

# Folders that only show results or talk to users: they do not change results.
_WITHOUT_A_SAY = ("cli", "figures", "napari", "bench/assets")


@functools.cache
def sources_hash(*folders: str) -> str:
    """A short hash of every source file of the package that a denoised image or a measure depends on.

    With `folders`, only of the files in these: "metrics" and "bench" for measures of other programs' images.

    >>> len(sources_hash())
    12
    """
    package = Path(__file__).parents[1]
    found = hashlib.blake2b(digest_size=6)
    for source in sorted(package.rglob("*.py")):
        name = source.relative_to(package).as_posix()
        chosen = not folders or name.startswith(tuple(f"{folder}/" for folder in folders))
        if chosen and not name.startswith(tuple(f"{folder}/" for folder in _WITHOUT_A_SAY)):
            found.update(name.encode())
            found.update(source.read_bytes())
    return found.hexdigest()
