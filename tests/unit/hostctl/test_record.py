"""The record of an installation."""

import json

import pytest

from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.decide.run.record import InstallationRecord, Original, PendingRestart, decode
from gpushare_hostctl.errors import NeedsPersonError

RECORD = InstallationRecord(
    manifest="/etc/kubernetes/manifests/kube-scheduler.yaml",
    original=Original(sha256="a", mode=0o600, uid=0, gid=0),
    backup="kube-scheduler.yaml.a.backup",
    config="scheduler-config-b.yaml",
    config_sha256="b",
    written=("c", "d"),
    pending=PendingRestart(sha256="d", before=ProcessIdentity(sockets=(3, 4), certificate="e")),
)


def test_what_was_written_is_read_back() -> None:
    assert decode(RECORD.encode()) == RECORD


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="no version"),
        pytest.param(b'{"version": 3}', id="a newer version"),
        pytest.param(b'{"version": 2}', id="nothing but the version"),
        pytest.param(RECORD.encode().replace(b'"mode"', b'"mood"'), id="a field of another name"),
        pytest.param(RECORD.encode()[:-9], id="cut off"),
        pytest.param(json.dumps({**json.loads(RECORD.encode()), "written": 1}).encode(), id="no list"),
        pytest.param(b"\xff\xfe", id="not text"),
    ],
)
def test_a_damaged_record_needs_a_person(content: bytes) -> None:
    with pytest.raises(NeedsPersonError, match="put the backup"):
        decode(content)
