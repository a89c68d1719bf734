"""Helm: built from its Go module once, cached beside the local cluster's program."""

import os
from collections.abc import Mapping
from pathlib import Path

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.binary import SOURCES, compile_program, fingerprint
from gpushare_localcluster.build.lock import Report, locked
from gpushare_localcluster.directories import cache_folder

COMMAND = "helm.sh/helm/v3/cmd/helm"


def ensure_helm(*, report: Report, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the program, and builds it if it was not built before, which takes minutes.

    Raises LocalClusterError if it cannot be built.
    """
    cache = cache_folder(environment)
    sources = SOURCES / "helm"
    go = toolchain.find_go(cache, report=report)
    helm = cache / "helm" / fingerprint(sources, toolchain.version(go)) / "helm"
    if not helm.exists():
        with locked(cache / "lock", report=report):
            _build_once(go, sources, helm, report=report)
    return helm


def _build_once(go: Path, sources: Path, helm: Path, *, report: Report) -> None:
    if helm.exists():
        return
    report("building Helm: 90 seconds where two cores are idle, once")
    unfinished = helm.with_suffix(".unfinished")
    flags = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
    compile_program([go, "build", *flags, "-o", unfinished, COMMAND], sources, unfinished, report=report)
    unfinished.rename(helm)
