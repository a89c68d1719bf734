"""Connecting and restoring schedulers: what comes next on a control-plane node."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    control_plane,
    extender,
    extender_pod,
    failed,
    hostctl_run,
    installed,
    job,
    job_pod,
    node,
    policy,
    restored,
    rule,
    share,
    sharing,
    snapshot,
    spec,
    untouched,
)

from gpushare_core.api.names import CONTROL_PLANE_LABEL, EXTENDER_PORT, FINALIZER, SCHEDULER_LABEL
from gpushare_operator.actions import (
    Action,
    ApplyDaemonSet,
    CreateJob,
    DeleteDaemonSet,
    DeleteJob,
    LabelNode,
)
from gpushare_operator.backends.extender_workload.daemon_set import extender_daemon_set
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.cluster.objects import JobObject
from gpushare_operator.cluster.readers.jobs import read_job
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.policies.decisive_policy import scheduler_needed
from gpushare_operator.policies.scheduler_settings import scheduler_settings

INSTALL, RESTORE = HostctlCommand.INSTALL, HostctlCommand.RESTORE


def connected(*jobs: Any) -> ClusterSnapshot:
    """A policy wants the scheduler connected, and the extender is ready."""
    return sharing(policy(), control_plane(), extender(), extender_pod(), *jobs)


def abandoned(*jobs: Any) -> ClusterSnapshot:
    """No policy is left."""
    return sharing(control_plane(), extender(), extender_pod(), *jobs)


def short(action: Action) -> str:
    match action:
        case CreateJob():
            return f"+{action.name.removeprefix('gpushare-scheduler-')}"
        case DeleteJob():
            return f"-{action.name.removeprefix('gpushare-scheduler-')}"
        case ApplyDaemonSet():
            return "+extender"
        case DeleteDaemonSet():
            return "-extender"
        case LabelNode():
            return f"{'+' if any(action.labels.values()) else '-'}mark-{action.node}"
    raise TypeError(action)


def due(seen: ClusterSnapshot) -> list[str]:
    return [short(action) for action in plan_cluster(seen, INSTALLATION, NOW).actions]


def test_a_policy_that_shares_no_node_touches_no_scheduler() -> None:
    untouched_host = node("cp", labels={CONTROL_PLANE_LABEL: ""})
    assert due(snapshot(policy(), untouched_host)) == []
    assert not scheduler_needed(snapshot(policy(), untouched_host))


def test_when_the_last_node_is_gone_the_scheduler_is_restored() -> None:
    assert due(snapshot(policy(), control_plane(), extender(), extender_pod(), installed())) == [
        "+restore-cp-2"
    ]


def test_of_several_policies_the_oldest_with_a_node_decides() -> None:
    idle = policy("idle", spec=spec(rule("gpu-9"), placement={"weight": 9}))
    seen = policy("sharing", created=1, spec=spec(rule("gpu-1"), placement={"weight": 7}))
    assert scheduler_settings(snapshot(idle, seen, share("gpu-1", seen))).weight == 7


def test_what_policies_ask_for_waits_until_it_stays_the_same() -> None:
    seen = sharing(policy(), control_plane())
    plan = plan_cluster(seen, INSTALLATION, NOW, scheduler_waits=2.0)
    assert (plan.actions, plan.retry_after) == ((), 2.0)


def test_the_extender_comes_first() -> None:
    assert due(sharing(policy(), control_plane())) == ["+extender"]


def test_a_scheduler_is_not_pointed_at_an_extender_that_is_not_ready() -> None:
    """hostctl waits for it; the operator holds back where there is none at all."""
    assert due(sharing(policy(), control_plane(), extender())) == []
    assert due(sharing(policy(), control_plane("cp"), extender(), extender_pod("other"))) == []


def test_an_extender_that_waits_for_its_keys_gets_them_by_an_install() -> None:
    assert due(connected(extender_pod(ready=False, waiting="ContainerCreating"))) == ["+install-cp-1"]
    assert due(connected(extender_pod(ready=False))) == ["+install-cp-1"]


@pytest.mark.parametrize(
    ("days", "expected"),
    [pytest.param(99, [], id="young"), pytest.param(101, ["+install-cp-2"], id="old")],
)
def test_keys_are_renewed_before_they_expire(days: int, expected: list[str]) -> None:
    old = installed(finished=NOW - timedelta(days=days))
    assert due(connected(old)) == expected


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([], ["+install-cp-1"], id="untouched: install"),
        pytest.param([job(INSTALL)], [], id="installing: wait"),
        pytest.param([installed()], [], id="installed: done"),
        pytest.param([installed(spec_hash="old")], ["+install-cp-2"], id="installed otherwise: again"),
        pytest.param([installed(), job(INSTALL, sequence=2)], ["-install-cp-1"], id="superseded goes"),
        pytest.param([failed(INSTALL, ago=1)], [], id="just failed: backoff"),
        pytest.param([failed(INSTALL, ago=6)], ["+install-cp-2"], id="failed a while ago: again"),
        pytest.param([failed(INSTALL, ago=60, sequence=5)], [], id="failed five times: longer backoff"),
        pytest.param([failed(INSTALL, ago=301, sequence=50)], ["+install-cp-51"], id="never give up"),
        pytest.param([job(RESTORE)], [], id="being restored: wait"),
        pytest.param([restored()], ["-mark-cp"], id="restored: another extender first"),
        pytest.param([failed(RESTORE, ago=0)], ["+install-cp-2"], id="not restored: install all the same"),
        pytest.param(
            [installed(node_uid="former")], ["+install-cp-2"], id="perhaps another machine: install again"
        ),
        pytest.param([installed(), installed("gone", 4)], [], id="a node that is gone may come back"),
        pytest.param([installed(deleting=True)], [], id="its Job is being deleted: wait until it is gone"),
        pytest.param([job(INSTALL, deleting=True)], [], id="its Job is being deleted while it runs: wait"),
    ],
)
def test_while_a_policy_needs_it(jobs: list[JobObject], expected: list[str]) -> None:
    assert due(connected(jobs)) == expected


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([installed()], ["+restore-cp-2"], id="installed: restore"),
        pytest.param([failed(INSTALL, ago=0)], ["+restore-cp-2"], id="half installed: restore"),
        pytest.param([job(INSTALL)], [], id="installing: wait for its end"),
        pytest.param([installed(), job(RESTORE, sequence=2)], ["-install-cp-1"], id="restoring: wait"),
        pytest.param([failed(RESTORE, ago=1, sequence=2)], [], id="just failed: backoff"),
        pytest.param([failed(RESTORE, ago=11, sequence=2)], ["+restore-cp-3"], id="failed: again"),
        pytest.param([restored()], ["-extender"], id="restored: the extender goes"),
        pytest.param(
            [installed("gone"), restored()], ["-extender"], id="a node that is gone needs no restoring"
        ),
        pytest.param([], ["+restore-cp-1"], id="no Job: somebody may have deleted it"),
    ],
)
def test_when_no_policy_is_left(jobs: list[JobObject], expected: list[str]) -> None:
    assert due(abandoned(jobs)) == expected


def test_the_history_is_deleted_last() -> None:
    assert due(sharing(control_plane(), restored())) == ["-mark-cp"]
    assert due(sharing(untouched(), restored())) == ["-restore-cp-2"]
    assert due(sharing(control_plane(), restored(), extender(deleting=True))) == []
    assert due(sharing(untouched())) == []


def test_a_node_is_marked_before_its_scheduler_is_edited() -> None:
    assert due(sharing(policy(), untouched(), extender())) == ["+mark-cp"]


def test_a_node_is_not_marked_while_an_earlier_extender_is_on_its_way_out() -> None:
    """Kubernetes 1.36 counts it for the new DaemonSet of that name, and never makes a pod of that."""
    assert due(sharing(policy(), untouched(), extender(), extender_pod())) == []


def test_a_marked_node_is_restored_though_all_else_of_ours_was_deleted() -> None:
    assert due(sharing(control_plane())) == ["+restore-cp-1"]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([node("cp", uid="uid-anew"), installed()], id="its Node was made anew"),
        pytest.param([node("cp", labels={SCHEDULER_LABEL: "1"}), installed()], id="no control plane now"),
        pytest.param([node("cp", uid="uid-anew"), restored()], id="restored, but another machine perhaps"),
    ],
)
def test_a_host_is_restored_whatever_became_of_its_node(seen: list[Any]) -> None:
    assert due(sharing(seen)) == [f"+restore-cp-{seen[-1].sequence + 1}"]


def test_a_former_control_plane_keeps_extender_and_edit_while_a_policy_lives() -> None:
    former = node("cp", labels={SCHEDULER_LABEL: "1"})
    assert due(sharing(policy(), former, extender(), extender_pod(), installed(spec_hash="old"))) == [
        "+install-cp-2"
    ]


def test_one_node_that_cannot_be_restored_keeps_the_extender_for_all() -> None:
    seen = sharing(
        control_plane("cp"),
        control_plane("cp2"),
        extender(),
        restored("cp"),
        failed(RESTORE, ago=1, sequence=2, on="cp2"),
    )
    assert due(seen) == ["-mark-cp"]


def test_what_needs_a_person_is_tried_again_only_after_minutes() -> None:
    last = failed(INSTALL, ago=100)
    plan = plan_cluster(connected(last, job_pod(last, 2)), INSTALLATION, NOW)
    assert plan.actions == ()
    assert plan.retry_after == 200


def test_a_backoff_says_when_it_is_over() -> None:
    assert plan_cluster(connected(failed(INSTALL, ago=1)), INSTALLATION, NOW).retry_after == 4
    assert plan_cluster(connected(installed()), INSTALLATION, NOW).retry_after is None


def test_each_control_plane_is_judged_by_itself() -> None:
    seen = connected(installed("cp"), control_plane("cp2"), extender_pod("cp2"), control_plane("cp3"))
    assert due(seen) == ["+install-cp2-1"]


FAILED = {"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": NOW.isoformat()}]}


def due_jobs(seen: ClusterSnapshot) -> dict[str, Any]:
    """The body of the one Job that is due."""
    (body,) = [
        action.body
        for action in plan_cluster(seen, INSTALLATION, NOW).actions
        if isinstance(action, CreateJob)
    ]
    return dict(body)


class TestPort:
    """Where the extender listens."""

    moved = policy(spec=spec(rule("gpu-1"), scheduler={"extenderPort": 12000}))
    extender_there = extender(body=extender_daemon_set(INSTALLATION, [12000]))

    def test_the_usual_one_is_no_node_port_and_not_for_outgoing_connections(self) -> None:
        assert EXTENDER_PORT + 1 < 30000

    def test_the_extender_moves_first_and_answers_at_the_former_port_too(self) -> None:
        assert due(connected(self.moved, installed())) == ["+extender"]
        assert self.listens(self.moved, installed()) == [12000, EXTENDER_PORT]

    def test_it_answers_there_until_the_last_scheduler_has_followed(self) -> None:
        both = extender(body=extender_daemon_set(INSTALLATION, [12000, EXTENDER_PORT]))
        followed = hostctl_run(INSTALL, port=12000).work_hash
        one = [self.moved, both, control_plane("cp2"), installed(spec_hash=followed)]
        assert self.listens(*one, installed("cp2")) == []
        assert self.listens(*one, installed("cp2", spec_hash=followed)) == [12000]
        assert self.listens(*one, failed(INSTALL, ago=1, on="cp2")) == []

    def test_of_several_changes_in_a_row_none_is_forgotten(self) -> None:
        both = extender(body=extender_daemon_set(INSTALLATION, [11000, EXTENDER_PORT]))
        assert self.listens(self.moved, both, installed()) == [12000, 11000, EXTENDER_PORT]

    def test_nor_is_one_that_a_scheduler_calls_when_somebody_deletes_the_extender(self) -> None:
        both = extender(body=extender_daemon_set(INSTALLATION, [12000, EXTENDER_PORT]))
        pod = extender_pod(extender_ports=(12000, EXTENDER_PORT))
        host = control_plane("cp2")
        begun = due_jobs(sharing(self.moved, control_plane(), both, pod, installed(spec_hash="old")))
        undone = read_job({**begun, "metadata": {**begun["metadata"], "uid": "u"}, "status": FAILED})
        (action,) = [
            action
            for action in plan_cluster(
                sharing(self.moved, control_plane(), host, undone), INSTALLATION, NOW
            ).actions
            if isinstance(action, ApplyDaemonSet)
        ]
        listed = action.body["metadata"]["annotations"]["gpushare.io/extender-port"]
        assert listed == f"12000,{EXTENDER_PORT}"

    def listens(self, *seen: Any) -> list[int]:
        """The ports of the DaemonSet that is applied, if one is."""
        actions = plan_cluster(connected(*seen), INSTALLATION, NOW).actions
        applied = [action.body for action in actions if isinstance(action, ApplyDaemonSet)]
        ports = [body["metadata"]["annotations"]["gpushare.io/extender-port"] for body in applied]
        return [int(port) for text in ports for port in text.split(",")]

    def test_no_scheduler_is_pointed_at_a_port_before_an_extender_answers_there(self) -> None:
        assert due(connected(self.moved, self.extender_there, installed())) == []

    def test_then_the_schedulers_follow_one_after_the_other(self) -> None:
        hosts = [
            control_plane("cp2"),
            extender_pod("cp", extender_ports=(12000,)),
            extender_pod("cp2", extender_ports=(12000,)),
        ]
        seen = connected(self.moved, self.extender_there, installed(), installed("cp2"), hosts)
        (action,) = plan_cluster(seen, INSTALLATION, NOW).actions
        assert isinstance(action, CreateJob)
        assert action.name == "gpushare-scheduler-install-cp-2"
        assert "https://127.0.0.1:12000/gpushare" in str(action.body)

    def test_the_oldest_policy_decides(self) -> None:
        younger = policy("younger", created=1, spec=spec(rule("gpu-2"), scheduler={"extenderPort": 13000}))
        assert scheduler_settings(sharing(self.moved, younger)).port == 12000
        assert scheduler_settings(sharing(policy(deleting=True), younger)).port == 13000

    def test_it_stays_while_the_policy_that_decides_cannot_be_read(self) -> None:
        younger = policy("younger", created=1, spec=spec(rule("gpu-2"), scheduler={"extenderPort": 13000}))
        seen = sharing(policy(spec=None), younger, share("gpu-1", policy()), self.extender_there)
        assert scheduler_settings(seen).port == 12000

    def test_it_stays_while_no_policy_can_be_read(self) -> None:
        assert scheduler_settings(sharing(policy(spec=None), self.extender_there)).port == 12000
        assert scheduler_settings(sharing(policy(spec=None))).port == EXTENDER_PORT


class TestRolledBack:
    """An edit that kube-scheduler did not serve with, and that hostctl undid."""

    report = '{"result": "RolledBack", "message": "it did not serve", "inputs": "abc"}'

    def jobs(self, *seen: Any, ago: float = 10, report: str = report, **extra: Any) -> ClusterSnapshot:
        last = failed(INSTALL, ago=ago, **extra)
        return connected(last, job_pod(last, 3, report), *seen)

    def created(self, seen: ClusterSnapshot) -> CreateJob:
        (action,) = plan_cluster(seen, INSTALLATION, NOW).actions
        assert isinstance(action, CreateJob)
        return action

    def test_it_is_not_tried_again_by_itself(self) -> None:
        assert due(self.jobs()) == []
        assert due(self.jobs(sequence=1, ago=299)) == []

    def test_whether_the_host_has_changed_is_looked_at_without_touching_anything(self) -> None:
        container = self.created(self.jobs(ago=301)).body["spec"]["template"]["spec"]["containers"][0]
        assert container["args"][-2:] == ["--rolled-back-inputs", "abc"]

    def test_what_that_run_was_given_is_known_also_without_its_pod(self) -> None:
        looked = failed(INSTALL, ago=301, sequence=2, exit_code=3, rolled_back_inputs="abc")
        assert (
            "abc" in self.created(connected(looked)).body["spec"]["template"]["spec"]["containers"][0]["args"]
        )

    def test_without_a_report_it_waits_for_an_input_or_a_person(self) -> None:
        seen = connected(failed(INSTALL, ago=9999, exit_code=3))
        assert due(seen) == []
        assert plan_cluster(seen, INSTALLATION, NOW).retry_after is None

    def test_another_image_is_another_try(self) -> None:
        plan = plan_cluster(self.jobs(), replace(INSTALLATION, image="gpushare:new"), NOW)
        assert [short(action) for action in plan.actions if isinstance(action, CreateJob)] == [
            "+install-cp-2"
        ]

    def test_another_timeout_is_another_try(self) -> None:
        patient = policy(spec=spec(rule("gpu-1"), scheduler={"timeoutSeconds": 300}))
        assert "--rolled-back-inputs" not in str(self.created(self.jobs(patient)).body)

    def test_a_person_may_ask_for_another_try_once(self) -> None:
        seen = self.jobs(policy(retry="1"))
        assert "--rolled-back-inputs" not in str(self.created(seen).body)
        assert due(self.jobs(policy(retry="1"), asked=frozenset({"default=1"}))) == []
        assert due(self.jobs(policy(retry="2"), asked=frozenset({"default=1"}))) == ["+install-cp-2"]

    def test_a_person_may_ask_also_where_a_backoff_runs(self) -> None:
        assert due(connected(policy(retry="1"), failed(INSTALL, ago=0, sequence=9))) == ["+install-cp-10"]

    def test_no_other_host_is_edited_meanwhile(self) -> None:
        assert due(self.jobs(control_plane("cp2"), extender_pod("cp2"))) == []

    def test_restoring_goes_on_as_after_any_failure(self) -> None:
        last = failed(RESTORE, ago=11, sequence=2)
        assert due(abandoned(last, job_pod(last, 3))) == ["+restore-cp-3"]


class TestOneAtATime:
    """Three control planes, each with its extender."""

    nodes = ("cp-1", "cp-2", "cp-3")

    def connecting(self, *jobs: Any) -> list[str]:
        hosts, extenders = map(control_plane, self.nodes), map(extender_pod, self.nodes)
        return due(sharing(policy(), extender(), *hosts, *extenders, *jobs))

    def restoring(self, *seen: Any) -> list[str]:
        return due(sharing(extender(), *map(control_plane, self.nodes), *map(installed, self.nodes), *seen))

    def test_the_first_is_edited_first(self) -> None:
        assert self.connecting() == ["+install-cp-1-1"]

    def test_while_one_is_being_edited_the_others_wait(self) -> None:
        assert self.connecting(job(INSTALL, "cp-2")) == []

    def test_the_next_follows_when_the_one_before_serves(self) -> None:
        assert self.connecting(installed("cp-1")) == ["+install-cp-2-1"]
        assert self.connecting(installed("cp-1"), installed("cp-2")) == ["+install-cp-3-1"]

    def test_where_an_edit_was_undone_no_other_is_edited(self) -> None:
        undone = failed(INSTALL, ago=1, on="cp-2")
        assert self.connecting(installed("cp-1"), undone, job_pod(undone, 3)) == []

    def test_an_attempt_that_changed_nothing_holds_up_nobody(self) -> None:
        late = failed(INSTALL, ago=1, on="cp-1")
        assert self.connecting(late, job_pod(late, 1)) == ["+install-cp-2-1"]

    def test_what_was_not_touched_holds_up_nobody(self) -> None:
        refused = failed(INSTALL, ago=1, on="cp-1")
        assert self.connecting(refused, job_pod(refused, 2)) == ["+install-cp-2-1"]

    def test_a_node_that_is_away_holds_up_nobody(self) -> None:
        away = control_plane("cp-1", ready=False), extender_pod("cp-1", ready=False)
        assert self.connecting(*away, failed(INSTALL, ago=9, on="cp-1")) == ["+install-cp-2-1"]

    def test_a_host_whose_extender_is_not_ready_holds_up_nobody(self) -> None:
        assert self.connecting(extender_pod("cp-1", ready=False)) == ["+install-cp-2-1"]

    def test_an_edit_that_has_to_be_made_otherwise_is_made_one_by_one(self) -> None:
        jobs = [installed(name, spec_hash="old") for name in self.nodes]
        assert self.connecting(jobs) == ["+install-cp-1-2"]

    def test_they_are_restored_one_by_one(self) -> None:
        assert self.restoring() == ["+restore-cp-1-2"]
        assert self.restoring(job(RESTORE, "cp-1", 2)) == ["-install-cp-1-1"]
        assert self.restoring(restored("cp-1")) == ["+restore-cp-2-2", "-mark-cp-1", "-install-cp-1-1"]

    def test_one_that_could_not_be_restored_holds_up_nobody(self) -> None:
        again = failed(RESTORE, ago=400, sequence=2, on="cp-1")
        assert self.restoring(again) == ["+restore-cp-2-2", "-install-cp-1-1"]
        assert self.restoring(again, restored("cp-2"), restored("cp-3"))[0] == "+restore-cp-1-3"

    def test_hosts_whose_kubelet_is_there_come_first(self) -> None:
        assert self.restoring(control_plane("cp-1", ready=False)) == ["+restore-cp-2-2"]


def test_a_policy_without_our_finalizer_yet_does_not_need_the_scheduler() -> None:
    assert scheduler_needed(sharing(policy(finalizers=()))) is False
    assert scheduler_needed(sharing(policy(finalizers=(FINALIZER,)))) is True
