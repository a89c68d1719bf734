"""containerd, runc and network plugins, built from their Go modules: what nodes run real containers with."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpushare_localcluster.build.lock import Report
from gpushare_localcluster.build.modules import Module, ensure_module
from gpushare_localcluster.build.packages import ensure_packages
from gpushare_localcluster.errors import LocalClusterError

_CONTAINERD = "github.com/containerd/containerd/v2/cmd"
_PLUGINS = "github.com/containernetworking/plugins/plugins"
SECCOMP = ("libseccomp-dev",)
ARCHITECTURES_OF_NEWER_VERSIONS = ("M68K=4", "SH=42", "SHEB=43")
"""Constants that libseccomp has from 2.6 on, any values apart from each other. With older ones the Go module
gives all of them one value, which gcc accepts in a switch, and clang does not."""


@dataclass(frozen=True)
class ContainerRuntime:
    """Folders of programs: containerd with its shim and `ctr`, runc, and the network plugins."""

    containerd: Path
    runc: Path
    plugins: Path


def ensure_runtime(*, report: Report, environment: Mapping[str, str] = os.environ) -> ContainerRuntime:
    """Returns the programs, built if they were not built before. Raises LocalClusterError if that fails."""
    containerd, runc, plugins = (
        ensure_module(module, report=report, environment=environment)
        for module in (CONTAINERD, RUNC, PLUGINS)
    )
    return ContainerRuntime(containerd=containerd, runc=runc, plugins=plugins)


def _c_compiler(report: Report) -> Mapping[str, str]:
    """runc enters namespaces in C, and libseccomp is a C library, which becomes a part of it."""
    packages = ensure_packages(SECCOMP, report=report)
    libraries = sorted(packages.glob("usr/lib/*-linux-gnu/libseccomp.a"))
    if not libraries:
        raise LocalClusterError(
            f"The package {SECCOMP[0]} has no libseccomp.a: delete {packages}, try again."
        )
    defined = (f"-DSCMP_ARCH_{constant}" for constant in ARCHITECTURES_OF_NEWER_VERSIONS)
    return {
        "CGO_ENABLED": "1",
        "CC": f"'{sys.executable}' -m ziglang cc",
        "CGO_CFLAGS": " ".join([f"'-I{packages}/usr/include'", *defined]),
        "CGO_LDFLAGS": f"'{libraries[0]}'",
        # It would only say what the two lines above do.
        "PKG_CONFIG": "true",
    }


CONTAINERD = Module(
    folder="containerd",
    programs={name: f"{_CONTAINERD}/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
    notice="building containerd: about 90 seconds, once",
)
RUNC = Module(
    folder="runc",
    programs={"runc": "github.com/opencontainers/runc"},
    notice="building runc: about a minute, once",
    tags="seccomp",
    variables=_c_compiler,
)
PLUGINS = Module(
    folder="cni",
    programs={"bridge": f"{_PLUGINS}/main/bridge", "host-local": f"{_PLUGINS}/ipam/host-local"},
    notice="building network plugins: about 15 seconds, once",
)
