"""Which files may be removed."""

import pytest

from gpushare_hostctl.decide.run.own_files import is_ours

MANIFEST = "kube-scheduler.yaml"
HASH = "0123456789ab"


@pytest.mark.parametrize(
    "path",
    [
        "state.json",
        "state.json.new",
        f"kube-scheduler.yaml.{HASH}.backup",
        f"kube-scheduler.yaml.{HASH}.backup.new",
        "kube-scheduler.yaml.new",
        f"kube-scheduler.yaml.{HASH}.{HASH}.exchange",
        "kube-scheduler.yaml.fallback",
        "kube-scheduler.yaml.fallback.new",
        f"scheduler-config-{HASH}.yaml",
        "keys/authority.pem",
        "keys/client.pem.new",
        "extender/server.pem",
        "extender/authorities.pem",
        f"scheduler/client-{HASH}.pem",
        f"scheduler/authorities-{HASH}.pem.new",
    ],
)
def test_what_this_program_writes_is_ours(path: str) -> None:
    assert is_ours(path, manifest=MANIFEST)


@pytest.mark.parametrize(
    "path",
    [
        "ca.key",
        "kube-scheduler.yaml",
        "kube-scheduler.yaml.backup",
        "kube-scheduler.yaml.mine.backup",
        f"other.yaml.{HASH}.backup",
        f"kube-schedulerxyaml.{HASH}.backup",
        "scheduler-config.yaml",
        "scheduler.conf",
        "keys/sa.key",
        "extender/ca.pem",
        f"scheduler/server-{HASH}.pem",
        f"elsewhere/client-{HASH}.pem",
        "etcd/server.pem",
        "server.pem",
        "notes.new",
    ],
)
def test_nothing_else_is(path: str) -> None:
    assert not is_ours(path, manifest=MANIFEST)
