"""Check every link inside the built site: files, pictures and the places within pages.

    python docs/check_links.py build/docs

`make docs-links` also checks links to other sites.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and its link targets."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record one element."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """One line per link that leads nowhere."""
    pages = {
        path.resolve(): Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    }
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            place = unquote(parts.fragment)
            missing_place = place and target in pages and place not in pages[target].places
            if not target.exists() or missing_place:
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


def main() -> int:
    """Print broken links; the exit status says whether there are any."""
    site = Path(sys.argv[1])
    broken = broken_links(site)
    print("\n".join(broken) if broken else f"all links inside {site} lead somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
