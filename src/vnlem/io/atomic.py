"""Atomic writing: a file appears complete or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name next to `path` to write to; it becomes `path` when the block ends well.

    On any failure, including Ctrl-C, the temporary file is removed and an existing file stays unchanged.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    target = Path(os.path.realpath(path))  # a link stays a link, the file it points to is replaced
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; create it first")
    temporary = target.with_name(f".{target.stem[:100]}-{secrets.token_hex(6)}{target.suffix}")
    try:
        # Not tempfile.mkstemp: the file gets the permissions of any new file of this user.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o7777)
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
