"""The decisions: from what lies on the host to what is written."""

from dataclasses import replace

import pytest
import yaml
from tests.samples.hostctl import (
    CONFIG_HEAD,
    EXTENDER,
    FRESH,
    KUBEADM,
    PATHS,
    file,
    performed,
    planned,
    process,
    snapshot_of,
)

from gpushare_hostctl.decide.run import plan
from gpushare_hostctl.decide.run.record import PendingRestart
from gpushare_hostctl.decide.run.snapshot import HostSnapshot
from gpushare_hostctl.decide.run.status import read_status
from gpushare_hostctl.errors import NeedsPersonError


def test_a_plan_names_its_files_by_their_content() -> None:
    install_plan = planned(FRESH)

    assert install_plan.backup_name == f"kube-scheduler.yaml.{file(KUBEADM).sha256[:12]}.backup"
    assert install_plan.config_name == f"scheduler-config-{install_plan.config.sha256[:12]}.yaml"
    assert (
        f"--config=/etc/kubernetes/ours/{install_plan.config_name}".encode() in install_plan.manifest.content
    )


def test_the_same_host_gives_the_same_plan() -> None:
    assert planned(FRESH) == planned(FRESH)


def test_a_performed_plan_is_installed_and_plans_the_same_again() -> None:
    after = performed(planned(FRESH))

    assert plan.is_installed(after, planned(after))
    assert planned(after) == planned(FRESH)


@pytest.mark.parametrize("missing", ["backup_name", "config_name"])
def test_without_one_of_its_files_it_is_not_installed(missing: str) -> None:
    install_plan = planned(FRESH)
    after = performed(install_plan)
    rest = {name: content for name, content in after.files.items() if name != getattr(install_plan, missing)}
    damaged = replace(after, files=rest)

    assert not plan.is_installed(damaged, planned(damaged))
    assert read_status(damaged).state == "Drifted"


def test_a_mode_that_others_tightened_is_kept() -> None:
    after = performed(planned(FRESH))
    tightened = replace(after, manifest=replace(planned(FRESH).manifest, mode=0o400))

    assert plan.is_installed(tightened, planned(tightened))
    assert planned(tightened).manifest.mode == 0o400


def test_while_a_change_is_under_way_both_manifests_are_ours() -> None:
    first = performed(planned(FRESH))
    other = replace(EXTENDER, url="http://127.0.0.1:1")
    second = plan.install(first, source=None, engine=other)

    ahead = plan.write_ahead_record(first, second, before=process("abc"))

    assert ahead.written == (planned(FRESH).manifest.sha256, second.manifest.sha256)
    assert ahead.pending == PendingRestart(sha256=second.manifest.sha256, before=process("abc"))


def test_a_new_original_forgets_the_manifests_of_the_old_one() -> None:
    first = performed(planned(FRESH))
    upgraded = replace(first, manifest=file(KUBEADM.replace(b"v1.36.3", b"v1.37.0")))
    second = planned(upgraded)

    assert plan.write_ahead_record(upgraded, second, before=process()).written == (second.manifest.sha256,)


def test_restoring_what_we_wrote_gives_the_exact_backup() -> None:
    restore_plan = plan.restore(performed(planned(FRESH)))

    assert restore_plan.result == "Restored"
    assert restore_plan.manifest == file(KUBEADM)


def test_restoring_what_others_edited_removes_only_ours() -> None:
    after = performed(planned(FRESH))
    content = planned(FRESH).manifest.content.replace(b"cpu: 100m", b"cpu: 200m")

    restore_plan = plan.restore(replace(after, manifest=file(content)))

    assert restore_plan.result == "RestoredPartially"
    assert restore_plan.manifest == file(KUBEADM.replace(b"cpu: 100m", b"cpu: 200m"))


@pytest.mark.parametrize(
    ("snapshot", "result"),
    [
        pytest.param(FRESH, "NothingToDo", id="never installed"),
        pytest.param(snapshot_of(None), "NothingToDo", id="no manifest and nothing of ours"),
        pytest.param(
            snapshot_of(None, **{planned(FRESH).backup_name: file(KUBEADM)}),
            "RestoredPartially",
            id="the manifest is gone, and what it would need",
        ),
        pytest.param(
            replace(performed(planned(FRESH)), manifest=file(KUBEADM)),
            "Restored",
            id="never edited, or restored",
        ),
        pytest.param(
            snapshot_of(KUBEADM, **{"x.new": file(b"")}), "Restored", id="remains of an interrupted run"
        ),
    ],
)
def test_there_may_be_nothing_to_write_back(snapshot: HostSnapshot, result: str) -> None:
    restore_plan = plan.restore(snapshot)

    assert (restore_plan.result, restore_plan.manifest) == (result, None)


def test_what_a_manifest_would_need_that_is_moved_away_is_kept() -> None:
    away = replace(performed(planned(FRESH)), manifest=None)
    config = PATHS.in_folder(planned(FRESH).config_name)

    with pytest.raises(NeedsPersonError, match=f"is not there.* needs {config}.*put it back"):
        plan.restore(away)


def test_a_configuration_file_is_merged_and_readable_for_whatever_user_the_scheduler_has() -> None:
    manifest = (
        KUBEADM.replace(b"--leader-elect=true", b"--config=/c/s.yaml")
        .replace(b"    volumeMounts:\n", b"    volumeMounts:\n    - {name: c, mountPath: /c}\n")
        .replace(b"  volumes:\n", b"  volumes:\n  - {name: c, hostPath: {path: /etc/kubernetes/c}}\n")
    )
    source = replace(file(CONFIG_HEAD.encode(), mode=0o640), gid=1000)

    install_plan = plan.install(snapshot_of(manifest), source=source, engine=EXTENDER)

    assert (install_plan.config.mode, install_plan.config.gid) == (0o644, 0)
    assert yaml.safe_load(install_plan.config.content)["extenders"] == [EXTENDER.to_mapping()]
    assert b"--config=/c/s.yaml" in install_plan.manifest.content
    with pytest.raises(NeedsPersonError, match=r"/etc/kubernetes/c/s\.yaml"):
        planned(snapshot_of(manifest))


def test_an_extender_elsewhere_needs_no_host_network() -> None:
    elsewhere = replace(EXTENDER, url="http://10.0.0.1:80")
    snapshot = snapshot_of(KUBEADM.replace(b"hostNetwork: true", b"hostNetwork: false"))

    assert plan.install(snapshot, source=None, engine=elsewhere)
    with pytest.raises(NeedsPersonError, match="hostNetwork: true"):
        planned(snapshot)
