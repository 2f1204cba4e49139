"""The state of a run: a folder next to the target with its fingerprint and a marker for each finished unit.

``image.ome.zarr`` has ``image.ome.zarr.vnlem`` next to it. A marker is written when the files of its unit are
safely on disk, so a unit with a marker can be trusted; all others are done again.
"""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnlem.large.nodes import PARTIAL, write_json

SUFFIX = ".vnlem"
PER_FOLDER = 1000
DIGITS = 9  # of a marker's name
TRIES = 5  # to begin a run while others remove the remains of an old one


def fingerprint(values: dict[str, Any]) -> str:
    """A short text that changes with anything in `values`.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1}) != fingerprint({"a": 2, "b": 2})
    True
    """
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Markers:
    """The folder next to a target."""

    folder: Path

    @classmethod
    def beside(cls, target: Path) -> "Markers":
        """The folder that belongs to a target."""
        return cls(target.with_name(target.name + SUFFIX))

    def read_run(self) -> dict[str, Any] | None:
        """The record of an earlier run; None if there was none."""
        try:
            found: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
            return found
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"cannot read {self.folder / 'run.json'}: it is damaged ({error})") from error

    def write_run(self, values: dict[str, Any]) -> None:
        """Record what this run is."""
        write_json(self.folder / "run.json", values)

    def claim_run(self, values: dict[str, Any]) -> bool:
        """Record what this run is, unless another process has; exactly one of several succeeds."""
        for _ in range(TRIES):
            mine = self.folder / f"run-{secrets.token_hex(6)}{PARTIAL}"
            with suppress(FileNotFoundError):  # another process dropped the folder of an old run
                write_json(mine, values)
                try:
                    os.link(mine, self.folder / "run.json")
                except FileExistsError:
                    return False
                finally:
                    mine.unlink(missing_ok=True)
                return True
        return False

    def forget_run(self) -> None:
        """Remove the record of a run whose target was removed since; a run that began meanwhile stays."""
        aside = self.folder.with_name(f"{self.folder.name}.{secrets.token_hex(6)}{PARTIAL}")
        with suppress(FileNotFoundError):
            self.folder.rename(aside)
        found = Markers(aside).read_run()
        if found is not None and not found.get("complete"):
            with suppress(OSError):
                aside.rename(self.folder)
        shutil.rmtree(aside, ignore_errors=True)

    def set_done(self, level: int, number: int, **values: Any) -> None:
        """Mark a unit as done."""
        write_json(self._path(level, number), values)

    def done(self, level: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """The marked units of a level, with what their markers say; damaged markers do not count."""
        for path in sorted((self.folder / f"level-{level}").glob(f"*/{'[0-9]' * DIGITS}")):
            try:
                yield int(path.name), json.loads(path.read_text())
            except ValueError:
                continue

    def forget_units(self) -> None:
        """Remove the markers of the units when the whole run is done."""
        for folder in self.folder.glob("level-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _path(self, level: int, number: int) -> Path:
        return self.folder / f"level-{level}" / f"{number // PER_FOLDER:06d}" / f"{number:0{DIGITS}d}"
