"""The seam of scheduler backends: connect, disconnect, settled and condition of each."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    VOLCANO,
    VOLCANO_CONFIG,
    calls,
    class_names,
    cluster_actions,
    control_plane,
    extender,
    extender_pod,
    external_extender,
    external_host,
    external_policy,
    installed,
    node,
    policy,
    policy_actions,
    restored,
    rule,
    serving,
    sharing,
    spec,
    untouched,
    volcano_backup,
    volcano_config,
    volcano_policy,
)

from gpushare_core.api.conditions import Condition
from gpushare_core.api.enums import Backend
from gpushare_core.api.names import EXTERNAL_SCHEDULER_LABEL, SCHEDULER_LABEL
from gpushare_operator.actions import (
    Action,
    ApplyDaemonSet,
    ApplyDeployment,
    ApplyVolcanoBackup,
    DeleteDaemonSet,
    DeleteVolcanoBackup,
    LabelNode,
    WriteVolcanoConfig,
)
from gpushare_operator.backends.table import BACKENDS
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.backends.volcano.config_edit import enable
from gpushare_operator.cluster.objects import ReadResult
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.status.policy import policy_status

ENABLED = enable(VOLCANO_CONFIG).text
THEIRS = VOLCANO_CONFIG + "# new\n"
SWITCHED_OFF = "deviceshare.GPUSharingEnable: false"


def condition(seen: ClusterSnapshot, name: str = "default", type_: str = "SchedulerConfigured") -> Condition:
    status = policy_status(seen, seen.policies[name], INSTALLATION, now=NOW)
    return next(found for found in status.conditions if found.type == type_)


def line(seen: ClusterSnapshot, name: str = "default", type_: str = "SchedulerConfigured") -> str:
    found = condition(seen, name, type_)
    return f"{found.status} {found.reason}: {found.message}"


def short(action: Action) -> str:
    match action:
        case LabelNode():
            return f"mark {action.node} {action.labels[SCHEDULER_LABEL]}"
        case ApplyDaemonSet():
            container = action.body["spec"]["template"]["spec"]["containers"][0]
            listen = [argument for argument in container["args"] if argument.startswith("127.0.0.1:")]
            return f"extender {' '.join(listen[:-1])}"
        case ApplyDeployment():
            return f"deploy {action.body['spec']['template']['spec']['containers'][0]['image']}"
        case WriteVolcanoConfig():
            names = {ENABLED: "enabled", VOLCANO_CONFIG: "original"}
            return f"write {names.get(action.text, action.text)}"
        case ApplyVolcanoBackup():
            return f"back up {action.body['data']['original']!r:.12}"
        case _:
            return class_names([action])[0]


def planned(seen: ClusterSnapshot) -> list[str]:
    return [short(action) for action in cluster_actions(seen)]


def test_every_backend_that_is_served_has_a_row_and_steps_of_its_own() -> None:
    assert set(BACKENDS) == set(Backend)
    assert all(backend.name is name and backend.teardown_steps for name, backend in BACKENDS.items())


OPEN = external_policy(), external_host(), external_extender()


@pytest.mark.parametrize(
    ("seen", "plan"),
    [
        pytest.param(
            sharing(external_policy(), untouched()),
            ["mark cp external", "extender 127.0.0.1:22766"],
            id="External: the extender comes to control planes",
        ),
        pytest.param(
            sharing(external_policy(), node("a", labels={EXTERNAL_SCHEDULER_LABEL: ""})),
            ["mark a external", "extender 127.0.0.1:22766"],
            id="External: and where people say that a kube-scheduler runs",
        ),
        pytest.param(sharing(*OPEN), [], id="External: all is there"),
        pytest.param(
            sharing(*OPEN, node("b", labels={SCHEDULER_LABEL: "external"})),
            ["mark b None"],
            id="External: a node is no host any more",
        ),
        pytest.param(
            sharing(external_policy(), external_host(), external_extender(12000)),
            ["extender 127.0.0.1:22766 127.0.0.1:12000"],
            id="External: another port, and the one before until the new one is called",
        ),
        pytest.param(
            sharing(external_policy(), external_host(), external_extender(22766, 12000), calls()),
            ["extender 127.0.0.1:22766"],
            id="External: the new port is called",
        ),
        pytest.param(
            sharing(external_policy(), external_host(), external_extender(22766, 12000), calls(12000)),
            [],
            id="External: only the former port is called",
        ),
        pytest.param(sharing(volcano_policy()), [], id="Volcano: not read yet"),
        pytest.param(
            sharing(volcano_policy(), volcano_config(result=ReadResult.MISSING, text=None)),
            [],
            id="Volcano: not there",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config()),
            ["back up 'actions: \"e"],
            id="Volcano: first the backup",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(), volcano_backup()),
            ["write enabled"],
            id="Volcano: then the edit",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(ENABLED), volcano_backup()), [], id="Volcano: done"
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(ENABLED)), [], id="Volcano: people have done it"
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(THEIRS), volcano_backup()),
            ["back up 'actions: \"e"],
            id="Volcano: overwritten, so backed up anew",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(THEIRS), volcano_backup(THEIRS)),
            [f"write {enable(THEIRS).text}"],
            id="Volcano: and edited again",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(ENABLED + "# new\n"), volcano_backup()),
            [],
            id="Volcano: changed beside our part",
        ),
        pytest.param(
            sharing(
                volcano_policy(),
                volcano_config(
                    ENABLED.replace("    arguments:\n      predicate.GPUSharingEnable: true\n", "")
                ),
                volcano_backup(),
            ),
            ["write enabled"],
            id="Volcano: a part of ours is lost",
        ),
    ],
)
def test_connect(seen: ClusterSnapshot, plan: list[str]) -> None:
    assert planned(seen) == plan


@pytest.mark.parametrize(
    ("seen", "plan"),
    [
        pytest.param(
            sharing(external_host(), external_extender()),
            ["DeleteDaemonSet"],
            id="External: the extender first",
        ),
        pytest.param(sharing(external_host(), extender_pod()), [], id="External: its pods stop"),
        pytest.param(sharing(external_host()), ["mark cp None"], id="External: the marks last"),
        pytest.param(sharing(volcano_backup()), [], id="Volcano: not read yet"),
        pytest.param(
            sharing(volcano_backup(), volcano_config(ENABLED)),
            ["write original"],
            id="Volcano: untouched, so byte for byte",
        ),
        pytest.param(
            sharing(volcano_backup(), volcano_config(ENABLED + "# new\n")),
            [f"write {THEIRS}"],
            id="Volcano: changed since, so only our part",
        ),
        pytest.param(
            sharing(replace(volcano_backup(), original=""), volcano_config(ENABLED)),
            ["write original"],
            id="Volcano: a backup that was emptied, so our part is taken out",
        ),
        pytest.param(
            sharing(volcano_backup(), volcano_config()),
            ["DeleteVolcanoBackup"],
            id="Volcano: then the backup goes",
        ),
        pytest.param(
            sharing(volcano_backup(), volcano_config(result=ReadResult.MISSING, text=None)),
            ["DeleteVolcanoBackup"],
            id="Volcano: the ConfigMap is gone",
        ),
        pytest.param(
            sharing(volcano_backup(), volcano_config(result=ReadResult.FORBIDDEN, text=None)),
            [],
            id="Volcano: it may not be read",
        ),
        pytest.param(sharing(volcano_backup(), volcano_config("a: [")), [], id="Volcano: it is broken"),
    ],
)
def test_disconnect(seen: ClusterSnapshot, plan: list[str]) -> None:
    assert planned(seen) == plan


@pytest.mark.parametrize(
    ("seen", "unsettled"),
    [
        pytest.param(sharing(untouched()), set(), id="nothing"),
        pytest.param(sharing(control_plane()), {Backend.KUBE_SCHEDULER}, id="a mark"),
        pytest.param(sharing(untouched(), installed()), {Backend.KUBE_SCHEDULER}, id="a run of hostctl"),
        pytest.param(sharing(untouched(), extender()), {Backend.KUBE_SCHEDULER}, id="the extender"),
        pytest.param(sharing(external_host()), {Backend.EXTERNAL}, id="an external mark"),
        pytest.param(sharing(untouched(), external_extender()), {Backend.EXTERNAL}, id="external extender"),
        pytest.param(
            sharing(external_host(), external_extender(), extender_pod()), {Backend.EXTERNAL}, id="all of it"
        ),
        pytest.param(sharing(volcano_backup()), {Backend.VOLCANO}, id="a backup"),
    ],
)
def test_settled(seen: ClusterSnapshot, unsettled: set[Backend]) -> None:
    assert {name for name, backend in BACKENDS.items() if not backend.settled(seen)} == unsettled


RENDER = (
    "gpushare-hostctl render --extender-url https://127.0.0.1:22766/gpushare"
    " --managed-resource gpushare.io/memory"
)
AGO = NOW - timedelta(hours=2)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param(
            sharing(external_policy(), node("gpu-1")), "False NoControlPlane: no node has", id="no host"
        ),
        pytest.param(
            sharing(*OPEN), "on each of these hosts, as root: gpushare-hostctl keys --root /", id="no keys"
        ),
        pytest.param(
            sharing(*OPEN, extender_pod()), f"False WaitingForCalls: {'no kube-scheduler'}", id="no call"
        ),
        pytest.param(sharing(*OPEN, extender_pod()), RENDER, id="what to do"),
        pytest.param(
            sharing(*OPEN, extender_pod(), calls(12000)), "False WaitingForCalls", id="called elsewhere"
        ),
        pytest.param(
            sharing(*OPEN, extender_pod(), calls(at=AGO)), "False WaitingForCalls", id="called long ago"
        ),
        pytest.param(
            sharing(*OPEN, extender_pod(), calls(at=None)), "False WaitingForCalls", id="never called"
        ),
        pytest.param(
            sharing(*OPEN, extender_pod(), calls()),
            "True Called: kube-scheduler calls the extender: port 22766 of cp. The operator does not see",
            id="called",
        ),
        pytest.param(
            sharing(external_policy(deleting=True), external_host(), external_extender()),
            "False Restoring: the extender is being removed; gpushare edited no kube-scheduler: remove"
            " the extender at port 22766 from",
            id="External goes",
        ),
        pytest.param(
            sharing(
                external_policy(deleting=True), external_policy("b"), external_host(), external_extender()
            ),
            "False Deleting: the extender stays",
            id="External stays",
        ),
        pytest.param(
            sharing(volcano_policy()), "False EditingConfigMap: ConfigMap volcano-system/", id="unread"
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(result=ReadResult.MISSING, text=None)),
            "False ConfigMapMissing: ConfigMap volcano-system/volcano-scheduler-configmap: it is not there:"
            " install Volcano, or name its scheduler's ConfigMap in scheduler.volcano",
            id="missing",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(result=ReadResult.FORBIDDEN, text=None)),
            "kubectl apply -f manifests/volcano/rbac.yaml",
            id="forbidden",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(None)),
            "it has no key volcano-scheduler.conf",
            id="no key",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config("a: [")),
            "False NeedsAttention: ConfigMap volcano-system/volcano-scheduler-configmap: not valid YAML",
            id="broken",
        ),
        pytest.param(
            sharing(
                volcano_policy(),
                volcano_config(ENABLED.replace("deviceshare.GPUSharingEnable: true", SWITCHED_OFF)),
                volcano_backup(),
            ),
            "somebody has set deviceshare.GPUSharingEnable: false; write true, or remove the line",
            id="our own line is switched off",
        ),
        pytest.param(
            sharing(
                volcano_policy(deleting=True),
                volcano_config(ENABLED),
                volcano_backup(written="", additions=(("nobody's", "plugin"), ("deviceshare", "plugin"))),
            ),
            "False Restoring: ConfigMap volcano-system/volcano-scheduler-configmap is being restored",
            id="the backup is damaged",
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config()), "GPU sharing is being switched on in it", id="due"
        ),
        pytest.param(
            sharing(volcano_policy(), volcano_config(ENABLED)),
            "True Configured: GPU sharing is on in ConfigMap",
            id="on",
        ),
        pytest.param(
            sharing(volcano_policy(deleting=True), volcano_config(ENABLED), volcano_backup()),
            "False Restoring: ConfigMap volcano-system/volcano-scheduler-configmap is being restored",
            id="Volcano goes",
        ),
        pytest.param(
            sharing(volcano_policy(deleting=True), volcano_config("a: ["), volcano_backup()),
            "kubectl delete configmap -n gpushare-system gpushare-volcano-backup",
            id="Volcano cannot go",
        ),
        pytest.param(
            sharing(volcano_policy(deleting=True), volcano_policy("b"), volcano_backup()),
            "False Deleting: Volcano's scheduler stays as it is",
            id="Volcano stays",
        ),
        pytest.param(
            sharing(volcano_policy(deleting=True)),
            "False Restored: Volcano's configuration",
            id="Volcano gone",
        ),
    ],
)
def test_condition(seen: ClusterSnapshot, said: str) -> None:
    assert said in line(seen)


class TestMoving:
    """A live policy asks for another backend: the one before goes first."""

    def test_from_kube_scheduler_hosts_are_restored_first(self) -> None:
        seen = sharing(*serving(policy(), "gpu-1"), volcano_policy(), volcano_config())
        assert class_names(cluster_actions(seen)) == ["CreateJob"]
        assert line(seen) == (
            "False DisconnectingFormerBackend: backend Volcano starts when nothing of KubeScheduler is left:"
            " kube-scheduler is being restored on cp"
        )

    def test_units_stay_offered_meanwhile(self) -> None:
        seen = sharing(*serving(policy(), "gpu-1"), volcano_policy(), volcano_config())
        assert "DeleteShareNode" not in class_names(policy_actions(seen))

    def test_then_its_extender_goes(self) -> None:
        seen = sharing(external_policy(), untouched(), extender(), restored())
        assert [type(cluster_action) for cluster_action in cluster_actions(seen)] == [DeleteDaemonSet]

    def test_and_the_new_one_comes_when_nothing_is_left(self) -> None:
        assert planned(sharing(external_policy(), untouched(), extender_pod())) == []
        assert planned(sharing(external_policy(), untouched())) == [
            "mark cp external",
            "extender 127.0.0.1:22766",
        ]

    def test_from_external_no_host_is_touched(self) -> None:
        seen = sharing(policy(), external_host(), external_extender(), extender_pod())
        assert planned(seen) == ["DeleteDaemonSet"]
        assert planned(sharing(policy(), external_host())) == ["mark cp None"]

    def test_from_volcano_its_config_map_is_restored(self) -> None:
        seen = sharing(policy(), untouched(), volcano_backup(), volcano_config(ENABLED))
        assert planned(seen) == ["write original"]
        restored_config = sharing(policy(), untouched(), volcano_backup(), volcano_config())
        assert [type(cluster_action) for cluster_action in cluster_actions(restored_config)] == [
            DeleteVolcanoBackup
        ]

    def test_to_another_config_map_the_one_before_is_restored_first(self) -> None:
        elsewhere = spec(
            rule("gpu-1"),
            dialect="volcano.sh",
            scheduler={"backend": "Volcano", "volcano": {"namespace": "batch"}},
        )
        seen = sharing(policy(spec=elsewhere), volcano_backup(), volcano_config(ENABLED))
        assert planned(seen) == ["write original"]
        assert "another one is being restored first" in line(seen)


class TestTwoPolicies:
    """There is one connection for all."""

    def test_the_older_one_decides(self) -> None:
        seen = sharing(volcano_policy("new", created=5), external_policy("old"), untouched())
        assert needed_backend(seen) is Backend.EXTERNAL
        assert "mark cp external" in planned(seen)

    def test_the_other_one_says_so(self) -> None:
        seen = sharing(volcano_policy("new", created=5), external_policy("old"), untouched())
        assert line(seen, "new", "Conflicted").startswith("True")
        assert "the older policy old decides about the scheduler: backend External" in line(
            seen, "new", "Conflicted"
        )

    def test_when_the_older_one_goes_its_backend_goes_before_the_other_comes(self) -> None:
        seen = sharing(
            volcano_policy("old", deleting=True),
            external_policy("new", created=5),
            untouched(),
            volcano_backup(),
            volcano_config(ENABLED),
        )
        assert planned(seen) == ["write original"]
        assert policy_actions(seen, "old") == [], "it stays until its edit is taken back"

    def test_an_unreadable_policy_keeps_the_backend_in_force(self) -> None:
        broken: Any = {"spec": None, "error": "no"}
        for left, backend in (
            (external_extender(), Backend.EXTERNAL),
            (volcano_backup(), Backend.VOLCANO),
            (extender(), Backend.KUBE_SCHEDULER),
        ):
            seen = sharing(policy(**broken), *serving_share(), left)
            assert needed_backend(seen) is backend


def serving_share() -> list[Any]:
    return [item for item in serving(policy(), "gpu-1") if type(item).__name__ == "ShareNodeObject"]


def test_disconnecting_leaves_what_other_backends_have() -> None:
    seen = sharing(policy(), control_plane(), extender(), extender_pod(), installed(), volcano_backup())
    situation = Situation(snapshot=seen, installation=INSTALLATION, now=NOW)
    assert BACKENDS[Backend.VOLCANO].disconnect(situation).actions == ()


def test_a_damaged_backup_is_no_place() -> None:
    gone = replace(VOLCANO, namespace="", config_map="", key="")
    assert not BACKENDS[Backend.VOLCANO].settled(sharing(volcano_backup(location=gone)))


def test_external_names_what_another_dialect_needs_though_it_is_called_already() -> None:
    asked = spec(rule("gpu-2"), dialect="aliyun.com", scheduler={"backend": "External"})
    seen = sharing(*OPEN, policy("b", created=1, spec=asked), extender_pod(), calls())
    assert line(seen).startswith("True Called")
    assert "--managed-resource aliyun.com/gpu-mem" in line(seen)
