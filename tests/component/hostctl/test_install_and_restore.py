"""install and restore on real files, beside a kube-scheduler that restarts when its manifest changes."""

import contextlib
import copy
import errno
import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.fakes.hostctl_node import (
    OWN_CONFIG,
    OWN_CONFIG_PATH,
    FakeNode,
    FillingHostFiles,
)
from tests.fakes.power_loss import PowerLossError, powered
from tests.samples.hostctl import EXTENDER, KUBEADM, PATHS, WITH_CONFIG

from gpushare_core.text import yaml_edit
from gpushare_hostctl import install, restore
from gpushare_hostctl.decide.run.snapshot import HostPaths
from gpushare_hostctl.decide.scheduler import manifest, manifest_edit
from gpushare_hostctl.decide.scheduler.extender_entry import ExtenderEntry
from gpushare_hostctl.errors import NeedsPersonError, RetryableError, RolledBackError
from gpushare_hostctl.host import system_calls
from gpushare_hostctl.host.files import HostFiles
from gpushare_hostctl.host.scheduler_waiter import INTERVAL
from gpushare_hostctl.report import Report

HTTPS_EXTENDER = replace(EXTENDER, url="https://127.0.0.1:32766")
OTHER_EXTENDER = replace(EXTENDER, url="http://127.0.0.1:40000")

# Hundreds of runs read the same few texts over and over; parsing them is most of the time.
_parse_once = functools.cache(manifest.parse)
_documents_once = functools.cache(yaml_edit.documents)


@pytest.fixture(autouse=True)
def parsing_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "parse", _parse_once)
    monkeypatch.setattr(yaml_edit, "documents", lambda text, **_: copy.deepcopy(_documents_once(text)))


@pytest.fixture(params=[pytest.param(KUBEADM, id="no --config"), pytest.param(WITH_CONFIG, id="--config")])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path, request.param)


def test_install_connects_the_extender_and_restore_leaves_no_trace(node: FakeNode) -> None:
    assert node.install().result == "Installed"
    assert node.extenders == [EXTENDER.url]
    assert node.state == "Installed"

    assert node.restore().result == "Restored"
    node.assert_untouched()
    assert node.state == "Absent"


@pytest.mark.parametrize("command", ["install", "restore"])
def test_nothing_is_removed_that_is_not_ours_wherever_the_folder_points(node: FakeNode, command: str) -> None:
    pki = node.root / "etc/kubernetes/pki"
    theirs = [pki / "ca.key", pki / "etcd/ca.key", pki / "keys/theirs.pem", pki / "scheduler.conf"]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    pointing_there = replace(
        node.connected(), paths=HostPaths(manifest=PATHS.manifest, folder="/etc/kubernetes/pki")
    )
    if command == "install":
        install.run(pointing_there, EXTENDER, node.mutual_tls)
    result = restore.run(pointing_there)

    assert [path for path in theirs if not path.exists()] == []
    assert "not gpushare's: ca.key, etcd, keys, scheduler.conf" in result.message
    assert sorted(path.name for path in pki.rglob("*") if path.is_file()) == sorted(
        their.name for their in theirs
    )


@pytest.mark.parametrize("command", ["install", "restore"])
@pytest.mark.parametrize(
    "name",
    [
        "notes.of.today.exchange",
        f"other.yaml.{'0' * 12}.{'1' * 12}.exchange",
        f"kube-scheduler.yaml.{'0' * 12}.theirs.exchange",
    ],
)
def test_a_file_that_only_looks_as_if_exchanged_with_the_manifest_stays(
    node: FakeNode, command: str, name: str
) -> None:
    pki = node.root / "etc/kubernetes/pki"
    pki.mkdir(parents=True)
    (pki / name).write_text("theirs")
    pointing_there = replace(
        node.connected(), paths=HostPaths(manifest=PATHS.manifest, folder="/etc/kubernetes/pki")
    )
    if command == "install":
        install.run(pointing_there, EXTENDER, node.mutual_tls)
    restore.run(pointing_there)

    assert (pki / name).read_text() == "theirs"


def test_installing_again_writes_nothing(node: FakeNode) -> None:
    node.install()

    with powered() as power:
        assert node.install().result == "AlreadyInstalled"
    assert power.calls == 0


def test_restoring_again_does_nothing(node: FakeNode) -> None:
    node.install()
    node.restore()

    assert node.restore().result == "NothingToDo"
    node.assert_untouched()


def test_their_configuration_file_is_never_modified(node: FakeNode) -> None:
    node.install()
    node.restore()

    assert (node.root / OWN_CONFIG_PATH).read_bytes() == OWN_CONFIG


def test_another_url_restarts_the_scheduler_with_a_file_of_another_name(node: FakeNode) -> None:
    node.install()
    process = node.scheduler.process

    assert node.install(OTHER_EXTENDER).result == "Installed"
    assert node.extenders == [OTHER_EXTENDER.url]
    assert node.scheduler.process == process + 1
    assert len(list(node.folder.glob("scheduler-config-*"))) == 1
    node.restore()
    node.assert_untouched()


def test_our_folder_is_for_root_only_and_the_backup_has_the_manifests_mode(node: FakeNode) -> None:
    node.install()

    assert node.folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in node.folder.glob("*.backup")] == [0o600]


def test_mode_of_the_manifest_is_kept(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, KUBEADM)
    node.manifest_path.chmod(0o640)

    node.install()
    assert node.manifest_path.stat().st_mode & 0o777 == 0o640
    node.restore()
    assert node.manifest_path.stat().st_mode & 0o777 == 0o640


def test_what_others_edited_since_survives_the_restoration(node: FakeNode) -> None:
    node.install()
    node.edit(b"v1.36.3", b"v1.36.4")
    assert node.state == "Drifted"

    assert node.restore().result == "RestoredPartially"
    assert node.content == node.original.replace(b"v1.36.3", b"v1.36.4")
    assert not node.folder.exists()


def test_an_upgrade_that_rewrote_the_manifest_is_edited_and_restored_as_upgraded(
    node: FakeNode,
) -> None:
    node.install()
    upgraded = node.original.replace(b"v1.36.3", b"v1.37.0")
    node.write(upgraded)

    assert node.install().result == "Installed"
    assert node.extenders == [EXTENDER.url]
    assert node.restore().result == "Restored"
    assert node.content == upgraded


def test_an_edit_beside_ours_is_kept_through_a_change_of_url(node: FakeNode) -> None:
    node.install()
    node.edit(b"cpu: 100m", b"cpu: 200m")

    node.install(OTHER_EXTENDER)
    node.restore()

    assert node.content == node.original.replace(b"cpu: 100m", b"cpu: 200m")


def test_a_manifest_rewritten_without_us_is_left_so(node: FakeNode) -> None:
    node.install()
    node.write(node.original.replace(b"v1.36.3", b"v1.37.0"))

    assert node.restore().result == "RestoredPartially"
    assert node.content == node.original.replace(b"v1.36.3", b"v1.37.0")
    assert not node.folder.exists()


def test_a_manifest_that_was_moved_away_still_works_when_it_comes_back_and_is_restored_then(
    node: FakeNode,
) -> None:
    node.install()
    away = node.root / "kube-scheduler.yaml"
    node.manifest_path.rename(away)
    kept = sorted(node.folder.iterdir())

    with pytest.raises(NeedsPersonError, match="put it back, and it is restored"):
        node.restore()
    assert sorted(node.folder.iterdir()) == kept

    away.rename(node.manifest_path)
    assert node.extenders == [EXTENDER.url]
    assert node.restore().result == "Restored"
    assert node.content == node.original
    assert not node.folder.exists()


def test_a_manifest_that_is_gone_for_good_is_left_so_once_a_person_says_so(node: FakeNode) -> None:
    node.install()
    node.manifest_path.unlink()
    with pytest.raises(NeedsPersonError, match="if it is gone for good, remove ") as refusal:
        node.restore()
    named = str(refusal.value).rpartition("remove ")[2].partition(",")[0]
    (node.root / named.lstrip("/")).unlink()

    assert node.restore().result == "RestoredPartially"
    assert not node.manifest_path.exists()
    assert not node.folder.exists()
    assert node.restore().result == "NothingToDo"


def test_a_scheduler_that_does_not_come_back_gets_its_manifest_back(node: FakeNode) -> None:
    node.scheduler.fails = lambda content: manifest_edit.VOLUME_NAME.encode() in content

    with pytest.raises(RolledBackError, match="earlier manifest is back and kube-scheduler serves again"):
        node.install()
    node.assert_untouched()


def test_a_new_url_that_fails_falls_back_to_the_one_before(node: FakeNode) -> None:
    node.install()
    before = node.content
    node.scheduler.fails = lambda content: content not in (before, node.original)

    with pytest.raises(RolledBackError, match="serves again"):
        node.install(OTHER_EXTENDER)

    assert node.content == before
    assert node.extenders == [EXTENDER.url]
    assert node.state == "Installed"
    assert node.restore().result == "Restored"
    node.assert_untouched()


def test_a_scheduler_that_is_down_is_not_edited(node: FakeNode) -> None:
    node.scheduler.fails = lambda content: True  # noqa: ARG005

    with pytest.raises(RetryableError, match="nothing was changed"):
        node.install()
    node.assert_untouched()


def test_a_scheduler_that_stays_down_even_with_its_own_manifest_is_reported(node: FakeNode) -> None:
    node.install()
    node.scheduler.fails = lambda content: True  # noqa: ARG005

    with pytest.raises(RolledBackError, match="and still no kube-scheduler"):
        node.install(OTHER_EXTENDER)


def test_an_installed_scheduler_that_does_not_serve_is_reported_and_left(node: FakeNode) -> None:
    node.install()
    before = node.content
    node.scheduler.fails = lambda content: True  # noqa: ARG005

    with pytest.raises(RetryableError, match="no kube-scheduler served"):
        node.install()
    assert node.content == before


def test_a_restored_scheduler_that_does_not_serve_keeps_the_backup_for_another_run(node: FakeNode) -> None:
    node.install()
    node.scheduler.fails = lambda content: content == node.original

    with pytest.raises(RetryableError, match="run restore again"):
        node.restore()
    assert node.content == node.original
    assert list(node.folder.glob("*.backup"))

    node.scheduler.fails = lambda content: False  # noqa: ARG005
    assert node.restore().result == "Restored"
    node.assert_untouched()


def test_a_scheduler_that_never_comes_back_does_not_hold_up_the_restoration(node: FakeNode) -> None:
    node.install()
    node.scheduler.fails = lambda content: content == node.original
    with pytest.raises(RetryableError, match="run restore again"):
        node.restore()

    report = node.restore()

    assert report.result == "Restored"
    assert "no restarted kube-scheduler served" in report.message
    assert "nothing of gpushare's is left" in report.message
    node.assert_untouched()


def test_a_scheduler_that_others_broke_is_not_ours_to_heal(node: FakeNode) -> None:
    node.install()
    node.edit(b"--bind-address=127.0.0.1", b"--no-such-flag")
    node.scheduler.fails = lambda content: b"--no-such-flag" in content

    report = node.restore()

    assert report.result == "RestoredPartially"
    assert "nothing of gpushare's is left" in report.message
    assert node.content == node.original.replace(b"--bind-address=127.0.0.1", b"--no-such-flag")
    assert not node.folder.exists()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"kind: Pod\n  nonsense: [\n", id="no YAML"),
        pytest.param(KUBEADM.replace(b"- kube-scheduler\n", b"- sh\n"), id="started by a shell"),
    ],
)
def test_a_manifest_that_nobody_can_read_and_that_has_nothing_of_ours_is_left_so(
    node: FakeNode, content: bytes
) -> None:
    node.install()
    node.write(content)
    node.scheduler.has_stuck_kubelet = True

    report = node.restore()

    assert report.result == "RestoredPartially"
    assert node.content == content
    assert not node.folder.exists()


def test_a_lost_record_does_not_lose_the_manifest(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, KUBEADM)
    node.install()
    (node.folder / "state.json").unlink()
    assert node.state == "Drifted"

    assert node.restore().result == "RestoredPartially"
    node.assert_untouched()


def test_a_folder_removed_by_hand_is_made_good_by_installing(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, KUBEADM)
    node.install()
    for path in node.folder.iterdir():
        path.unlink()
    node.folder.rmdir()

    assert node.install().result == "Installed"
    assert node.state == "Installed"
    assert node.restore().result == "Restored"
    node.assert_untouched()


def test_a_damaged_backup_is_not_written_back(node: FakeNode) -> None:
    node.install()
    next(node.folder.glob("*.backup")).write_bytes(b"kind: Nonsense\n")

    assert node.restore().result == "RestoredPartially"
    node.assert_untouched()


def test_a_configuration_edited_by_hand_is_written_anew_under_another_name(node: FakeNode) -> None:
    node.install()
    config = next(node.folder.glob("scheduler-config-*"))
    config.write_bytes(config.read_bytes() + b"parallelism: 1\n")
    process = node.scheduler.process
    assert node.state == "Drifted"

    assert node.install().result == "Installed"
    assert node.state == "Installed"
    assert node.scheduler.process == process + 1
    assert not config.exists()


def test_a_change_of_their_configuration_is_taken_over(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, WITH_CONFIG)
    node.install()
    source = node.root / OWN_CONFIG_PATH
    source.write_bytes(OWN_CONFIG.replace(b"50", b"70"))

    assert node.install().result == "Installed"
    config = yaml.safe_load(next(node.folder.glob("scheduler-config-*")).read_bytes())
    assert config["percentageOfNodesToScore"] == 70


@pytest.mark.parametrize(
    ("original", "message"),
    [
        pytest.param(b"kind: ConfigMap\n", "not a Pod", id="no pod"),
        pytest.param(
            KUBEADM.replace(b"hostNetwork: true", b"hostNetwork: false"), "hostNetwork", id="network"
        ),
        pytest.param(
            KUBEADM.replace(b"--leader-elect=true", b"--secure-port=0"), "secure-port", id="no HTTPS"
        ),
        pytest.param(
            WITH_CONFIG.replace(b"/etc/kubernetes/own}", b"/opt/own}"),
            "/opt/own/scheduler.yaml",
            id="a configuration out of reach",
        ),
        pytest.param(
            KUBEADM.replace(b"--leader-elect=true", b"--config=/in/the/image.yaml"),
            "mount it from the host",
            id="a configuration in the image",
        ),
    ],
)
def test_what_cannot_be_installed_needs_a_person_and_changes_nothing(
    tmp_path: Path, original: bytes, message: str
) -> None:
    node = FakeNode(tmp_path, original)

    with pytest.raises(NeedsPersonError, match=message):
        node.install()
    node.assert_untouched()


def test_a_node_without_a_scheduler_needs_a_person(node: FakeNode) -> None:
    node.manifest_path.unlink()

    with pytest.raises(NeedsPersonError, match="use another scheduler backend"):
        node.install()
    assert node.state == "Absent"


def test_a_record_of_another_manifest_needs_a_person(node: FakeNode) -> None:
    node.install()
    state = node.folder / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "manifest": "/elsewhere.yaml"}))

    with pytest.raises(NeedsPersonError, match="give --manifest /elsewhere"):
        node.restore()


def test_an_interrupted_edit_that_does_not_work_is_rolled_back_by_the_next_run(
    node: FakeNode,
) -> None:
    node.install()
    node.restore()
    node.scheduler.fails = lambda content: manifest_edit.VOLUME_NAME.encode() in content
    node.scheduler.interrupt_at = node.scheduler.probes + 10
    with pytest.raises(PowerLossError):
        node.install()
    assert node.content != node.original

    with pytest.raises(RolledBackError, match="serves again"):
        node.install()
    node.assert_untouched()


# Somebody else writes the manifest while a run is at work; kubeadm upgrade moves a new one into its place.

NEWER = (b"v1.36.3", b"v1.37.0")


def _upgrade_once_edited(node: FakeNode) -> bytes:
    """Has the manifest replaced by a newer one as soon as ours is there; returns the newer one."""
    upgraded = node.original.replace(*NEWER)

    def upgrade() -> None:
        if manifest_edit.VOLUME_NAME.encode() in node.content and NEWER[1] not in node.content:
            node.write(upgraded)

    node.scheduler.before_probe = upgrade
    return upgraded


def test_an_upgrade_while_the_edit_waits_is_kept_and_edited_instead(node: FakeNode) -> None:
    upgraded = _upgrade_once_edited(node)
    node.scheduler.fails = lambda content: (
        manifest_edit.VOLUME_NAME.encode() in content and NEWER[1] not in content
    )

    assert node.install().result == "Installed"

    assert NEWER[1] in node.content
    assert node.extenders == [EXTENDER.url]
    assert node.restore().result == "Restored"
    assert node.content == upgraded


def test_the_restart_by_an_upgrade_is_not_taken_for_the_one_of_the_edit(node: FakeNode) -> None:
    _upgrade_once_edited(node)

    assert node.install().result == "Installed"

    assert node.state == "Installed"
    assert node.extenders == [EXTENDER.url]


def test_a_manifest_that_changes_all_the_time_is_left_to_those_who_change_it(node: FakeNode) -> None:
    versions = iter(range(1000))

    def rewrite() -> None:
        if manifest_edit.VOLUME_NAME.encode() in node.content:
            node.write(node.original.replace(b"v1.36.3", f"v2.{next(versions)}.0".encode()))

    node.scheduler.before_probe = rewrite

    with pytest.raises(RetryableError, match="was changed by somebody else"):
        node.install()

    assert manifest_edit.VOLUME_NAME.encode() not in node.content
    assert b"v2." in node.content


def test_an_upgrade_while_a_restoration_waits_is_kept(node: FakeNode) -> None:
    node.install()
    upgraded = node.original.replace(*NEWER)

    def upgrade() -> None:
        if node.content == node.original:
            node.write(upgraded)

    node.scheduler.before_probe = upgrade

    assert node.restore().result == "RestoredPartially"
    assert node.content == upgraded
    assert not node.folder.exists()


def test_an_upgrade_between_reading_and_restoring_is_kept(node: FakeNode) -> None:
    node.install()
    upgraded = node.original.replace(*NEWER)
    done: list[bool] = []

    def upgrade() -> None:
        # The first probe of a restoration comes after the manifest was read and before it is written.
        if not done:
            done.append(True)
            node.write(upgraded)

    node.scheduler.before_probe = upgrade

    assert node.restore().result == "RestoredPartially"
    assert node.content == upgraded


def test_an_upgrade_while_an_installed_scheduler_is_looked_at_is_noticed(node: FakeNode) -> None:
    node.install()
    _upgrade_once_edited(node)

    assert node.install().result == "Installed"
    assert node.state == "Installed"
    assert NEWER[1] in node.content


def test_our_folder_stays_while_the_manifest_names_it_again(node: FakeNode) -> None:
    """As when a failed kubeadm upgrade puts the manifest of before back, which had our edit."""
    node.install()
    node.edit(b"--bind-address=127.0.0.1", b"--bind-address=$(VAR)")
    edited = node.content

    class PuttingBack(HostFiles):
        def replace(self, staged: str, path: str, *, expected: bytes) -> None:
            super().replace(staged, path, expected=expected)
            if path.endswith(".yaml") and manifest_edit.VOLUME_NAME.encode() not in node.content:
                node.write(edited)

    with pytest.raises(RetryableError, match="was changed by somebody else"):
        node.restore(files=PuttingBack(node.root))
    assert list(node.folder.glob("scheduler-config-*"))


# What counts as a restart.


def test_a_busy_node_with_one_timeout_is_not_taken_for_a_restart(node: FakeNode) -> None:
    node.scheduler.has_stuck_kubelet = True
    node.scheduler.too_slow = [5]

    with pytest.raises(RolledBackError, match="no restarted kube-scheduler"):
        node.install()
    node.assert_untouched()


def restart_once_before_the_kubelet_looks(node: FakeNode, *, seconds: float) -> None:
    """Has the scheduler restarted from its earlier manifest, ``seconds`` before the kubelet sees another."""
    before, seen = node.content, 0

    def overtake() -> None:
        nonlocal seen
        seen += node.content != before
        node.scheduler.has_stuck_kubelet = 0 < seen < seconds / INTERVAL
        if seen == 1:
            node.scheduler.restart()

    node.scheduler.before_probe = overtake


def fail_once_edited(node: FakeNode) -> None:
    before = node.content
    node.scheduler.fails = lambda content: content not in (before, node.original)


@pytest.mark.parametrize("seconds", [5, 20])
@pytest.mark.parametrize("prepare", [FakeNode.make_keys, FakeNode.install], ids=["first", "change"])
def test_a_restart_from_the_earlier_manifest_is_not_taken_for_the_one_of_the_edit(
    node: FakeNode, seconds: float, prepare: Callable[[FakeNode], object]
) -> None:
    prepare(node)
    before = node.content
    fail_once_edited(node)
    restart_once_before_the_kubelet_looks(node, seconds=seconds)

    with pytest.raises(RolledBackError, match="no restarted kube-scheduler"):
        node.install(OTHER_EXTENDER)
    assert node.content == before


def test_such_a_restart_does_not_hold_up_an_edit_that_works(node: FakeNode) -> None:
    restart_once_before_the_kubelet_looks(node, seconds=5)

    assert node.install().result == "Installed"
    assert node.scheduler.running == node.content


def unwatchable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:  # noqa: ARG001
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(system_calls, "ReadWatch", refuse)


def test_where_reads_cannot_be_noticed_the_kubelet_gets_time_to_end_an_earlier_process(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwatchable(monkeypatch)
    node.timeout = 120.0
    fail_once_edited(node)
    restart_once_before_the_kubelet_looks(node, seconds=20)

    with pytest.raises(RolledBackError):
        node.install()
    node.assert_untouched()


def test_where_reads_cannot_be_noticed_it_is_installed_all_the_same(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwatchable(monkeypatch)

    assert node.install().result == "Installed"
    assert node.restore().result == "Restored"
    node.assert_untouched()


def test_a_scheduler_that_falls_after_some_seconds_with_the_edit_is_rolled_back(node: FakeNode) -> None:
    served = 0

    def falls(content: bytes) -> bool:
        nonlocal served
        served += content != node.original
        return content != node.original and served > 5 / INTERVAL

    node.scheduler.fails = falls

    with pytest.raises(RolledBackError):
        node.install()
    node.assert_untouched()


@pytest.mark.parametrize("timeout", [30.0, 120.0])
def test_a_restoration_waits_for_a_process_without_us(node: FakeNode, timeout: float) -> None:
    node.timeout = timeout
    node.install()
    restart_once_before_the_kubelet_looks(node, seconds=min(20, timeout / 2 - 2))

    assert node.restore().result == "Restored"
    assert node.scheduler.running == node.original


@pytest.mark.parametrize("flag", [b"--cert-dir=/c", b"--tls-cert-file=/c"])
def test_the_same_process_all_along_is_not_taken_for_a_restart(tmp_path: Path, flag: bytes) -> None:
    node = FakeNode(tmp_path, KUBEADM.replace(b"--leader-elect=true", flag))
    node.scheduler.has_stuck_kubelet = True

    with pytest.raises(RolledBackError, match="no restarted kube-scheduler"):
        node.install()
    node.assert_untouched()


def test_a_timeout_while_looking_who_serves_proves_nothing(node: FakeNode) -> None:
    node.install()
    node.scheduler.has_stuck_kubelet = True
    node.scheduler.too_slow = range(node.scheduler.probes, node.scheduler.probes + 60)

    with pytest.raises(RolledBackError):
        node.install(OTHER_EXTENDER)
    assert node.extenders == [EXTENDER.url] or node.content == node.original


def test_restoring_waits_for_the_restart_where_the_edit_is_at_work(node: FakeNode) -> None:
    node.install()
    node.scheduler.has_stuck_kubelet = True

    with pytest.raises(RetryableError, match="run restore again"):
        node.restore()
    assert node.content == node.original


# Trouble on the way back.


def test_a_disk_that_fills_up_does_not_stop_the_rollback(node: FakeNode) -> None:
    node.scheduler.fails = lambda content: manifest_edit.VOLUME_NAME.encode() in content

    with pytest.raises(RolledBackError, match="earlier manifest is back and kube-scheduler serves again"):
        _install_on_a_disk_that_fills_up(node)
    node.assert_untouched()


def test_a_disk_that_fills_up_does_not_stop_the_way_back_to_our_earlier_edit(node: FakeNode) -> None:
    node.install()
    before = node.content
    node.scheduler.fails = lambda content: content not in (before, node.original)

    with pytest.raises(RolledBackError, match="earlier manifest is back"):
        _install_on_a_disk_that_fills_up(node, OTHER_EXTENDER)

    assert node.content == before
    assert node.restore().result == "Restored"
    node.assert_untouched()


def _install_on_a_disk_that_fills_up(node: FakeNode, extender: ExtenderEntry = EXTENDER) -> None:
    files, before = FillingHostFiles(node.root), node.content

    def fill() -> None:
        files.full = files.full or node.content != before

    node.scheduler.before_probe = fill
    node.install(extender, files=files)


def test_a_full_disk_does_not_stop_the_restoration(node: FakeNode) -> None:
    node.install()
    files = FillingHostFiles(node.root)
    files.full = True

    assert node.restore(files=files).result == "Restored"
    node.assert_untouched()


def test_a_full_disk_and_a_power_loss_together_lose_no_backup(tmp_path: Path) -> None:
    """The backup itself goes into the manifest's place: nothing else may take it for a spare copy."""
    for point in range(1, 60):
        node = FakeNode(tmp_path / str(point), KUBEADM)
        node.install()
        files = FillingHostFiles(node.root)
        files.full = True
        with powered(lost_after=point) as power, contextlib.suppress(PowerLossError):
            node.restore(files=files)
        if not power.is_lost:
            break
        assert node.restore(files=files).result in ("Restored", "NothingToDo"), point
        node.assert_untouched()
    assert point > 5


@pytest.mark.parametrize("times", [1, 9])
def test_on_a_full_disk_no_backup_is_lost_to_who_writes_the_manifest_meanwhile(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    node.install()
    files = FillingHostFiles(node.root)
    files.full = True
    edited, left = node.content, [times]
    require = HostFiles.require

    def require_late(self: HostFiles, path: str, expected: bytes) -> None:
        if left[0] > 0 and any(node.folder.glob("*.exchange")):
            left[0] -= 1
            node.manifest_path.write_bytes(edited + b"# theirs\n")
        elif node.content != node.original:
            node.manifest_path.write_bytes(edited)
        require(self, path, expected)

    monkeypatch.setattr(HostFiles, "require", require_late)
    # Their text less our part would take new bytes.
    with contextlib.suppress(RetryableError, OSError):
        node.restore(files=files)
    monkeypatch.undo()
    if node.folder.exists():
        node.manifest_path.write_bytes(edited)
        assert node.restore(files=files).result == "Restored"
    node.assert_untouched()


def test_a_full_disk_stops_an_installation_before_anything_is_edited(node: FakeNode) -> None:
    files = FillingHostFiles(node.root)
    files.full = True

    with pytest.raises(OSError, match="No space"):
        node.install(files=files)
    assert node.content == node.original


@pytest.mark.parametrize(
    "flag",
    [
        pytest.param(b"--bind-address=$(VAR)", id="an address from the environment"),
        pytest.param(b"--secure-port=x", id="a port that is none"),
    ],
)
def test_flags_that_cannot_be_read_do_not_stop_the_restoration(node: FakeNode, flag: bytes) -> None:
    node.install()
    node.edit(b"--bind-address=127.0.0.1", flag)

    report = node.restore()

    assert report.result == "RestoredPartially"
    assert "was not checked" in report.message
    assert node.content == node.original.replace(b"--bind-address=127.0.0.1", flag)
    assert not node.folder.exists()


def test_a_run_that_is_stopped_while_it_waits_puts_the_earlier_manifest_back(node: FakeNode) -> None:
    stop_once_edited(node)

    with pytest.raises(RetryableError, match=r"stopped from outside.*the earlier manifest is back"):
        node.install()
    assert node.content == node.original

    go_on(node)
    assert node.install().result == "Installed"
    node.restore()
    node.assert_untouched()


def test_a_run_that_is_stopped_over_a_change_of_url_puts_our_earlier_edit_back(node: FakeNode) -> None:
    node.install()
    stop_once_edited(node)

    with pytest.raises(RetryableError, match="the earlier manifest is back"):
        node.install(OTHER_EXTENDER)
    assert node.extenders == [EXTENDER.url]

    go_on(node)
    assert node.restore().result == "Restored"
    node.assert_untouched()


def test_a_stopped_run_leaves_what_somebody_else_wrote_meanwhile(node: FakeNode) -> None:
    upgraded = node.original.replace(*NEWER)

    def upgrade_and_stop() -> None:
        if manifest_edit.VOLUME_NAME.encode() in node.content:
            node.write(upgraded)
            node.is_stopped = True

    node.scheduler.before_probe = upgrade_and_stop

    with pytest.raises(RetryableError, match="stopped from outside"):
        node.install()
    assert node.content == upgraded


def test_a_run_that_is_stopped_before_the_edit_changes_nothing(node: FakeNode) -> None:
    node.is_stopped = True

    with pytest.raises(RetryableError, match="stopped from outside"):
        node.install()
    node.assert_untouched()


def test_a_restoration_that_is_stopped_has_put_the_manifest_back(node: FakeNode) -> None:
    node.install()
    node.is_stopped = True

    with pytest.raises(RetryableError, match="stopped from outside"):
        node.restore()
    assert node.content == node.original

    node.is_stopped = False
    assert node.restore().result == "Restored"
    node.assert_untouched()


def stop_once_edited(node: FakeNode) -> None:
    before = node.content

    def stop() -> None:
        node.is_stopped = node.content != before

    node.scheduler.before_probe = stop


def go_on(node: FakeNode) -> None:
    node.is_stopped = False
    node.scheduler.before_probe = lambda: None


# What lies in our folder may be lost.


def _lose_record(node: FakeNode) -> None:
    (node.folder / "state.json").unlink()


def _lose_folder(node: FakeNode) -> None:
    shutil.rmtree(node.folder)


LOSSES = [
    pytest.param(_lose_record, id="the record"),
    pytest.param(_lose_folder, id="the folder"),
]


@pytest.mark.parametrize("lose", LOSSES)
def test_whatever_is_lost_restoring_keeps_their_configuration(
    node: FakeNode, lose: Callable[[FakeNode], None]
) -> None:
    node.install()
    lose(node)
    assert node.state == "Drifted"

    assert node.restore().result == "RestoredPartially"
    node.assert_untouched()


@pytest.mark.parametrize("lose", LOSSES)
def test_whatever_is_lost_installing_keeps_their_configuration(
    node: FakeNode, lose: Callable[[FakeNode], None]
) -> None:
    node.install()
    lose(node)

    assert node.install().result == "Installed"
    assert node.extenders == [EXTENDER.url]
    assert node.restore().result == "Restored"
    node.assert_untouched()


@pytest.mark.parametrize("run", [FakeNode.install, FakeNode.restore])
def test_a_configuration_that_only_a_backup_knows_needs_a_person(
    tmp_path: Path, run: Callable[[FakeNode], Report]
) -> None:
    node = FakeNode(tmp_path, WITH_CONFIG)
    node.install()
    _lose_record(node)
    node.edit(b"    - --config=/config/scheduler.yaml\n", b"")

    with pytest.raises(NeedsPersonError, match=r"--config=/config/scheduler\.yaml.*state\.json is missing"):
        run(node)
    assert manifest_edit.VOLUME_NAME.encode() in node.content
    assert list(node.folder.glob("*.backup"))


# A rollback is told from other failures, and repeated only when something is different.


def _fail_when_edited(node: FakeNode) -> None:
    node.scheduler.fails = lambda content: manifest_edit.VOLUME_NAME.encode() in content


def _rolled_back_inputs(node: FakeNode, extender: ExtenderEntry = EXTENDER) -> str:
    with pytest.raises(RolledBackError) as raised:
        node.install(extender)
    assert extender.url in str(raised.value)
    return raised.value.inputs


def test_a_rollback_names_its_inputs(node: FakeNode) -> None:
    _fail_when_edited(node)

    assert _rolled_back_inputs(node) == _rolled_back_inputs(node)


def test_what_was_rolled_back_is_not_tried_again_with_the_same_inputs(node: FakeNode) -> None:
    _fail_when_edited(node)
    inputs = _rolled_back_inputs(node)
    process = node.scheduler.process

    with pytest.raises(RolledBackError, match="was not tried again") as raised:
        node.install(rolled_back_inputs=inputs)

    assert raised.value.inputs == inputs
    assert node.scheduler.process == process
    node.assert_untouched()


def _upgrade(node: FakeNode) -> None:
    node.original = node.original.replace(*NEWER)
    node.write(node.original)


def _edit_own_config(node: FakeNode) -> None:
    (node.root / OWN_CONFIG_PATH).write_bytes(OWN_CONFIG.replace(b"50", b"70"))


@pytest.mark.parametrize("change", [_upgrade, _edit_own_config])
def test_it_is_tried_again_once_an_input_has_changed(
    tmp_path: Path, change: Callable[[FakeNode], None]
) -> None:
    node = FakeNode(tmp_path, WITH_CONFIG)
    _fail_when_edited(node)
    inputs = _rolled_back_inputs(node)
    change(node)
    node.scheduler.fails = lambda content: False  # noqa: ARG005

    assert node.install(rolled_back_inputs=inputs).result == "Installed"


def test_it_is_tried_again_with_another_extender_or_more_time(node: FakeNode) -> None:
    _fail_when_edited(node)
    inputs = _rolled_back_inputs(node)

    assert _rolled_back_inputs(node, OTHER_EXTENDER) != inputs
    node.timeout = 60.0
    assert _rolled_back_inputs(node) != inputs


def test_what_works_is_no_longer_held_back(node: FakeNode) -> None:
    inputs = node.install().inputs

    assert node.install(rolled_back_inputs=inputs).result == "AlreadyInstalled"
