"""Control planes that die, come back and get upgraded, whose Jobs take time, fail or hang; and the states
that they must never show."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tests.fakes.operator_cluster import JOBS, PODS, Cluster

from gpushare_core.api.names import EXTENDER_PORT, FINALIZER
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.kinds import SCHEDULER_PODS
from gpushare_operator.cluster.labels import (
    COMMAND_LABEL,
    EXTENDER,
    JOB_NAME_LABEL,
    LET_GO_ANNOTATION,
    NODE_ANNOTATION,
    PORT_ANNOTATION,
    read_ports,
)

NOTICED_AFTER = timedelta(seconds=40)
"""So long a node may be silent before it is not Ready."""
GONE_AFTER = timedelta(seconds=60)
"""So long after its Node a pod is taken away."""
GRACE = timedelta(seconds=150)
"""For states that must not last: an extender that is being replaced, an upgrade that nobody has noticed."""


PLUGIN = 0
"""In place of a port: kube-scheduler has the plugin, and asks nobody."""


@dataclass
class Host:
    """A machine with a kube-scheduler. ``port`` is where that asks the extender, or PLUGIN; None without our
    edit."""

    name: str
    up: bool = True
    port: int | None = None
    silent_since: datetime | None = None
    changed: datetime | None = None
    """When something else last took our edit away, or the machine came back."""
    unheard_since: datetime | None = None
    """Since when nobody listens where its scheduler asks."""
    resists: bool = False
    """The last run could not restore it."""
    excused: bool = False
    """The operator gave the host up while it was away, or its Node was created anew: until the edit is made
    again, its kube-scheduler may ask in vain."""


@dataclass
class Run:
    """One run of hostctl: ``ends`` by itself, in ``outcome``."""

    host: str
    began: datetime
    ends: datetime
    outcome: str


@dataclass
class ControlPlanes(Cluster):
    """``chance`` decides everything; ``calm`` makes every later run succeed."""

    chance: random.Random = field(default_factory=random.Random)
    hosts: dict[str, Host] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    given_up: dict[str, datetime] = field(default_factory=dict)
    """Jobs whose Node is gone, since when."""
    calm: bool = False
    problems: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def add_host(self, name: str) -> None:
        self.add_node(name, control_plane=True)
        self.hosts[name] = Host(name)

    def note(self, text: str) -> None:
        self.log.append(f"{self.now:%H:%M:%S} {text}")

    # What happens by itself.

    def go_on(self) -> None:
        for host in self.hosts.values():
            self._show_ready(host)
            self._show_scheduler(host)
        for step in [*self._scheduling(), *self._stopping(), *self._registering()]:
            step()
        self._run_jobs()
        self._judge()

    def _show_ready(self, host: Host) -> None:
        if host.name not in self.api.of(paths.NODES):
            return
        silent = host.silent_since is not None and self.now - host.silent_since >= NOTICED_AFTER
        status = "Unknown" if silent else "True"
        ready = {"conditions": [{"type": "Ready", "status": status}]}
        self.api.change(paths.NODES, host.name, {"status": ready})
        for name, pod in list(self.api.of(PODS).items()):
            if pod["spec"]["nodeName"] == host.name and JOB_NAME_LABEL not in pod["metadata"]["labels"]:
                self.api.change(PODS, name, {"status": ready})

    def _show_scheduler(self, host: Host) -> None:
        if not host.up:
            return
        config = (
            ["--config=/etc/kubernetes/gpushare/scheduler-config-0.yaml"] if host.port is not None else []
        )
        labels = {"component": "kube-scheduler"}
        metadata = {"name": f"kube-scheduler-{host.name}", "labels": labels}
        metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
        container = {"command": ["kube-scheduler", *config]}
        self.api.put(
            SCHEDULER_PODS, {"metadata": metadata, "spec": {"nodeName": host.name, "containers": [container]}}
        )

    def _is_up(self, node: str) -> bool:
        return node not in self.hosts or self.hosts[node].up

    def _scheduling(self) -> Iterator[Callable[[], None]]:
        for step in super()._scheduling():
            pod = step.args[0]  # type: ignore[attr-defined]
            if self._is_up(pod["spec"]["nodeName"]):
                yield step

    def _stopping(self) -> Iterator[Callable[[], None]]:
        wanted = {pod["metadata"]["name"] for pod in self._wanted_pods()}
        for name, pod in list(self.api.of(PODS).items()):
            job = pod["metadata"]["labels"].get(JOB_NAME_LABEL)
            stays = job in self.api.of(JOBS) if job else name in wanted
            is_gone = pod["spec"]["nodeName"] not in self.api.of(paths.NODES)
            if not stays and (self._is_up(pod["spec"]["nodeName"]) or is_gone):
                yield partial(self.api.remove, PODS, name)

    # hostctl.

    def _run_jobs(self) -> None:
        for name in list(self.runs):
            if name not in self.api.of(JOBS) and self.hosts[self.runs[name].host].up:
                del self.runs[name]  # Its pod gets a signal, and takes back what it did.
        for name, job in list(self.api.of(JOBS).items()):
            if _is_open(job):
                self._run_job(name, job)

    def _run_job(self, name: str, job: Json) -> None:
        host = self.hosts[job["metadata"]["annotations"][NODE_ANNOTATION]]
        began = self.runs[name].began if name in self.runs else None
        created = job["metadata"].setdefault("x-created", self.now)
        deadline = timedelta(seconds=job["spec"]["activeDeadlineSeconds"])
        if host.name not in self.api.of(paths.NODES):
            since = self.given_up.setdefault(name, self.now)
            if self.now - since >= GONE_AFTER:
                self._end(name, job, "lost")
            return
        if self.now - created >= deadline:
            self._end(name, job, "hung") if host.up else self._give_up(name)
        elif host.up and began is None:
            self.runs[name] = self._begin(host)
        elif host.up and self.now >= self.runs[name].ends:
            self._end(name, job, self.runs[name].outcome)

    def _begin(self, host: Host) -> Run:
        outcomes = ["done"] if self.calm else ["done"] * 6 + ["refused", "undone", "cut", "hung"]
        lasts = timedelta(seconds=self.chance.choice([10, 30, 90]))
        outcome = self.chance.choice(outcomes)
        ends = self.now + (timedelta(hours=9) if outcome == "hung" else lasts)
        return Run(host.name, self.now, ends, outcome)

    def _give_up(self, name: str) -> None:
        if not self.api.of(JOBS)[name].get("status"):
            self._set_end(name, "FailureTarget", reason="DeadlineExceeded")

    def _end(self, name: str, job: Json, outcome: str) -> None:
        self.runs.pop(name, None)
        host = self.hosts[job["metadata"]["annotations"][NODE_ANNOTATION]]
        command = job["metadata"]["labels"][COMMAND_LABEL]
        if command == "install":
            outcome = self._install(host, job, outcome)
        elif outcome in ("done", "cut"):
            host.port = None
        host.resists = command == "restore" and outcome != "done"
        self.note(f"{name}: {outcome}, {host.name} asks {host.port}")
        if outcome == "undone" and command == "install":
            message = "Container hostctl for pod a/b failed with exit code 3 matching FailJob rule at index 0"
            self._put_job_pod(name, job)
            self._set_end(name, "Failed", reason="PodFailurePolicy", message=message)
        else:
            self._set_end(name, "Complete" if outcome == "done" else "Failed")

    def _install(self, host: Host, job: Json, outcome: str) -> str:
        (container,) = job["spec"]["template"]["spec"]["containers"]
        port = _port_of(container["args"])
        if port != PLUGIN and port not in self._ports_on(host.name):
            return "refused"
        if outcome in ("done", "cut"):
            host.port, host.excused, host.unheard_since = port, False, None
        return outcome

    def _put_job_pod(self, name: str, job: Json) -> None:
        template = job["spec"]["template"]
        labels = {**template["metadata"]["labels"], JOB_NAME_LABEL: name}
        ended = {"terminated": {"exitCode": 3, "message": json.dumps({"inputs": "abc"})}}
        self.api.put(
            PODS,
            {
                "metadata": {"name": f"{name}-x", "labels": labels},
                "spec": {"nodeName": template["spec"]["nodeName"]},
                "status": {"containerStatuses": [{"state": ended}]},
            },
        )

    def _set_end(self, name: str, kind: str, **extra: str) -> None:
        end = {"type": kind, "status": "True", "lastTransitionTime": self.now.isoformat(), **extra}
        self.api.change(JOBS, name, {"status": {"conditions": [end]}})

    def _ports_on(self, host: str) -> tuple[int, ...]:
        pod = self.api.of(PODS).get(f"{EXTENDER}-{host}")
        annotations = pod["metadata"].get("annotations", {}) if pod else {}
        return read_ports(annotations.get(PORT_ANNOTATION, ""))

    # What may never be.

    def _judge(self) -> None:
        at_work = {run.host for run in self.runs.values() if run.outcome != "cut off"}
        at_work = {name for name in at_work if self.hosts[name].up}
        if len(at_work) > 1:
            self.problems.append(f"{self.now:%H:%M:%S} two hosts at once: {sorted(at_work)}")
        for host in self.hosts.values():
            self._judge_port(host)

    def _judge_port(self, host: Host) -> None:
        is_heard = host.port in (None, PLUGIN, *self._ports_on(host.name))
        if is_heard or not host.up or host.excused:
            host.unheard_since = None
            return
        host.unheard_since = host.unheard_since or self.now
        if self.now - host.unheard_since > GRACE:
            self.problems.append(f"{self.now:%H:%M:%S} {host.name} asks {host.port}, where nobody listens")

    def judge_conditions(self) -> None:
        """To be called when the operator has done what it can."""
        wanted = self.wanted_port()
        for policy in self.api.of(paths.POLICIES).values():
            conditions = {
                condition["type"]: condition["status"]
                for condition in policy.get("status", {}).get("conditions", ())
            }
            if conditions.get("SchedulerConfigured") != "True" or wanted is None:
                continue
            if policy["status"]["observedGeneration"] != policy["metadata"]["generation"]:
                continue
            for name in self.api.of(paths.NODES).keys() & self.hosts.keys():
                host = self.hosts[name]
                is_new = host.changed is not None and self.now - host.changed < GRACE
                if host.port != wanted and not is_new:
                    self.problems.append(
                        f"{self.now:%H:%M:%S} {policy['metadata']['name']} claims that {name} asks {wanted}, "
                        f"but it asks {host.port}"
                    )

    def wanted_port(self) -> int | None:
        policies = list(self.api.of(paths.POLICIES).values())
        staying = [policy for policy in policies if "deletionTimestamp" not in policy["metadata"]]
        oldest = min(
            staying,
            key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]),
            default=None,
        )
        if oldest is None or FINALIZER not in oldest["metadata"].get("finalizers", ()):
            return None
        scheduler = oldest["spec"].get("scheduler", {})
        port: int = scheduler.get("extenderPort", EXTENDER_PORT)
        return PLUGIN if scheduler.get("engine") == "Plugin" else port

    # What people and the world do.

    def disturb(self) -> None:
        """One thing of what may happen."""
        what = self.chance.choice(
            [self._policy_comes_or_goes] * 3
            + [self._port_changes, self._engine_changes] * 2
            + [self._host_dies_or_comes_back] * 3
            + [self._upgrade, self._let_go_changes, self._node_is_made_anew]
        )
        what()

    def _policy_comes_or_goes(self) -> None:
        name = self.chance.choice(["default", "later"])
        present = self.api.of(paths.POLICIES).get(name)
        if present is None:
            self.note(f"+policy {name}")
            self.add_policy(name, {"names": [f"gpu-{name}"], "mode": "Memory", "devices": SIMULATED})
        elif "deletionTimestamp" not in present["metadata"]:
            self.note(f"-policy {name}")
            self.delete_policy(name)

    def _port_changes(self) -> None:
        if names := sorted(self.api.of(paths.POLICIES)):
            port = self.chance.choice([22766, 22767, 22768])
            name = self.chance.choice(names)
            self.note(f"port of {name}: {port}")
            self.api.change(paths.POLICIES, name, {"spec": {"scheduler": {"extenderPort": port}}})

    def _engine_changes(self) -> None:
        if names := sorted(self.api.of(paths.POLICIES)):
            name, engine = self.chance.choice(names), self.chance.choice(["Plugin", "Extender", None])
            self.note(f"engine of {name}: {engine}")
            self.api.change(paths.POLICIES, name, {"spec": {"scheduler": {"engine": engine}}})

    def _host_dies_or_comes_back(self) -> None:
        host = self.hosts[self.chance.choice(sorted(self.hosts))]
        self.revive(host) if not host.up else self._kill(host)

    def _kill(self, host: Host) -> None:
        self.note(f"{host.name} dies")
        host.up, host.silent_since = False, self.now
        for name, run in self.runs.items():
            if run.host == host.name:
                # Whatever hostctl was at, it ended there.
                if self.chance.random() < 0.5:
                    job = self.api.of(JOBS).get(name)
                    if job and job["metadata"]["labels"][COMMAND_LABEL] == "install":
                        self._install(host, job, "cut")
                run.outcome, run.ends = "cut off", self.now

    def revive(self, host: Host) -> None:
        self.note(f"{host.name} comes back")
        host.up, host.silent_since, host.changed, host.unheard_since = True, None, self.now, None

    def _upgrade(self) -> None:
        host = self.hosts[self.chance.choice(sorted(self.hosts))]
        if host.up and host.port is not None and not any(run.host == host.name for run in self.runs.values()):
            self.note(f"{host.name} is upgraded")
            host.port, host.changed = None, self.now

    def _let_go_changes(self) -> None:
        if names := sorted(self.api.of(paths.POLICIES)):
            name, host = self.chance.choice(names), self.chance.choice(["", *sorted(self.hosts)])
            self.note(f"{name} lets go {host}")
            annotations = {LET_GO_ANNOTATION: host or None}
            self.api.change(paths.POLICIES, name, {"metadata": {"annotations": annotations}})

    def _node_is_made_anew(self) -> None:
        name = self.chance.choice(sorted(self.hosts))
        if name in self.api.of(paths.NODES):
            self.note(f"Node {name} goes")
            self.api.remove(paths.NODES, name)
            self.hosts[name].excused = True
        else:
            self.note(f"Node {name} is there again")
            self.add_node(name, control_plane=True)
            self.hosts[name].changed = self.now

    def excuse_let_go(self) -> None:
        """Excuses hosts that were away or could not be restored, and that people have given up."""
        named = {
            name
            for policy in self.api.of(paths.POLICIES).values()
            for name in policy["metadata"].get("annotations", {}).get(LET_GO_ANNOTATION, "").split(",")
        }
        for host in self.hosts.values():
            if host.name in named and (not host.up or host.resists):
                host.excused = True

    def is_idle(self) -> bool:
        return not any(_is_open(job) for job in self.api.of(JOBS).values())


SIMULATED: Json = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}


def _port_of(arguments: list[str]) -> int:
    """Where hostctl has kube-scheduler ask."""
    if "--extender-url" not in arguments:
        return PLUGIN
    return int(arguments[arguments.index("--extender-url") + 1].split(":")[2].split("/")[0])


def _is_open(job: Json) -> bool:
    conditions: list[Any] = job.get("status", {}).get("conditions", [])
    return not any(condition["type"] in ("Failed", "Complete") for condition in conditions)
