"""Debian's base system, the packages that are on every machine, from dpkg's status file. Pure.

Source of the format: deb-control(5), dpkg-status in dpkg(1).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")


@dataclass(frozen=True)
class Package:
    """An installed package. ``text`` is its paragraph in the status file."""

    text: str
    fields: Mapping[str, str]

    @property
    def names(self) -> Iterator[str]:
        """Yields the package's own name, and those that it provides."""
        yield self.fields["Package"]
        yield from _names(self.fields.get("Provides", ""), ",")

    @property
    def needs(self) -> Iterator[Sequence[str]]:
        """Yields the alternatives of each dependency."""
        for field in ("Pre-Depends", "Depends"):
            for alternatives in self.fields.get(field, "").split(","):
                yield list(_names(alternatives, "|"))


def base_system(status: str) -> str:
    """Returns the part of a status file with the essential packages and their dependencies."""
    installed = [package for text in status.split("\n\n") if (package := _read(text))]
    by_name: dict[str, Package] = {}
    for package in installed:
        for name in package.names:
            by_name.setdefault(name, package)
    kept: dict[str, Package] = {}
    pending = [package for package in installed if package.fields.get("Essential") == "yes"]
    while pending:
        package = pending.pop()
        if kept.setdefault(package.text, package) is package:
            present = ([by_name[name] for name in names if name in by_name] for names in package.needs)
            pending += [found[0] for found in present if found and found[0].text not in kept]
    return "\n\n".join(sorted(kept)) + "\n"


def _read(text: str) -> Package | None:
    """Returns None for a package that is not installed: only its settings are left, or it is not unpacked."""
    lines = (line.partition(":") for line in text.splitlines() if not line.startswith(" "))
    fields = {name: value.strip() for name, _, value in lines}
    is_installed = fields.get("Status", "").endswith(" ok installed")
    return Package(text.strip("\n"), fields) if is_installed and "Package" in fields else None


def _names(text: str, separator: str) -> Iterator[str]:
    """Yields names without versions and architectures."""
    found = (NAME.match(part.strip()) for part in text.split(separator))
    yield from (name[0] for name in found if name)
