"""The minor versions of Kubernetes that the local cluster can be built of."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpushare_localcluster.errors import LocalClusterError

CHOICE = "GPUSHARE_KUBERNETES"
"""The environment variable that names a minor."""


@dataclass(frozen=True, order=True)
class Minor:
    """A minor version of Kubernetes, at one patch version of it."""

    major: int
    number: int
    patch: int

    @property
    def name(self) -> str:
        """Such as ``1.34``."""
        return f"{self.major}.{self.number}"

    @property
    def version(self) -> str:
        """Such as ``v1.34.4``."""
        return f"v{self.name}.{self.patch}"

    @property
    def staging_version(self) -> str:
        """The version of the modules that Kubernetes is made of: ``v0.34.4``."""
        return f"v0.{self.number}.{self.patch}"

    @property
    def module_file(self) -> str:
        """The path below the Go sources."""
        return "go.mod" if self == DEFAULT else f"kubernetes/{self.name}.mod"

    @property
    def sum_file(self) -> str:
        """The checksums of the modules, beside the module file."""
        return self.module_file.removesuffix(".mod") + ".sum"

    @property
    def tags(self) -> Sequence[str]:
        """The build tags: ``before1.37`` says that the minor is an older one. The newest has none, so that
        Go's tools work in the sources without any."""
        return [f"before{later.name}" for later in MINORS if later > self]

    @property
    def go_flags(self) -> Sequence[str]:
        """What ``go build``, ``go list`` and ``go test`` have to know of the minor."""
        flags = [] if self == DEFAULT else [f"-modfile={self.module_file}"]
        return [*flags, f"-tags={','.join(self.tags)}"] if self.tags else flags


MINORS = tuple(Minor(1, *numbers) for numbers in ((32, 13), (33, 13), (34, 4), (35, 4), (36, 3), (37, 2)))
"""Oldest first."""
DEFAULT = MINORS[-1]


def minor_named(name: str) -> Minor:
    """Returns the minor called ``1.34``. Raises LocalClusterError, which lists all, if there is none."""
    for minor in MINORS:
        if minor.name == name:
            return minor
    raise LocalClusterError(
        f"The local cluster has no Kubernetes {name!r}; it has {', '.join(minor.name for minor in MINORS)}."
    )


def chosen_minor(environment: Mapping[str, str] = os.environ) -> Minor:
    """Returns the minor that GPUSHARE_KUBERNETES names, or else the default.

    Raises LocalClusterError, which lists all minors, if it names none of them.
    """
    name = environment.get(CHOICE, "")
    return minor_named(name) if name else DEFAULT
