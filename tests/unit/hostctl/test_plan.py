"""The decisions: from what lies on the host to what is written."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gpushare_hostctl.decide import plan, state
from gpushare_hostctl.decide.configuration import Extender
from gpushare_hostctl.decide.plan import InstallPlan, Location, Snapshot
from gpushare_hostctl.decide.state import File, State
from gpushare_hostctl.errors import NeedsPersonError

KUBEADM = (Path(__file__).parents[2] / "data" / "hostctl" / "kubeadm-kube-scheduler.yaml").read_bytes()
LOCATION = Location(manifest="/etc/kubernetes/manifests/kube-scheduler.yaml", folder="/etc/kubernetes/ours")
EXTENDER = Extender(url="http://127.0.0.1:32766", managed_resources=("gpushare.io/memory",))


def file(content: bytes, *, mode: int = 0o600) -> File:
    return File(content=content, mode=mode, uid=0, gid=0)


def host(manifest: bytes | None, **files: File) -> Snapshot:
    return Snapshot(location=LOCATION, manifest=file(manifest) if manifest else None, files=files)


def planned(snapshot: Snapshot) -> InstallPlan:
    return plan.install(snapshot, source=None, extender=EXTENDER)


def performed(decided: InstallPlan, *, stored: State | None = None) -> Snapshot:
    files = {
        decided.backup_name: decided.base,
        decided.config_name: decided.config,
        state.NAME: file((stored or decided.state).encode()),
    }
    return Snapshot(location=LOCATION, manifest=decided.manifest, files=files)


FRESH = host(KUBEADM)


def test_a_plan_names_its_files_by_their_content() -> None:
    decided = planned(FRESH)

    assert decided.backup_name == f"kube-scheduler.yaml.{file(KUBEADM).sha256[:12]}.backup"
    assert decided.config_name == f"scheduler-config-{decided.config.sha256[:12]}.yaml"
    assert f"--config=/etc/kubernetes/ours/{decided.config_name}".encode() in decided.manifest.content


def test_the_same_host_gives_the_same_plan() -> None:
    assert planned(FRESH) == planned(FRESH)


def test_a_performed_plan_is_installed_and_plans_the_same_again() -> None:
    after = performed(planned(FRESH))

    assert plan.is_installed(after, planned(after))
    assert planned(after) == planned(FRESH)


@pytest.mark.parametrize("missing", ["backup_name", "config_name"])
def test_without_one_of_its_files_it_is_not_installed(missing: str) -> None:
    decided = planned(FRESH)
    after = performed(decided)
    rest = {name: content for name, content in after.files.items() if name != getattr(decided, missing)}
    damaged = replace(after, files=rest)

    assert not plan.is_installed(damaged, planned(damaged))
    assert plan.status(damaged)[0] == "Drifted"


def test_a_mode_that_others_tightened_is_kept() -> None:
    after = performed(planned(FRESH))
    tightened = replace(after, manifest=replace(planned(FRESH).manifest, mode=0o400))

    assert plan.is_installed(tightened, planned(tightened))
    assert planned(tightened).manifest.mode == 0o400


def test_while_a_change_is_under_way_both_manifests_are_ours() -> None:
    first = performed(planned(FRESH))
    other = replace(EXTENDER, url="http://127.0.0.1:1")
    second = plan.install(first, source=None, extender=other)

    ahead = plan.write_ahead(first, second, fingerprint="abc")

    assert ahead.written == (planned(FRESH).manifest.sha256, second.manifest.sha256)
    assert ahead.pending == state.Pending(sha256=second.manifest.sha256, fingerprint="abc")


def test_a_new_original_forgets_the_manifests_of_the_old_one() -> None:
    first = performed(planned(FRESH))
    upgraded = replace(first, manifest=file(KUBEADM.replace(b"v1.36.3", b"v1.37.0")))
    second = planned(upgraded)

    assert plan.write_ahead(upgraded, second, fingerprint=None).written == (second.manifest.sha256,)


def test_restoring_what_we_wrote_gives_the_exact_backup() -> None:
    decided = plan.restore(performed(planned(FRESH)))

    assert decided.result == "Restored"
    assert decided.manifest == file(KUBEADM)


def test_restoring_what_others_edited_removes_only_ours() -> None:
    after = performed(planned(FRESH))
    content = planned(FRESH).manifest.content.replace(b"cpu: 100m", b"cpu: 200m")

    decided = plan.restore(replace(after, manifest=file(content)))

    assert decided.result == "RestoredPartially"
    assert decided.manifest == file(KUBEADM.replace(b"cpu: 100m", b"cpu: 200m"))


@pytest.mark.parametrize(
    ("snapshot", "result"),
    [
        pytest.param(FRESH, "NothingToDo", id="never installed"),
        pytest.param(host(None), "NothingToDo", id="no manifest and nothing of ours"),
        pytest.param(
            replace(performed(planned(FRESH)), manifest=None), "RestoredPartially", id="the manifest is gone"
        ),
        pytest.param(
            replace(performed(planned(FRESH)), manifest=file(KUBEADM)),
            "Restored",
            id="never edited, or restored",
        ),
        pytest.param(host(KUBEADM, **{"x.new": file(b"")}), "Restored", id="remains of an interrupted run"),
    ],
)
def test_there_may_be_nothing_to_write_back(snapshot: Snapshot, result: str) -> None:
    decided = plan.restore(snapshot)

    assert (decided.result, decided.manifest) == (result, None)


@pytest.mark.parametrize(
    ("snapshot", "condition", "said"),
    [
        pytest.param(FRESH, "Absent", "nothing of ours", id="never installed"),
        pytest.param(host(None), "Absent", "there is no", id="no manifest"),
        pytest.param(performed(planned(FRESH)), "Installed", "as written", id="installed"),
        pytest.param(
            host(planned(FRESH).manifest.content), "Drifted", "state.json is missing", id="the record is gone"
        ),
        pytest.param(
            replace(performed(planned(FRESH)), manifest=file(KUBEADM)),
            "Drifted",
            "not the one",
            id="rewritten",
        ),
        pytest.param(
            replace(performed(planned(FRESH)), manifest=None),
            "Drifted",
            "is missing",
            id="the manifest is gone",
        ),
        pytest.param(
            performed(planned(FRESH), stored=plan.write_ahead(FRESH, planned(FRESH), fingerprint=None)),
            "Drifted",
            "not finished",
            id="under way",
        ),
    ],
)
def test_the_status_says_what_is_out_of_place(snapshot: Snapshot, condition: str, said: str) -> None:
    found, message = plan.status(snapshot)

    assert found == condition
    assert said in message


def test_a_configuration_file_is_merged_with_its_mode() -> None:
    manifest = (
        KUBEADM.replace(b"--leader-elect=true", b"--config=/c/s.yaml")
        .replace(b"    volumeMounts:\n", b"    volumeMounts:\n    - {name: c, mountPath: /c}\n")
        .replace(b"  volumes:\n", b"  volumes:\n  - {name: c, hostPath: {path: /etc/kubernetes/c}}\n")
    )
    source = file(
        b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", mode=0o640
    )

    decided = plan.install(host(manifest), source=source, extender=EXTENDER)

    assert decided.config.mode == 0o640
    assert yaml.safe_load(decided.config.content)["extenders"] == [EXTENDER.entry()]
    assert decided.state.previous_config == "/c/s.yaml"
    with pytest.raises(NeedsPersonError, match=r"/etc/kubernetes/c/s\.yaml"):
        planned(host(manifest))


def test_an_extender_elsewhere_needs_no_host_network() -> None:
    elsewhere = replace(EXTENDER, url="http://10.0.0.1:80")
    snapshot = host(KUBEADM.replace(b"hostNetwork: true", b"hostNetwork: false"))

    assert plan.install(snapshot, source=None, extender=elsewhere)
    with pytest.raises(NeedsPersonError, match="hostNetwork: true"):
        planned(snapshot)
