"""The files of the page, read when the server starts: no request chooses a path on the disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("page")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    content: bytes
    type: str


def page_files() -> Mapping[str, PageFile]:
    """Returns the files by their names in a URL; ``index.html`` also by the empty one."""
    found = {
        path.relative_to(FOLDER).as_posix(): PageFile(path.read_bytes(), TYPES[path.suffix])
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in TYPES
    }
    return {**found, "": found["index.html"]}
