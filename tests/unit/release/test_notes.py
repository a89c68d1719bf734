"""Release notes are a section of the changelog."""

from pathlib import Path

from release.notes import UNRELEASED, release_notes

ROOT = Path(__file__).resolve().parents[3]
CHANGELOG = """\
# Changelog

## [Unreleased]

### Added

- Later.

## [0.2.0] - 2027-01-02

### Fixed

- A card.

## [0.1.0] - 2026-12-01

- First.
"""


def test_they_are_the_section_of_the_version_and_no_other() -> None:
    assert release_notes(CHANGELOG, "0.2.0") == "# gpushare 0.2.0 - 2027-01-02\n\n### Fixed\n\n- A card.\n"
    assert release_notes(CHANGELOG, "0.1.0") == "# gpushare 0.1.0 - 2026-12-01\n\n- First.\n"


def test_a_version_that_it_does_not_have_has_none() -> None:
    assert release_notes(CHANGELOG, "0.1") is None


def test_the_changelog_has_what_is_unreleased() -> None:
    notes = release_notes((ROOT / "CHANGELOG.md").read_text(), UNRELEASED)
    assert notes is not None
    assert "### Added" in notes
