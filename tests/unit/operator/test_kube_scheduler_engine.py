"""Backend KubeScheduler with engine Plugin: what is in the way of an edit; what becomes of the extender."""

from dataclasses import replace
from datetime import timedelta
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
    policy,
    restored,
    rule,
    scheduler,
    serving,
    sharing,
    spec,
    untouched,
)

from gpushare_core.api.enums import Engine
from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_core.kubernetes_minors import KubernetesMinor
from gpushare_core.process.version import VERSION
from gpushare_operator.actions import (
    Action,
    ApplyDaemonSet,
    CreateJob,
    DeleteDaemonSet,
    DeleteJob,
    LabelNode,
)
from gpushare_operator.backends.engine_image import WITHOUT_OUR_IMAGE
from gpushare_operator.backends.kube_scheduler.engine import needs_scheduler_rights
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand, HostctlRun, hostctl_job
from gpushare_operator.cluster.objects import JobObject, ReadResult, ServerFacts
from gpushare_operator.cluster.readers.jobs import read_job
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies.engine_choice import EngineChoice
from gpushare_operator.policies.scheduler_settings import scheduler_settings
from gpushare_operator.status.policy import policy_status

INSTALL, RESTORE = HostctlCommand.INSTALL, HostctlCommand.RESTORE
IMAGE = f"gpushare-scheduler:{VERSION}-1.36"
STOCK = "registry.k8s.io/kube-scheduler:v1.36.3"
OUR_CONFIG = "/etc/kubernetes/gpushare/scheduler-config-0.yaml"
DEDICATED = {"backend": "Dedicated"}
APPLY = "kubectl apply -f manifests/kube-scheduler/rights.yaml"


def plugin_policy(**extra: Any) -> Any:
    return policy(spec=spec(rule("gpu-1"), scheduler={"engine": "Plugin"}), **extra)


def plugin_run(minor: int = 36) -> HostctlRun:
    run = hostctl_run(INSTALL, engine=Engine.PLUGIN)
    return replace(run, choice=EngineChoice(minor=KubernetesMinor(1, minor)))


def with_plugin(on: str = "cp", sequence: int = 1, **extra: Any) -> JobObject:
    """A host whose kube-scheduler has the plugin."""
    run = plugin_run()
    hashes = {"spec_hash": run.work_hash, "inputs_hash": run.inputs_hash, "engine": "Plugin"}
    return installed(on, sequence, **{**hashes, **extra})


def with_extender(on: str = "cp", sequence: int = 1) -> JobObject:
    return installed(on, sequence, engine="Extender")


def seen(
    *objects: Any, rights: ReadResult | None = ReadResult.FOUND, kubernetes: str = "v1.36.3"
) -> ClusterSnapshot:
    return replace(sharing(*objects, kubernetes=kubernetes), scheduler_rights=rights)


def short(action: Action) -> str:
    match action:
        case CreateJob():
            (container,) = action.body["spec"]["template"]["spec"]["containers"]
            engine = " plugin" if "Plugin" in container["args"] else ""
            return f"+{action.name.removeprefix('gpushare-scheduler-')}{engine}"
        case LabelNode():
            return f"mark {action.node}"
        case ApplyDaemonSet() | DeleteDaemonSet():
            return f"{'+' if isinstance(action, ApplyDaemonSet) else '-'}extender"
        case DeleteJob():
            return "superseded"
    return type(action).__name__


def due(snapshot: ClusterSnapshot) -> list[str]:
    actions = [short(action) for action in cluster_actions(snapshot)]
    return [action for action in actions if action != "superseded"]


def said(snapshot: ClusterSnapshot) -> tuple[str, str]:
    """The condition and the engine in a policy's status."""
    status = policy_status(snapshot, snapshot.policies["default"], INSTALLATION, now=NOW)
    (found,) = [each for each in status.conditions if each.type == "SchedulerConfigured"]
    return f"{found.status} {found.reason}: {found.message}", status.engine


def waits_for_its_image(waiting: str = "ImagePullBackOff: no such image") -> list[Any]:
    """A run that is to give the plugin to a host, and its pod."""
    run = plugin_run()
    running = job(INSTALL, spec_hash=run.work_hash, inputs_hash=run.inputs_hash, engine="Plugin")
    return [running, replace(job_pod(running, 0), exit_code=None, waiting=waiting)]


def withdrawn(snapshot: ClusterSnapshot) -> list[str]:
    return [action.name for action in cluster_actions(snapshot) if isinstance(action, DeleteJob)]


class TestWhatIsInTheWay:
    def test_without_rights_no_host_is_touched_and_the_condition_says_what_to_apply(self) -> None:
        for rights, why in (
            (ReadResult.MISSING, "the user system:kube-scheduler lacks rights that engine Plugin needs"),
            (
                ReadResult.FORBIDDEN,
                "the operator lacks the right to check the rights of the user system:kube-scheduler",
            ),
        ):
            snapshot = seen(plugin_policy(), untouched(), rights=rights)
            assert due(snapshot) == []
            condition, engine = said(snapshot)
            assert condition.startswith(
                f"False RightsMissing: {why}; until then no kube-scheduler is edited;"
            )
            assert condition.endswith(APPLY)
            assert engine == ""

    def test_in_another_namespace_the_file_has_to_be_changed_before(self) -> None:
        """It names the namespace of the operator's account and of the Lease."""
        snapshot = seen(plugin_policy(), untouched(), rights=ReadResult.MISSING)
        elsewhere = replace(INSTALLATION, namespace="gpu-sharing")
        status = policy_status(snapshot, snapshot.policies["default"], elsewhere, now=NOW)
        (found,) = [each for each in status.conditions if each.type == "SchedulerConfigured"]
        assert found.message.endswith(
            f"{APPLY} (write gpu-sharing in place of gpushare-system into it first)"
        )

    def test_nothing_is_said_of_rights_before_the_server_was_asked(self) -> None:
        snapshot = seen(plugin_policy(), untouched(), rights=None)
        assert due(snapshot) == []
        assert said(snapshot)[0].startswith("False Installing: waiting for the API server to report")

    def test_without_the_servers_version_no_engine_is_changed(self) -> None:
        """Where it is lost for a while, hosts with the plugin would get the extender, and back."""
        for hosts in ([with_plugin()], [with_extender(), extender(), extender_pod()]):
            snapshot = seen(plugin_policy(), control_plane(), *hosts, kubernetes="")
            assert due(snapshot) == []
            assert "waiting for the API server's version" in said(snapshot)[0]

    def test_hosts_keep_their_extender_until_the_rights_are_there(self) -> None:
        hosts = [control_plane(), with_extender(), extender(), extender_pod()]
        assert due(seen(plugin_policy(), *hosts, rights=ReadResult.MISSING)) == []
        assert due(seen(plugin_policy(), *hosts)) == ["+install-cp-2 plugin"]

    @pytest.mark.parametrize(
        ("scheduler", "needed"),
        [
            pytest.param({"engine": "Plugin"}, True, id="the plugin in the cluster's own"),
            pytest.param({}, False, id="the extender"),
            pytest.param({"backend": "Dedicated"}, False, id="the plugin in a scheduler of our own"),
        ],
    )
    def test_rights_are_asked_for_only_where_they_are_needed(
        self,
        scheduler: dict[str, str],
        needed: bool,  # noqa: FBT001
    ) -> None:
        asked = policy(spec=spec(rule("gpu-1"), scheduler=scheduler))
        assert needs_scheduler_rights(sharing(asked)) is needed
        assert not needs_scheduler_rights(sharing())


class TestHosts:
    def test_a_host_is_marked_then_edited_and_never_gets_an_extender(self) -> None:
        assert due(seen(plugin_policy(), untouched())) == ["mark cp"]
        assert due(seen(plugin_policy(), control_plane())) == ["+install-cp-1 plugin"]
        done = seen(plugin_policy(), control_plane(), with_plugin())
        assert due(done) == []
        assert said(done) == (
            f"True Configured: kube-scheduler ({IMAGE}, engine Plugin) places pods by cards on cp",
            "Plugin",
        )

    def test_one_host_after_the_other(self) -> None:
        hosts = [control_plane("cp-1"), control_plane("cp-2"), control_plane("cp-3")]
        assert due(seen(plugin_policy(), hosts)) == ["+install-cp-1-1 plugin"]
        running = job(INSTALL, "cp-1")
        assert due(seen(plugin_policy(), hosts, running)) == []
        assert due(seen(plugin_policy(), hosts, with_plugin("cp-1"))) == ["+install-cp-2-1 plugin"]

    def test_a_host_that_is_away_waits(self) -> None:
        away = seen(plugin_policy(), control_plane(ready=False))
        assert due(away) == []
        assert "cp: the node is not Ready, and its turn comes when it is back" in said(away)[0]

    def test_after_an_edit_that_was_undone_no_other_host_is_tried(self) -> None:
        run = plugin_run()
        undone = failed(INSTALL, ago=60, on="cp-1", spec_hash=run.work_hash, exit_code=3)
        undone = replace(undone, inputs_hash=run.inputs_hash)
        snapshot = seen(plugin_policy(), control_plane("cp-1"), control_plane("cp-2"), undone)
        assert due(snapshot) == []
        assert said(snapshot)[0].startswith("False NeedsAttention: cp-1: ")

    def test_another_version_of_the_server_is_another_image(self) -> None:
        hosts = [control_plane(), with_plugin()]
        assert due(seen(plugin_policy(), hosts, kubernetes="v1.36.9")) == []
        assert due(seen(plugin_policy(), hosts, kubernetes="v1.37.0")) == ["+install-cp-2 plugin"]

    def test_an_image_that_cannot_be_pulled_is_said_while_the_run_waits_for_it(self) -> None:
        assert said(seen(plugin_policy(), control_plane(), waits_for_its_image()))[0] == (
            "False Installing: cp: kube-scheduler is being connected; ImagePullBackOff: no such image"
            f"; {WITHOUT_OUR_IMAGE}"
        )

    def test_an_image_that_was_not_pulled_in_time_is_said_when_the_pod_is_gone(self) -> None:
        late = failed(INSTALL, ago=1, failure="DeadlineExceeded", engine="Plugin")
        condition, _ = said(seen(plugin_policy(), control_plane(), late))
        assert (
            "Job gpushare-scheduler-install-cp-1 failed (DeadlineExceeded), and its pod is gone" in condition
        )
        assert "set scheduler.engine to Extender" in condition

    def test_an_image_that_does_not_start_is_said_with_what_the_kubelet_says(self) -> None:
        """Such as one for another architecture: the init container fails, and hostctl never begins."""
        ended = failed(INSTALL, ago=1, engine="Plugin")
        why = "exec /usr/local/bin/kube-scheduler: exec format error"
        pod = replace(job_pod(ended, 0, why), exit_code=None, waiting="PodInitializing")
        condition, _ = said(seen(plugin_policy(), control_plane(), ended, pod))
        assert condition == f"False InstallFailed: cp: {why}; {WITHOUT_OUR_IMAGE}"

    @pytest.mark.parametrize(
        ("config", "image", "state"),
        [
            pytest.param(OUR_CONFIG, IMAGE, "True Configured", id="as hostctl left it"),
            pytest.param(OUR_CONFIG, STOCK, "False ConnectionLost", id="its image written anew"),
            pytest.param("", STOCK, "False ConnectionLost", id="written anew"),
        ],
    )
    def test_a_kube_scheduler_with_another_image_is_edited_again(
        self, config: str, image: str, state: str
    ) -> None:
        """It does not start with a configuration that names the plugin, so it must not count as connected."""
        long_ago = NOW - timedelta(minutes=10)
        shown = scheduler(config=config, image=image)
        snapshot = seen(plugin_policy(), control_plane(), with_plugin(finished=long_ago), shown)
        assert said(snapshot)[0].startswith(state)
        assert due(snapshot) == ([] if state.startswith("True") else ["+install-cp-2 plugin"])

    def test_with_the_extender_any_image_will_do(self) -> None:
        hosts = [control_plane(), with_extender(), extender(), extender_pod()]
        shown = scheduler(config=OUR_CONFIG, image=STOCK, seen=NOW + timedelta(minutes=10))
        assert due(seen(policy(), hosts, shown)) == []


class TestRunsThatWaitForAnImage:
    """Until their deadline, which is minutes away, they would hold up what people ask for meanwhile."""

    @pytest.mark.parametrize(
        "others",
        [
            pytest.param([policy()], id="back to the extender"),
            pytest.param([], id="without a policy"),
            pytest.param([policy(spec=spec(rule("gpu-1"), scheduler=DEDICATED))], id="another backend"),
        ],
    )
    def test_one_that_nobody_asks_for_any_more_is_withdrawn(self, others: list[Any]) -> None:
        facts = ServerFacts(pod_policy=ReadResult.FOUND, pods_without_scheduler=())
        snapshot = seen(*others, facts, control_plane(), waits_for_its_image())
        assert withdrawn(snapshot) == [job(INSTALL).name]
        assert not any(isinstance(action, CreateJob) for action in cluster_actions(snapshot))

    def test_of_another_version_of_the_server_another_image_is_waited_for(self) -> None:
        hosts = [control_plane(), *waits_for_its_image()]
        assert withdrawn(seen(plugin_policy(), hosts, kubernetes="v1.37.0")) == [job(INSTALL).name]

    def test_one_that_is_asked_for_waits_on(self) -> None:
        assert withdrawn(seen(plugin_policy(), control_plane(), waits_for_its_image())) == []

    @pytest.mark.parametrize("waiting", ["", "PodInitializing; kubectl describe"])
    def test_one_that_may_be_at_work_is_left_alone(self, waiting: str) -> None:
        assert withdrawn(seen(policy(), control_plane(), waits_for_its_image(waiting))) == []

    def test_nothing_is_withdrawn_while_the_servers_version_is_not_known(self) -> None:
        hosts = [control_plane(), *waits_for_its_image()]
        assert withdrawn(seen(plugin_policy(), hosts, kubernetes="")) == []

    def test_it_is_withdrawn_once(self) -> None:
        running, pod = waits_for_its_image()
        snapshot = seen(policy(), control_plane(), replace(running, deleting=True), pod)
        assert withdrawn(snapshot) == []

    def test_after_it_the_attempts_are_numbered_on(self) -> None:
        """By its number a mark, and the extender that it brought, are known to be from before a restoring."""
        marked = replace(control_plane(), labels={**control_plane().labels, SCHEDULER_LABEL: "5"})
        assert due(seen(marked)) == ["+restore-cp-5"]
        assert due(seen(plugin_policy(), marked)) == ["+install-cp-5 plugin"]
        hosts = [marked, restored(sequence=5), extender(), extender_pod()]
        assert due(seen(policy(), hosts)) == ["mark cp"]


class TestChangeOfEngine:
    hosts = (control_plane("cp-1"), control_plane("cp-2"))
    extenders = (extender(), extender_pod("cp-1"), extender_pod("cp-2"))

    def test_the_extender_stays_until_no_kube_scheduler_calls_it(self) -> None:
        both = (with_extender("cp-1"), with_extender("cp-2"))
        assert due(seen(plugin_policy(), self.hosts, self.extenders, both)) == ["+install-cp-1-2 plugin"]
        one = (with_plugin("cp-1", 2), with_extender("cp-2"))
        assert due(seen(plugin_policy(), self.hosts, self.extenders, one)) == ["+install-cp-2-2 plugin"]
        none = (with_plugin("cp-1", 2), with_plugin("cp-2", 2))
        assert due(seen(plugin_policy(), self.hosts, self.extenders, none)) == ["-extender"]
        assert due(seen(plugin_policy(), self.hosts, extender(deleting=True), none)) == []

    def test_an_extender_that_has_lost_its_keys_is_no_trouble(self) -> None:
        unready = [replace(pod, ready=False, last_words="no keys") for pod in self.extenders[1:]]
        seen_now = seen(
            plugin_policy(), self.hosts, extender(), unready, with_plugin("cp-1"), with_extender("cp-2")
        )
        assert said(seen_now)[0] == "False Installing: cp-2: kube-scheduler is about to be connected"

    def test_back_to_the_extender_it_is_there_before_a_host_is_edited(self) -> None:
        plain, done = policy(), (with_plugin("cp-1"), with_plugin("cp-2"))
        assert due(seen(plain, self.hosts, done, rights=None)) == ["+extender"]
        assert due(seen(plain, self.hosts, done, extender(), rights=None)) == []
        ready = seen(plain, self.hosts, done, self.extenders, rights=None)
        assert due(ready) == ["+install-cp-1-2"]

    def test_where_there_is_none_for_the_servers_version_the_extender_serves(self) -> None:
        ours = (plugin_policy(), control_plane(), with_plugin())
        too_new = seen(*ours, kubernetes="v1.39.0", rights=None)
        assert due(too_new) == ["+extender"]
        connected = (plugin_policy(), serving(policy(), "gpu-1")[1:])
        condition, engine = said(seen(*connected, kubernetes="v1.39.0"))
        assert condition.startswith(
            "True Configured: kube-scheduler asks the extender on cp; engine Extender is"
        )
        assert "none for API servers of 1.39" in condition
        assert engine == "Extender"

    def test_while_the_policy_cannot_be_read_the_engine_stays(self) -> None:
        unreadable = replace(policy(), spec=None)
        later = with_extender("cp-2", 3)
        later = replace(later, finished=NOW + timedelta(hours=1))
        run = plugin_run()
        undone = failed(INSTALL, ago=-3600, on="cp-2", spec_hash=run.work_hash, exit_code=3, engine="Plugin")
        for jobs, engine in (
            ((with_plugin(),), Engine.PLUGIN),
            ((with_plugin(), later), Engine.EXTENDER),
            ((with_extender(), undone), Engine.EXTENDER),
        ):
            snapshot = seen(unreadable, control_plane(), jobs)
            assert scheduler_settings(snapshot).engine is engine

    def test_the_last_policy_takes_everything_back(self) -> None:
        hosts = [control_plane(), with_plugin()]
        assert due(seen(hosts, rights=None)) == ["+restore-cp-2"]
        assert due(seen(control_plane(), restored(), rights=None)) == ["mark cp"]


class TestTheJob:
    body = hostctl_job(plugin_run(), control_plane(), 1)
    pod = body["spec"]["template"]["spec"]

    def test_it_gives_hostctl_the_image_and_the_namespace_of_the_lease(self) -> None:
        (container,) = self.pod["containers"]
        assert container["args"] == [
            *("install", "--root", "/host", "--timeout", "120", "--engine", "Plugin"),
            *("--managed-resource", "gpushare.io/memory", "--managed-resource", "gpushare.io/slice"),
            *("--managed-resource", "gpushare.io/card", "--weight", "5"),
            *("--scheduler-image", IMAGE, "--lease-namespace", "gpushare-system"),
        ]

    def test_the_hosts_kubelet_pulls_and_runs_the_image_before_hostctl_begins(self) -> None:
        (check,) = self.pod["initContainers"]
        assert (check["image"], check["command"], check["args"]) == (IMAGE, ["kube-scheduler"], ["--version"])
        assert "volumeMounts" not in check
        context = check["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, 65532)
        assert self.pod["nodeName"] == "cp"

    def test_it_has_time_to_pull(self) -> None:
        plain = hostctl_job(hostctl_run(INSTALL), control_plane(), 1)["spec"]
        assert self.body["spec"]["activeDeadlineSeconds"] == plain["activeDeadlineSeconds"] + 300
        assert "initContainers" not in plain["template"]["spec"]

    def test_restoring_needs_no_image(self) -> None:
        run = replace(plugin_run(), command=RESTORE)
        pod = hostctl_job(run, control_plane(), 2)["spec"]["template"]["spec"]
        assert "initContainers" not in pod
        assert pod["containers"][0]["args"] == ["restore", "--root", "/host", "--timeout", "120"]

    @pytest.mark.parametrize(
        ("run", "engine"), [(plugin_run(), "Plugin"), (hostctl_run(INSTALL), "Extender")]
    )
    def test_it_says_which_engine_it_connects(self, run: HostctlRun, engine: str) -> None:
        body = hostctl_job(run, control_plane(), 1)
        body["metadata"]["uid"] = "uid"
        assert read_job(body).engine == engine

    def test_the_extenders_port_does_not_change_what_the_plugin_gets(self) -> None:
        moved = replace(plugin_run(), settings=replace(plugin_run().settings, port=4000, listening=(4000,)))
        assert moved.work_hash == plugin_run().work_hash
        assert plugin_run(37).work_hash != plugin_run().work_hash
