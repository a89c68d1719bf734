"""The local cluster's folders, named `gpushare`, by the XDG Base Directory Specification."""

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of builds, which may be deleted at any time."""
    return _base(environment, "XDG_CACHE_HOME", ".cache") / "gpushare" / "localcluster"


def cluster_folder(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of the cluster called `name`."""
    return _base(environment, "XDG_STATE_HOME", ".local/state") / "gpushare" / name


def _base(environment: Mapping[str, str], variable: str, fallback: str) -> Path:
    value = environment.get(variable, "")
    # The specification wants relative paths ignored.
    return Path(value) if value.startswith("/") else Path.home() / fallback
