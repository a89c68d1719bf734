"""The local cluster's Go half has tests of its own; they run as part of this suite."""

import os
import subprocess

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.binary import SOURCES, ensure_binary
from gpushare_localcluster.build.minors import chosen_minor
from gpushare_localcluster.cluster import to_stderr
from gpushare_localcluster.directories import cache_folder


def test_the_go_tests_pass() -> None:
    ensure_binary(report=to_stderr)  # else both would compile Kubernetes, at once
    go = toolchain.find_go(cache_folder(), report=to_stderr)
    done = subprocess.run(
        # The same flags as the build, so that what it compiled is used again.
        [go, "test", "-trimpath", "-buildvcs=false", *chosen_minor().go_flags, "-count=1", "./internal/..."],
        cwd=SOURCES,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok  \tgpushare.io/localcluster/internal/runtime" in done.stdout
