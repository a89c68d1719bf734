"""What becomes of a host: marks, fresh extenders, keys that run out, lost edits, lost hosts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    cluster_actions,
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
    policy_actions,
    restored,
    scheduler,
    serving,
    sharing,
    untouched,
)

from gpushare_core.api.names import CONTROL_PLANE_LABEL, SCHEDULER_LABEL
from gpushare_operator.actions import Action, CreateJob, DeleteJob, LabelNode
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.cluster.readers.jobs import read_job
from gpushare_operator.cluster.readers.policies import read_policy
from gpushare_operator.cluster.readers.schedulers import read_scheduler
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.desired.pod_template import digest
from gpushare_operator.status.policy import policy_status

INSTALL, RESTORE = HostctlCommand.INSTALL, HostctlCommand.RESTORE
DAY = timedelta(days=1)
OURS = "/etc/kubernetes/gpushare/scheduler-config-0.yaml"


def short(action: Action) -> str:
    match action:
        case CreateJob():
            return f"+{action.name.removeprefix('gpushare-scheduler-')}"
        case LabelNode():
            return f"mark {action.node} {action.labels[SCHEDULER_LABEL] or 'off'}"
        case DeleteJob():
            return "superseded"
    return type(action).__name__


def due(*seen: Any) -> list[str]:
    """Without Jobs that others have replaced."""
    actions = [short(action) for action in cluster_actions(sharing(*seen))]
    return [action for action in actions if action != "superseded"]


def marked(attempt: int, name: str = "cp", **extra: Any) -> Any:
    return node(name, labels={CONTROL_PLANE_LABEL: "", SCHEDULER_LABEL: str(attempt)}, **extra)


class TestMarks:
    def test_the_label_is_one_that_no_kubelet_may_set(self) -> None:
        """Source: the admission plugin NodeRestriction."""
        assert SCHEDULER_LABEL.split("/")[0].endswith(".node-restriction.kubernetes.io")

    def test_the_mark_brings_the_extender(self) -> None:
        assert due(policy(), untouched(), extender()) == ["mark cp 1"]
        assert due(policy(), marked(1), extender()) == []
        assert due(policy(), marked(1), extender(), extender_pod()) == ["+install-cp-1"]

    def test_a_worker_that_labels_itself_is_no_host(self) -> None:
        worker = node("gpu-1", labels={"gpushare.io/scheduler": "connected"})
        assert due(policy(), extender(), control_plane(), worker, extender_pod("gpu-1")) == []

    def test_none_is_put_on_while_the_host_is_being_restored(self) -> None:
        """It would bring an extender that waits in the folder of keys that is about to go."""
        assert due(policy(), extender(), untouched(), job(RESTORE, sequence=2)) == []


class TestUnlabelledHosts:
    """Somebody made their Node anew: no extender runs there, but their schedulers would ask it."""

    seen = (policy(), extender(), control_plane(), extender_pod(), installed(), node("cp-2"))

    def test_they_are_restored_while_a_policy_lives(self) -> None:
        assert due(*self.seen, installed("cp-2")) == ["+restore-cp-2-2"]
        assert due(*self.seen, job(RESTORE, "cp-2", 2)) == []
        assert due(*self.seen, restored("cp-2")) == []

    def test_one_at_a_time_with_all_others(self) -> None:
        assert due(*self.seen, installed("cp-2"), job(INSTALL, sequence=2)) == []
        assert due(*self.seen, job(RESTORE, "cp-2", 2), installed(spec_hash="old")) == []

    def test_a_label_connects_them_again(self) -> None:
        assert due(*self.seen, untouched("cp-2"), restored("cp-2")) == ["mark cp-2 3"]


class TestPolicyAppliedWhileOthersAreRestored:
    """The extender of a restored host has its keys in a folder that is gone: hostctl would not know it."""

    def test_a_restored_host_loses_its_extender_with_its_mark(self) -> None:
        seen = [control_plane("cp-2"), extender(), extender_pod("cp"), installed("cp-2")]
        assert due(*seen, marked(1), restored()) == ["+restore-cp-2-2", "mark cp off"]

    def test_then_another_one_comes_and_only_then_it_is_edited(self) -> None:
        seen = [policy(), extender(), restored()]
        assert due(*seen, marked(1), extender_pod()) == ["mark cp off"]
        assert due(*seen, untouched(), extender_pod()) == [], "the former extender has not stopped yet"
        assert due(*seen, untouched()) == ["mark cp 3"]
        assert due(*seen, marked(3)) == []
        assert due(*seen, marked(3), extender_pod(ready=False)) == ["+install-cp-3"]

    def test_where_the_jobs_are_lost_it_is_simply_edited(self) -> None:
        assert due(policy(), extender(), marked(7), extender_pod()) == ["+install-cp-7"]


def reported(at: datetime, **extra: Any) -> list[Any]:
    """An install that said when the keys are to be renewed."""
    done = installed(**extra)
    return [done, job_pod(done, 0, f'{{"result": "Installed", "renewAfter": "{at.isoformat()}"}}')]


class TestKeys:
    seen = (policy(), extender(), control_plane(), extender_pod())

    @pytest.mark.parametrize(
        ("after", "finished", "expected"),
        [
            pytest.param(NOW + DAY, NOW - 200 * DAY, [], id="hostctl said when: not before"),
            pytest.param(NOW - DAY, NOW - 20 * DAY, ["+install-cp-2"], id="hostctl said when: then"),
            pytest.param(NOW - DAY, NOW, [], id="a host whose clock is wrong is not asked all the time"),
        ],
    )
    def test_they_are_renewed_when_hostctl_said(
        self, after: datetime, finished: datetime, expected: list[str]
    ) -> None:
        assert due(*self.seen, reported(after, finished=finished)) == expected

    def test_what_hostctl_said_is_known_also_without_its_pod(self) -> None:
        noted = installed(finished=NOW - 2 * DAY, renew_after=NOW - DAY)
        assert due(*self.seen, noted) == ["+install-cp-2"]
        assert due(*self.seen, installed(finished=NOW - DAY, renew_after=NOW - 2 * DAY)) == []

    def test_the_next_attempt_carries_it_along(self) -> None:
        old = reported(NOW + DAY, finished=NOW - 2 * DAY, spec_hash="other")
        (action,) = plan_cluster(sharing(*self.seen, old), INSTALLATION, NOW).actions
        assert isinstance(action, CreateJob)
        assert read_job({**action.body, "status": {}, "metadata": with_uid(action)}).renew_after == NOW + DAY

    def test_a_renewal_waits_for_no_other_host(self) -> None:
        undone = failed(INSTALL, ago=1, on="cp-2")
        others = [control_plane("cp-2"), extender_pod("cp-2"), undone, job_pod(undone, 3)]
        assert due(*self.seen, *others, installed(finished=NOW - 101 * DAY)) == ["+install-cp-2"]
        assert due(*self.seen, *others, installed(spec_hash="old")) == []

    def test_a_renewal_is_tried_once_after_an_edit_was_undone(self) -> None:
        """The certificate is an input of the edit that nobody else compares."""

        def arguments(finished: datetime) -> list[str]:
            undone = failed(INSTALL, ago=(NOW - finished).total_seconds(), renew_after=NOW - DAY)
            report = job_pod(undone, 3, '{"result": "RolledBack", "inputs": "abc", "renewAfter": null}')
            actions = cluster_actions(sharing(*self.seen, undone, report))
            jobs = [action.body for action in actions if isinstance(action, CreateJob)]
            return [arg for body in jobs for arg in body["spec"]["template"]["spec"]["containers"][0]["args"]]

        assert "install" in arguments(NOW - 2 * DAY)
        assert "--rolled-back-inputs" not in arguments(NOW - 2 * DAY)
        assert "--rolled-back-inputs" in arguments(NOW - DAY / 2)


def with_uid(action: CreateJob) -> dict[str, Any]:
    return {**action.body["metadata"], "uid": "uid"}


class TestLostEdit:
    """A kubeadm upgrade writes the manifest anew: its kubelet shows a kube-scheduler without our --config."""

    seen = (policy(), extender(), control_plane(), extender_pod())

    @pytest.mark.parametrize(
        ("shown", "expected"),
        [
            pytest.param(scheduler(), ["+install-cp-2"], id="without --config"),
            pytest.param(scheduler(config="/etc/kubernetes/own.yaml"), ["+install-cp-2"], id="theirs alone"),
            pytest.param(scheduler(config="/etc/kubernetes/gpushare/scheduler-config-0.yaml"), [], id="ours"),
            pytest.param(scheduler(seen=NOW - DAY), [], id="seen before the edit"),
            pytest.param(scheduler(seen=NOW - DAY / 2 + timedelta(seconds=30)), [], id="seen right after it"),
            pytest.param(scheduler("other"), [], id="not seen"),
        ],
    )
    def test_it_is_edited_again(self, shown: Any, expected: list[str]) -> None:
        assert due(*self.seen, shown, installed(finished=NOW - DAY / 2)) == expected

    def test_another_static_pod_with_that_label_is_no_sign_of_it(self) -> None:
        ours = scheduler(config="/etc/kubernetes/gpushare/scheduler-config-0.yaml")
        second = scheduler(node="cp", name="second-scheduler-cp", config="/etc/kubernetes/second.yaml")
        old = installed(finished=NOW - DAY / 2)
        assert due(*self.seen, ours, second, old) == []
        assert due(*self.seen, second, ours, old) == []

    def test_the_flags_are_those_of_kube_scheduler_and_not_of_a_container_beside_it(self) -> None:
        containers = [
            {"name": "proxy", "command": ["proxy", "--config=/proxy.yaml"]},
            {"name": "a", "image": "ours:1", "command": ["/bin/kube-scheduler", "--config=/ours.yaml"]},
        ]
        body = {"metadata": {"name": "a"}, "spec": {"nodeName": "cp", "containers": containers}}
        read = read_scheduler(body, NOW)
        assert (read.config, read.image) == ("/ours.yaml", "ours:1")

    def test_a_repair_that_does_not_help_is_repeated_every_five_minutes_only(self) -> None:
        def repaired(minutes: int) -> Any:
            return installed(finished=NOW - timedelta(minutes=minutes), has_drifted=True)

        assert due(*self.seen, scheduler(), repaired(4)) == []
        assert due(*self.seen, scheduler(), repaired(6)) == ["+install-cp-2"]

    def test_the_job_says_why(self) -> None:
        seen = sharing(*self.seen, scheduler(), installed(finished=NOW - DAY))
        (action,) = cluster_actions(seen)
        assert isinstance(action, CreateJob)
        assert read_job({**action.body, "status": {}, "metadata": with_uid(action)}).has_drifted is True

    def test_while_it_is_taken_back_nobody_minds(self) -> None:
        seen = [control_plane(), extender(), extender_pod(), scheduler(), restored(finished=NOW - DAY)]
        assert due(*seen) == ["DeleteDaemonSet"]

    @pytest.mark.parametrize(
        ("command", "config"),
        [
            pytest.param(["kube-scheduler", "--leader-elect=true"], "", id="none"),
            pytest.param(["kube-scheduler", "--config=/a", "--config=/b"], "/b", id="the last one counts"),
            pytest.param(["kube-scheduler", "--config", "/a"], "/a", id="apart"),
            pytest.param(["kube-scheduler", "-config=/a", "--config"], "", id="nothing behind it"),
        ],
    )
    def test_the_flag_is_read_as_kube_scheduler_does(self, command: list[str], config: str) -> None:
        spec = {"nodeName": "cp", "containers": [{"command": command}]}
        read = read_scheduler({"metadata": {"name": "kube-scheduler-cp"}, "spec": spec}, NOW)
        assert (read.node, read.config) == ("cp", config)


class TestRestarts:
    """Who changes a --config file of their own restarts kube-scheduler, which reads it once: so hostctl looks
    again, and merges that file anew if it is another one."""

    seen = (policy(), extender(), control_plane(), extender_pod())

    @pytest.mark.parametrize(
        ("started", "finished", "expected"),
        [
            pytest.param(timedelta(minutes=1), DAY / 2, ["+install-cp-2"], id="since we looked"),
            pytest.param(DAY, DAY / 2, [], id="before"),
            pytest.param(timedelta(minutes=1), timedelta(minutes=4), [], id="again and again"),
            pytest.param(timedelta(minutes=1), timedelta(minutes=6), ["+install-cp-2"], id="minutes later"),
        ],
    )
    def test_a_host_whose_scheduler_was_restarted_is_looked_at_again(
        self, started: timedelta, finished: timedelta, expected: list[str]
    ) -> None:
        shown = scheduler(config=OURS, started=NOW - started)
        assert due(*self.seen, shown, installed(finished=NOW - finished)) == expected

    @pytest.mark.parametrize(
        ("exit_code", "started", "expected"),
        [
            pytest.param(2, 4, ["+restore-cp-3"], id="since a person was asked for"),
            pytest.param(2, 60, [], id="before"),
            pytest.param(1, 4, [], id="by the restoration itself"),
        ],
    )
    def test_a_manifest_that_is_put_back_is_restored_at_once(
        self, exit_code: int, started: int, expected: list[str]
    ) -> None:
        asked = failed(RESTORE, ago=8, sequence=2, exit_code=exit_code)
        shown = scheduler(config=OURS, started=NOW - timedelta(seconds=started))
        leaving = policy(deleting=True)
        assert due(leaving, extender(), control_plane(), asked, shown) == expected

    def test_nobody_waits_for_it(self) -> None:
        restarted = scheduler(config=OURS, started=NOW - timedelta(minutes=1))
        seen = sharing(serving(policy(), "gpu-1"), installed(finished=NOW - DAY), restarted)
        status = policy_status(seen, seen.policies["default"], INSTALLATION, now=NOW)
        (configured,) = [
            condition for condition in status.conditions if condition.type == "SchedulerConfigured"
        ]
        assert configured.status == "True"

    def test_the_start_is_that_of_the_container_which_runs_now(self) -> None:
        statuses = [
            {"name": "kube-scheduler", "state": {"running": {"startedAt": "2026-11-21T11:00:00Z"}}},
            {"name": "proxy", "state": {"waiting": {}}},
        ]
        body = {"metadata": {"name": "a"}, "status": {"containerStatuses": statuses}}
        assert read_scheduler(body, NOW).started == NOW - timedelta(hours=1)
        assert read_scheduler({"metadata": {"name": "a"}}, NOW).started is None


class TestUpgrades:
    def test_hosts_that_an_earlier_version_edited_are_edited_as_this_one_does(self) -> None:
        """It may write more for the same arguments: the first one wrote no ``preemptVerb``."""
        run = hostctl_run(INSTALL)
        earlier = digest({"command": "install", "edit": run.edit})
        seen = (policy(), extender(), control_plane(), extender_pod())
        assert due(*seen, installed(spec_hash=earlier)) == ["+install-cp-2"]


class TestLostHosts:
    gone = policy(deleting=True)
    named = policy(deleting=True, let_go=frozenset({"cp-2"}))
    dead = control_plane("cp-2", ready=False)

    def test_a_dead_host_holds_up_the_deletion(self) -> None:
        """Nobody knows yet that it stays away; its scheduler would ask an extender that is gone."""
        stuck = failed(RESTORE, ago=1, sequence=2, on="cp-2")
        assert due(self.gone, control_plane(), self.dead, extender(), restored(), stuck) == ["mark cp off"]
        assert policy_actions(sharing(self.gone, self.dead, stuck)) == []

    def test_until_a_person_lets_it_go(self) -> None:
        seen: list[Any] = [self.named, untouched(), self.dead, restored(), installed("cp-2")]
        assert due(*seen, extender()) == ["DeleteDaemonSet"]
        assert cluster_actions(sharing(*seen)) == [
            DeleteJob("gpushare-scheduler-restore-cp-2", "uid-job-2"),
            DeleteJob("gpushare-scheduler-install-cp-2-1", "uid-job-1"),
        ]
        assert [type(action).__name__ for action in policy_actions(sharing(self.named, self.dead))] == [
            "SetFinalizers"
        ]

    def test_when_it_comes_back_it_is_restored_like_any_other(self) -> None:
        """It was left to people, who find no gpushare-hostctl on a host."""
        assert due(untouched(), self.dead) == [], "the policy is gone, and it is still away"
        back = control_plane("cp-2")
        assert due(untouched(), back) == ["+restore-cp-2-1"]
        assert due(untouched(), back, restored("cp-2")) == ["mark cp-2 off"]
        (last,) = cluster_actions(sharing(untouched(), untouched("cp-2"), restored("cp-2")))
        assert isinstance(last, DeleteJob)

    def test_its_mark_holds_up_no_other_policy(self) -> None:
        seen = [policy(), untouched(), extender()]
        assert due(*seen, self.dead) == ["mark cp 1"]

    def test_one_whose_kubelet_is_there_is_restored_all_the_same(self) -> None:
        """The annotation may be from a time at which it was away."""
        seen = [self.named, control_plane("cp-2"), installed("cp-2"), extender()]
        assert due(*seen) == ["+restore-cp-2-2"]
        assert due(*seen, job(RESTORE, "cp-2", 2)) == []

    def test_but_is_waited_for_only_once(self) -> None:
        seen = [self.named, control_plane("cp-2"), extender()]
        assert due(*seen, failed(RESTORE, ago=1, sequence=2, on="cp-2")) == ["DeleteDaemonSet"]

    def test_a_worker_of_the_same_name_that_cannot_be_restored_is_let_go_while_a_policy_lives(self) -> None:
        """Without /etc/kubernetes the Job's pod never starts."""
        seen = [policy(let_go=frozenset({"cp-2"})), extender(), control_plane(), extender_pod(), installed()]
        refused = failed(RESTORE, ago=999, sequence=2, on="cp-2")
        assert due(*seen, node("cp-2"), refused) == []
        assert due(policy(), *seen[1:], node("cp-2"), refused) == ["+restore-cp-2-3"]

    @pytest.mark.parametrize(
        "lost",
        [
            pytest.param([], id="its Node is gone"),
            pytest.param([node("cp-2", labels={CONTROL_PLANE_LABEL: ""}, deleting=True)], id="it goes"),
        ],
    )
    def test_while_hostctl_is_at_work_on_it_no_other_host_is_touched(self, lost: list[Any]) -> None:
        at_work = job(INSTALL, "cp-2")
        assert due(policy(), extender(), control_plane(), extender_pod(), *lost, at_work) == []
        assert due(self.gone, extender(), control_plane(), installed(), *lost, at_work) == []

    def test_nor_where_it_was_let_go_although_its_kubelet_is_there(self) -> None:
        at_work = job(INSTALL, "cp-2")
        seen = [self.named, extender(), control_plane(), installed(), at_work]
        assert due(*seen, control_plane("cp-2")) == []

    def test_a_run_that_waits_on_a_host_that_was_let_go_is_withdrawn_first(self) -> None:
        """It would begin when the host comes back, beside one on another host."""
        seen = sharing(self.named, extender(), control_plane(), installed(), job(INSTALL, "cp-2"), self.dead)
        assert cluster_actions(seen) == [DeleteJob("gpushare-scheduler-install-cp-2-1", "uid-job-1")]

    def test_letting_go_of_a_host_touches_nothing_while_the_policy_lives(self) -> None:
        lives = policy(let_go=frozenset({"cp"}))
        assert due(lives, control_plane(), extender(), extender_pod(), installed()) == []

    @pytest.mark.parametrize(
        ("text", "names"),
        [("cp-2", {"cp-2"}), (" cp-2, cp-3,", {"cp-2", "cp-3"}), ("", set())],
    )
    def test_people_name_them_by_an_annotation(self, text: str, names: set[str]) -> None:
        metadata = {"name": "default", "uid": "u", "annotations": {"gpushare.io/let-go": text}}
        assert read_policy({"metadata": metadata, "spec": {}}).let_go == names

    def test_a_run_on_a_node_that_died_holds_up_no_other_host(self) -> None:
        """Kubernetes gives it up at its deadline, but calls it failed only when its pod has stopped."""
        given_up = job(INSTALL, "cp-2", failing=True, finished=NOW)
        seen = [policy(), extender(), control_plane(), extender_pod()]
        assert due(*seen, self.dead, given_up) == ["+install-cp-1"]
        assert due(*seen, control_plane("cp-2"), given_up) == [], "there its pod is about to stop"
        assert due(*seen, self.dead, job(INSTALL, "cp-2")) == [], "hostctl may still be at work"

    def test_where_a_run_was_given_up_no_other_one_leaves_a_pod_that_cannot_stop(self) -> None:
        given_up = job(RESTORE, "cp-2", 2, failing=True, finished=NOW - DAY)
        assert due(self.gone, extender(), untouched(), restored(), self.dead, given_up) == []

    def test_a_job_that_was_given_up_is_read(self) -> None:
        moment = "2026-11-21T12:00:00Z"
        condition = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded", "message": ""}
        status = {"conditions": [{**condition, "lastTransitionTime": moment}]}
        read = read_job({"metadata": {"name": "a", "uid": "u"}, "status": status})
        assert (read.failing, read.failed, read.active, read.failure) == (
            True,
            False,
            True,
            "DeadlineExceeded",
        )
        assert read.finished == datetime(2026, 11, 21, 12, tzinfo=UTC)
