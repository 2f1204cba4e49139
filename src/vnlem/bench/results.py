"""results.csv: one row per image, method and case, appended as results arrive, read again to continue."""

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

from vnlem import __version__
from vnlem.bench.lock import lock
from vnlem.bench.protocols import MEASURES, Case
from vnlem.bench.sources import sources_hash

FORMAT = 2
NAME = "results.csv"
COLUMNS = (
    "image",
    "category",
    "protocol",
    "size",
    "noise",
    "method",
    "parameters",
    "hash",
    "seed",
    "digest",
    "height",
    "width",
    "sigma",
    *MEASURES,
    "seconds",
    "peak_memory_mib",
)


class Key(NamedTuple):
    """What identifies a row; a row with other values is measured again."""

    image: str
    case: str
    hash: str
    seed: int | None
    digest: str


@dataclass(frozen=True)
class Row:
    """One measurement; `measures` has None for measures that failed."""

    image: str
    category: str
    case: Case
    method: str
    parameters: str
    hash: str
    seed: int | None
    digest: str
    height: int
    width: int
    sigma: float
    measures: dict[str, float | None]
    seconds: float | None
    peak_memory_mib: float | None

    @property
    def key(self) -> Key:
        """What identifies this row."""
        return Key(self.image, self.case.name, self.hash, self.seed, self.digest)

    def texts(self) -> list[str]:
        """The cells of the row in the order of COLUMNS."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= values.pop("measures")
        case = values.pop("case")
        values |= {"protocol": case.protocol, "size": case.size, "noise": case.noise}
        return ["" if values.get(name) is None else str(values[name]) for name in COLUMNS]

    @classmethod
    def from_texts(cls, cells: dict[str, str]) -> Self:
        """The row that :meth:`texts` wrote."""

        def number(name: str) -> float | None:
            return float(cells[name]) if cells[name] else None

        return cls(
            image=cells["image"],
            category=cells["category"],
            case=Case(cells["protocol"], int(cells["size"]), float(cells["noise"])),
            method=cells["method"],
            parameters=cells["parameters"],
            hash=cells["hash"],
            seed=int(cells["seed"]) if cells["seed"] else None,
            digest=cells["digest"],
            height=int(cells["height"]),
            width=int(cells["width"]),
            sigma=float(cells["sigma"]),
            measures={name: number(name) for name in MEASURES},
            seconds=number("seconds"),
            peak_memory_mib=number("peak_memory_mib"),
        )


class ResultsFile:
    """The file of results, open for appending.

    A partial last line, left by a killed run, is cut off. A file of another version or of other sources of
    the package is refused: these sources might give other numbers. So is a file that another run is writing
    to.

    fresh: discard an existing file.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path = path
        # Names that are not valid text are kept as bytes.
        self._stream = open(path, "a", encoding="utf-8", errors="surrogateescape", newline="")  # noqa: SIM115
        try:
            if not lock(self._stream.fileno()):
                raise ValueError(
                    f"another run is writing to {path}; wait for it to end, or choose another --out"
                )
            if fresh:
                os.truncate(path, 0)
            _cut_torn_line(path)
            self.rows: dict[Key, Row] = {row.key: row for row in read_rows(path)}
        except BaseException:
            self._stream.close()
            raise
        self.images = {key.image for key in self.rows}
        begins = path.stat().st_size == 0
        self._writer = csv.writer(self._stream, lineterminator="\n")
        if begins:
            self._stream.write(f"{_first_line()}\n")
            self._writer.writerow(COLUMNS)
            self._stream.flush()

    def append(self, row: Row) -> None:
        """Write a row to the file at once."""
        self._writer.writerow(row.texts())
        self._stream.flush()
        self.rows[row.key] = row

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a results file of this version and these sources."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
        first = stream.readline().rstrip("\r\n")
        if not first:
            return
        if first != _first_line():
            written = first.removeprefix("# ") if first.startswith("# vnlem bench") else "something else"
            raise ValueError(
                f"{path} was written by {written}, this is {_first_line().removeprefix('# ')}; choose "
                "another --out, or throw those results away with --fresh"
            )
        for number, cells in enumerate(csv.DictReader(stream), 3):
            try:
                yield Row.from_texts(_checked(cells))
            except (ValueError, KeyError, TypeError):
                raise ValueError(
                    f"line {number} of {path} is damaged; remove the line, it will be measured again"
                ) from None


def _checked(cells: dict[Any, Any]) -> dict[str, str]:
    if set(cells) != set(COLUMNS) or None in cells.values():
        raise ValueError
    return cells


def _first_line() -> str:
    return f"# vnlem bench {__version__}, format {FORMAT}, sources {sources_hash()}"


def _cut_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    # A run that was killed before its first row may have left the first line without the column names.
    if content.count(b"\n", 0, whole) < 2:
        whole = whole if content.startswith(b"#") and _first_line().encode() + b"\n" != content[:whole] else 0
    if whole < len(content) or whole == 0:
        os.truncate(path, whole)
