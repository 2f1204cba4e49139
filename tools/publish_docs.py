"""Put a built site next to those of other versions, with the list that its version switcher reads.

    python tools/publish_docs.py BUILT SITE VERSION ADDRESS

SITE/VERSION becomes a copy of BUILT, SITE/versions.json lists all versions with their addresses below
ADDRESS, and SITE/index.html leads to the newest release, or to "dev" before the first one.
`.github/workflows/docs.yml` runs this on the branch that the site is served from.
"""

import json
import re
import shutil
import sys
from pathlib import Path


def publish(built: Path, site: Path, version: str, address: str) -> None:
    """Add a version to a site, replacing an earlier copy."""
    if not (built / "index.html").is_file():
        raise SystemExit(f"{built} has no index.html: build the site first, with `make docs`")
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(built, site / version)
    folders = [page.parent.name for page in site.glob("*/index.html")]
    releases = sorted(
        (name for name in folders if re.fullmatch(r"\d+(\.\d+)*", name)), key=_parts, reverse=True
    )
    others = sorted(set(folders) - set(releases))
    newest = [*releases, *others][0]
    entries = [
        {
            "version": name,
            "name": f"{name} (newest)" if releases and name == newest else name,
            "url": f"{address.rstrip('/')}/{name}/",
            "preferred": name == newest,
        }
        for name in [*others, *releases]
    ]
    (site / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>vnlem</title>'
        f'<meta http-equiv="refresh" content="0; url={newest}/"><a href="{newest}/">vnlem {newest}</a>\n',
        encoding="utf-8",
    )
    (site / ".nojekyll").touch()  # folders that begin with an underscore are served too


def _parts(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
