"""Release notes: the changelog's section of a version. Pure."""

import re

UNRELEASED = "Unreleased"


def release_notes(changelog: str, version: str) -> str | None:
    """Returns the notes of ``version``; None where the changelog has no section of that name.

    Source of the format: https://keepachangelog.com/en/1.1.0/
    """
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if heading.startswith(f"[{version}]"):
            return f"# gpushare {heading.replace('[', '').replace(']', '')}\n\n{text.strip()}\n"
    return None
