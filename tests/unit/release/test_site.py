"""The site's table of contents is that of docs/README.md, which has every page."""

import tomllib
from pathlib import Path

from release.site import CONFIGURATION, FRONT, INDEX, ROOT, linked_files, main, table_of_contents

EVERY_PAGE = {
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "localcluster/*.md", "scheduler/*.md")
    for path in ROOT.glob(pattern)
}


def test_every_page_is_in_one_section_by_who_needs_it() -> None:
    contents = table_of_contents((ROOT / INDEX).read_text())
    listed = [page for section in contents.values() for page in section.values()]
    assert [*contents] == ["Use it", "Run it", "Understand it", "Work on it"]
    assert sorted(listed) == sorted(EVERY_PAGE - {FRONT, INDEX})


def test_links_are_followed_from_the_folder_of_the_index() -> None:
    index = (
        "# Index\n[gone](gone.md)\n## Use it\n- text [why](why.md), [Fast](../a/fast.md)\n## Run it\n- none\n"
    )
    assert table_of_contents(index) == {
        "Use it": {"Why": "docs/why.md", "Fast": "a/fast.md"},
        "Run it": {},
    }


def test_files_that_pages_show_or_link_to_come_with_them() -> None:
    assert "docs/cli-schema.json" in [*linked_files(["docs/cli.md"])]
    assert "LICENSE" in [*linked_files([FRONT])]
    assert [path for path in linked_files(sorted(EVERY_PAGE)) if path.endswith(".md")] == []


def test_the_configuration_names_the_pages_beside_it(tmp_path: Path) -> None:
    assert main(tmp_path) == 0
    project = tomllib.loads((tmp_path / CONFIGURATION).read_text())["project"]
    assert project["nav"][0] == {"gpushare": FRONT}
    assert {"Memory": "docs/modes/memory.md"} in project["nav"][2]["Use it"]
    pages = tmp_path / project["docs_dir"]
    assert {str(path.relative_to(pages)) for path in pages.rglob("*.md")} == EVERY_PAGE
