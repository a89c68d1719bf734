"""What `make docs` builds the site from: ``python -m release.site FOLDER`` writes the pages, each in its
place of this checkout so that links between them hold, and the configuration with the table of contents. It
needs the standard library alone.

The table of contents is that of docs/README.md: a section for each of its headings, with the links below it.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath

ROOT = Path(__file__).parents[1]
FRONT, INDEX = "README.md", "docs/README.md"
CONFIGURATION = "zensical.toml"

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_PAGE = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)\)")
_LINKED = re.compile(r"\]\(([^)#\s]+)|(?:src|srcset)=\"([^\"]+)\"")


def main(folder: Path) -> int:
    contents = table_of_contents((ROOT / INDEX).read_text())
    pages = [FRONT, INDEX, *(page for section in contents.values() for page in section.values())]
    for path in dict.fromkeys([*pages, *linked_files(pages)]):
        copy = folder / "pages" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy)
    written = (ROOT / CONFIGURATION).read_text() + navigation(contents)
    (folder / CONFIGURATION).write_text(written)
    return 0


def table_of_contents(index: str) -> dict[str, dict[str, str]]:
    """Returns heading -> title -> path of the page in this checkout, in the order of ``index``."""
    _, *parts = _SECTION.split(index)
    return {
        heading: {
            title[0].upper() + title[1:]: normpath(PurePosixPath(INDEX).parent / link)
            for title, link in _PAGE.findall(text)
        }
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def linked_files(pages: list[str]) -> Iterator[str]:
    """Yields the files that ``pages`` link to and that are no pages: pictures, schemas, the licence."""
    for page in pages:
        for found in _LINKED.finditer((ROOT / page).read_text()):
            path = normpath(PurePosixPath(page).parent / (found[1] or found[2]))
            if (ROOT / path).is_file() and not path.endswith(".md"):
                yield path


def navigation(contents: Mapping[str, Mapping[str, str]]) -> str:
    """Returns TOML. A text in JSON is one in TOML."""
    first = f'[[project.nav]]\n"gpushare" = "{FRONT}"\n[[project.nav]]\n"Where do I find it?" = "{INDEX}"\n'
    return "\n" + first + "".join(_section(heading, pages) for heading, pages in contents.items())


def _section(heading: str, pages: Mapping[str, str]) -> str:
    lines = (f"  {{ {json.dumps(title)} = {json.dumps(page)} }},\n" for title, page in pages.items())
    return f"[[project.nav]]\n{json.dumps(heading)} = [\n{''.join(lines)}]\n"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
