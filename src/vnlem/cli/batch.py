"""``vnlem denoise FOLDER OUT --pattern "*.czi"``: all files of a folder, without partial files.

A file that cannot be read or denoised gives one line of error, and the others are still denoised. The table
in OUT describes each file; a stopped run continues from it.
"""

import csv
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from vnlem.cli.errors import one_line
from vnlem.cli.large import is_store
from vnlem.cli.one_noise import OneModel, check, models_for

TABLE = "vnlem.csv"
SETTINGS = "vnlem.json"
_PANEL = "The files of a folder"
# Options that change how the work is done but not its result.
_NO_SETTINGS = (
    "source",
    "target",
    "pattern",
    "workers",
    "quiet",
    "overwrite",
    "resume",
    "memory",
    "device",
    "cluster",
)

Pattern = Annotated[
    str | None,
    typer.Option(
        metavar="'*.czi'",
        help="Denoise all files of the folder IN that match, '**/*.tif' also in the folders below, into the "
        f"folder OUT; {TABLE} there says what was found. --resume continues.",
        rich_help_panel=_PANEL,
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        metavar=".ome.tif",
        help="Suffix of the files in OUT; their own if it can be written, otherwise .ome.tif.",
        rich_help_panel=_PANEL,
    ),
]


OneNoiseModel = Annotated[
    bool,
    typer.Option(
        "--one-noise-model",
        help="One noise model for all files of one detector and setting (same format, size, dtype, channels, "
        f"camera and exposure), estimated from some of them; {TABLE} names it.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass
class Row:
    """The outcome for one image: a line of the table."""

    file: str
    image: str = ""
    output: str = ""
    status: str = "failed"  # or "done"
    shape: str = ""
    axes: str = ""
    dtype: str = ""
    found: str = ""  # method, noise, time, in words
    noise_model: str = ""  # the shared one, with --one-noise-model
    seconds: str = ""
    message: str = ""


def run(denoise: Callable[..., str], arguments: dict[str, Any]) -> str:
    """Denoise the files that match, one by one.

    denoise: the command for a single file.
    arguments: its arguments.
    """
    source, target, quiet = arguments["source"], arguments["target"], arguments["quiet"]
    _refuse(arguments)
    files = _matching(source, target, arguments["pattern"])
    earlier = _begin(target, arguments)
    rows: list[Row] = []
    taken: dict[Path, str] = {}
    models: dict[Path, OneModel] = {}
    if arguments["one_noise_model"]:
        named = [(file, file.relative_to(source).as_posix()) for file in files]
        jobs = [job for file, name in named for job in _jobs(file, name, target, arguments["to"])]
        models = models_for([path for _, path, _ in jobs if path is not None], target, arguments)
    for file in files:
        name = file.relative_to(source).as_posix()
        for row, path, out in _jobs(file, name, target, arguments["to"]):
            rows.append(row)
            if path is None or out is None:
                pass
            elif out in taken:
                row.message = (
                    f"{taken[out]} is written to {row.output} already; choose another suffix with --to"
                )
            else:
                taken[out] = name
                _one(denoise, arguments, row, path, out, earlier.get(row.output), models.get(path))
            _say(row, quiet)
            _write_table(target, rows, earlier)
    failed = [row for row in rows if row.status == "failed"]
    if failed:
        others = f", the others are in {target}" if len(failed) < len(rows) else ""
        raise ValueError(
            f"{len(failed)} of {len(rows)} images could not be denoised{others}; {target / TABLE} says why, "
            "and --resume does them again"
        )
    line = f"{len(rows)} images of {len(files)} files: {target / TABLE}"
    if not quiet:
        print(line)
    return line


def _refuse(arguments: dict[str, Any]) -> None:
    source, target = arguments["source"], arguments["target"]
    if not source.is_dir():
        raise ValueError(f"--pattern is for the files of a folder, and {source} is none; leave it out")
    if target.exists() and not target.is_dir():
        raise ValueError(f"OUT ({target}) must be a folder, since --pattern names several files")
    if not target.exists() and not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}; create it first")
    if target.exists() and target.samefile(source):
        raise ValueError(f"OUT is IN ({target}); choose another folder, so that the originals stay")
    for name in ("dry_run", "part", "region"):
        if arguments[name]:
            raise ValueError(f"--{name.replace('_', '-')} is for a single file; leave it out with --pattern")
    if arguments["resume"] and arguments["overwrite"]:
        raise ValueError("--resume keeps what is done and --overwrite replaces it; choose one of them")
    if arguments["one_noise_model"]:
        check(arguments)
    if arguments["to"] is not None and not arguments["to"].startswith("."):
        raise ValueError(f"--to must be a suffix such as .ome.tif, got {arguments['to']!r}")


def _matching(source: Path, target: Path, pattern: str) -> list[Path]:
    try:
        found = sorted(source.glob(pattern))
    except (ValueError, NotImplementedError) as error:
        raise ValueError(
            f"--pattern {pattern!r} is not a valid pattern ({error}); use e.g. '*.tif' or '**/*.tif'"
        ) from error
    files = [path for path in found if path.is_file() or is_store(path)]
    files = [path for path in files if target.resolve() not in path.resolve().parents]
    if not files:
        raise ValueError(f"no file in {source} matches {pattern!r}; use e.g. '*.tif' or '**/*.tif'")
    return files


def _begin(target: Path, arguments: dict[str, Any]) -> dict[str, Row]:
    """Prepare OUT; return the rows of an earlier run to continue, by their output files."""
    from vnlem.large.nodes import write_json
    from vnlem.large.target import differences

    settings = {name: value for name, value in arguments.items() if name not in _NO_SETTINGS}
    known = target / SETTINGS
    if known.exists() and not arguments["overwrite"]:
        if not arguments["resume"]:
            raise ValueError(
                f"{target} was begun before; continue with --resume, or replace it with --overwrite"
            )
        before = json.loads(known.read_text())
        changed = "; ".join(differences(before, settings)[:3])
        if changed:
            raise ValueError(
                f"{target} was begun with other options ({changed}); repeat those, or choose another folder"
            )
    target.mkdir(exist_ok=True)
    write_json(known, json.loads(json.dumps(settings, default=str)))
    if not arguments["resume"] or not (target / TABLE).exists():
        return {}
    with open(target / TABLE, newline="", encoding="utf-8") as stream:
        names = {field.name for field in fields(Row)}
        rows = [Row(**{k: v for k, v in row.items() if k in names}) for row in csv.DictReader(stream)]
    return {row.output: row for row in rows if row.status == "done"}


def _jobs(
    file: Path, name: str, target: Path, to: str | None
) -> Iterator[tuple[Row, Path | None, Path | None]]:
    """Every image of a file: its row, what to read and what to write; a damaged file has only a row."""
    from vnlem import io
    from vnlem.io.formats import find_format, sniff

    try:
        if is_store(file):
            yield Row(name, output=name), file, target / name
            return
        found = find_format(sniff(file))
        stem, suffix = _split(name, found, to)
        if not found.open:
            yield Row(name, output=stem + suffix), file, target / (stem + suffix)
            return
        with io.open_series(file) as series:
            wanted = [one for one in series if one.preferred] or list(series)
        if not wanted:
            raise ValueError(f"cannot read {file}: it holds no image")
    except Exception as error:
        yield Row(name, message=one_line(error)), None, None
        return
    for one in wanted:
        several = len(wanted) > 1
        out = f"{stem}.{one.key}{suffix}" if several else stem + suffix
        size = "x".join(map(str, one.shape))
        row = Row(name, one.name or one.key, out, shape=size, axes=one.axes, dtype=str(one.dtype))
        yield row, Path(f"{file}:{one.key}") if len(series) > 1 else file, target / out


def _split(name: str, found: Any, to: str | None) -> tuple[str, str]:
    """A name without its suffix, and the suffix of the output."""
    own = max((s for s in found.suffixes if name.lower().endswith(s)), key=len, default=Path(name).suffix)
    for longer in (".ome.tif", ".ome.tiff"):
        own = longer if name.lower().endswith(longer) else own
    stem = name[: len(name) - len(own)]
    if to is not None:
        return stem, to
    if not found.write:
        return stem, found.instead.split()[0]
    return stem, name[len(stem) :] if own in found.suffixes or ".ome" in own else found.suffixes[0]


def _one(
    denoise: Callable[..., str],
    arguments: dict[str, Any],
    row: Row,
    path: Path,
    out: Path,
    earlier: Row | None,
    model: OneModel | None,
) -> None:
    """Denoise one image, and write the outcome into its row."""
    begun = time.perf_counter()
    in_parts = out.with_name(f"{out.name}.vnlem").exists()
    if arguments["resume"] and out.exists() and not in_parts:
        row.status, row.found = "done", "done before"
        if earlier is not None:
            row.found, row.seconds, row.noise_model = earlier.found, earlier.seconds, earlier.noise_model
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        single: dict[str, Any] = {"source": path, "target": out, "pattern": None, "to": None, "quiet": True}
        single |= {"resume": arguments["resume"] and in_parts, "one_noise_model": False}
        if model is not None:
            single |= {"noise": model.path, "noise_model": "auto"}
        row.found = denoise(**{**arguments, **single}).rpartition(": ")[0]
        if arguments["one_noise_model"]:
            row.noise_model = "its own" if model is None else model.words
        row.status = "done"
    except Exception as error:  # whatever is wrong with one file, the others go on
        row.message = one_line(error)
    row.seconds = f"{time.perf_counter() - begun:.1f}"


def _say(row: Row, quiet: bool) -> None:
    image = f" ({row.image})" if row.image else ""
    if row.status == "failed":
        print(f"vnlem: {row.file}{image} failed: {row.message}", file=sys.stderr)
    elif not quiet:
        shared = f", noise model: {row.noise_model}" if row.noise_model else ""
        print(f"{row.file}{image}: {row.found}{shared}: {row.output}", flush=True)


def _write_table(target: Path, rows: list[Row], earlier: dict[str, Row]) -> None:
    """All rows, including pending ones of the earlier run: stopping loses none."""
    from vnlem.io.atomic import whole_file

    done = {row.output for row in rows}
    kept = [row for output, row in earlier.items() if output not in done]
    with (
        whole_file(target / TABLE) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as stream,
    ):
        table = csv.DictWriter(stream, [field.name for field in fields(Row)])
        table.writeheader()
        table.writerows(asdict(row) for row in [*rows, *kept])
