"""Configurations of kube-schedulers that run beside the cluster's own. Documents in, documents out."""

from pathlib import Path
from typing import Any

import yaml

from gpushare_core.text.json_object import Json

PLUGIN = "GPUShare"
CLIENT_QPS = 2000
"""As the cluster's own kube-scheduler has: with 50 a second it waits for itself."""


def of_plugin(written: Json) -> Json:
    return written


def in_place(written: Json) -> Json:
    """As the cluster's only kube-scheduler has it: ordinary pods choose among as many nodes as without us."""
    return {**written, "profiles": [_sampling(profile) for profile in written["profiles"]]}


def without_plugin(written: Json) -> Json:
    """As any kube-scheduler has it."""
    bare = [{"schedulerName": profile["schedulerName"]} for profile in written["profiles"]]
    return {**written, "profiles": bare}


def _sampling(profile: Json) -> Json:
    return {name: value for name, value in profile.items() if name != "percentageOfNodesToScore"}


def with_client(document: Json, kubeconfig: Path) -> str:
    """Returns the text for a program outside of any pod."""
    connection: dict[str, Any] = {"kubeconfig": str(kubeconfig), "qps": CLIENT_QPS, "burst": CLIENT_QPS}
    return yaml.safe_dump({**document, "clientConnection": connection}, sort_keys=False)


def kubeconfig(*, server: str, authority: str, token: str) -> Json:
    """``authority``: base64 of the certificate."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [
            {"name": "bench", "cluster": {"server": server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "bench", "user": {"token": token}}],
    }
