"""Snapshots for the operator's tests, and what is planned for them, in a line or two."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from gpushare_core.api.conditions import Condition
from gpushare_core.api.enums import Engine, Mode
from gpushare_core.api.names import (
    CALLS_LEASE,
    CONTROL_PLANE_LABEL,
    DEDICATED_SCHEDULER,
    DIALECT_LABEL,
    EXTENDER_PORT,
    FINALIZER,
    MODE_LABEL,
    PLUGIN_NODE_LABEL,
    POLICY_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_core.api.policy import PolicySpec
from gpushare_core.api.share_node import MemoryTotals, UnitTotals
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import Action
from gpushare_operator.backends.dedicated.deployment import scheduler_deployment
from gpushare_operator.backends.extender_workload.daemon_set import (
    extender_daemon_set,
    external_extender_daemon_set,
)
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand, HostctlRun
from gpushare_operator.backends.volcano.config_edit import enable
from gpushare_operator.cluster.labels import EXTENDER, HOSTCTL, PLUGIN, SCHEDULER
from gpushare_operator.cluster.objects import (
    CallsObject,
    DaemonSetObject,
    DeploymentObject,
    JobObject,
    NodeObject,
    PodObject,
    PolicyObject,
    ReadResult,
    SchedulerObject,
    ServerFacts,
    ShareNodeObject,
    VolcanoBackupObject,
    VolcanoConfigObject,
    VolcanoLocation,
)
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.decide.nodes.node_assignment import assign_node, claimants_of
from gpushare_operator.decide.policy_plan import plan_policy
from gpushare_operator.desired.names import (
    EXTENDER_NAME,
    VOLCANO_BACKUP,
    Installation,
    job_name,
    plugin_name,
)
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.desired.pod_template import digest
from gpushare_operator.desired.share_nodes import share_node_spec
from gpushare_operator.policies.scheduler_settings import SchedulerSettings

INSTALLATION = Installation(image="gpushare:test")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

SIMULATED: Json = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}


def rule(*names: str, **extra: Any) -> Json:
    """Selects nodes by name, or by ``selector``."""
    chosen = {"names": list(names)} if names else {}
    return {**chosen, "devices": SIMULATED, **extra}


def spec(*rules: Json, **extra: Any) -> PolicySpec:
    return PolicySpec.model_validate({"nodes": list(rules), **extra})


def spec_of_volcano(*rules: Json) -> PolicySpec:
    """Its scheduler places no pods of rules with ``SLICED``."""
    return spec(*rules, scheduler={"backend": "Volcano"})


SLICED: Json = {"mode": "Slices", "slicesPerCard": 2}
"""Of a rule: what not every backend serves."""


def policy(name: str = "default", *rules: Json, created: int = 0, **extra: Any) -> PolicyObject:
    """A policy that was made ``created`` minutes after noon and has our finalizer."""
    given = {
        "uid": f"uid-{name}",
        "resource_version": "7",
        "created": (NOW + timedelta(minutes=created)).isoformat(),
        "finalizers": (FINALIZER,),
        "spec": spec(*(rules or (rule("gpu-1"),))),
    }
    return PolicyObject(name=name, **{**given, **extra})


def marked(policy: str) -> dict[str, str]:
    """The labels by which a node says whose it is: one for people, and one that no kubelet may set."""
    return {POLICY_LABEL: policy, PLUGIN_NODE_LABEL: policy}


def node(name: str, policy: str = "", labels: Mapping[str, str] | None = None, **extra: Any) -> NodeObject:
    """With the labels of ``policy`` if one is named."""
    ours = {**marked(policy), MODE_LABEL: "Memory", DIALECT_LABEL: "gpushare.io"} if policy else {}
    return NodeObject(**{"name": name, "uid": f"uid-{name}", "labels": {**ours, **(labels or {})}, **extra})


def control_plane(name: str = "cp", **extra: Any) -> NodeObject:
    """Marked, as it is from the first moment at which its scheduler may be edited."""
    return node(name, labels={CONTROL_PLANE_LABEL: "", SCHEDULER_LABEL: "1"}, **extra)


def untouched(name: str = "cp") -> NodeObject:
    return node(name, labels={CONTROL_PLANE_LABEL: ""})


def share(name: str, owner: PolicyObject, **extra: Any) -> ShareNodeObject:
    """As the operator makes it for the first rule of ``owner``, and registered."""
    if owner.spec is None:
        raise ValueError("a policy without a spec has no nodes")
    spec = share_node_spec(owner, owner.spec.nodes[0])
    given = {
        "uid": f"uid-share-{name}",
        "owners": (owner.uid,),
        "spec": spec,
        "spec_hash": digest(spec),
        "observed_generation": 1,
        "conditions": {**share_condition("Registered"), **share_condition("LedgerInSync")},
        "unit": "1Gi",
        "units": UnitTotals(total=32),
        "memory": MemoryTotals(total="32Gi"),
        "cards": 2,
        "version": VERSION,
        "plugin_version": VERSION,
    }
    return ShareNodeObject(name=name, **{**given, **extra})


def share_condition(
    type_: str, message: str = "", *, status: str = "True", reason: str = "Because"
) -> dict[str, Condition]:
    """One condition of a GPUShareNode, by its type."""
    moment = "2026-11-21T11:00:00Z"
    return {
        type_: Condition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=moment
        )
    }


def plugins(owner: PolicyObject, **extra: Any) -> DaemonSetObject:
    """The policy's DaemonSet as it should be."""
    body = plugin_daemon_set(owner, INSTALLATION)
    return DaemonSetObject(
        **{"name": plugin_name(owner.name), "uid": "uid-ds", "policy": owner.name, "body": body, **extra}
    )


def extender(**extra: Any) -> DaemonSetObject:
    return DaemonSetObject(
        **{
            "name": EXTENDER_NAME,
            "uid": "uid-ext",
            "body": extender_daemon_set(INSTALLATION, [EXTENDER_PORT]),
            **extra,
        }
    )


def external_extender(*ports: int, **extra: Any) -> DaemonSetObject:
    body = external_extender_daemon_set(INSTALLATION, ports or [EXTENDER_PORT])
    return extender(**{"body": body, "created": NOW - timedelta(hours=1), **extra})


def external_host(name: str = "cp", **labels: str) -> NodeObject:
    """Marked, as it is while its kube-scheduler is connected by people."""
    return node(name, labels={CONTROL_PLANE_LABEL: "", SCHEDULER_LABEL: "external", **labels})


def calls(port: int = EXTENDER_PORT, **extra: Any) -> CallsObject:
    return CallsObject(**{"name": CALLS_LEASE, "port": port, "by": "cp_1", "at": NOW, **extra})


VOLCANO_CONFIG = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang   # together or not at all
- plugins:
  - name: drf
  - name: predicates
  - name: nodeorder
"""
VOLCANO = VolcanoLocation("volcano-system", "volcano-scheduler-configmap", "volcano-scheduler.conf")


def volcano_policy(name: str = "default", *, created: int = 0, **extra: Any) -> PolicyObject:
    asked = spec(rule("gpu-1"), dialect="volcano.sh", scheduler={"backend": "Volcano"})
    return policy(name, created=created, **{"spec": asked, **extra})


def external_policy(name: str = "default", *, created: int = 0, **extra: Any) -> PolicyObject:
    asked = spec(rule("gpu-1"), scheduler={"backend": "External"})
    return policy(name, created=created, **{"spec": asked, **extra})


def dedicated_policy(
    name: str = "default", *, created: int = 0, engine: Engine | None = None, **extra: Any
) -> PolicyObject:
    named = {"engine": engine} if engine else {}
    asked = spec(rule("gpu-1"), scheduler={"backend": "Dedicated", **named})
    return policy(name, created=created, **{"spec": asked, **extra})


def server(**extra: Any) -> ServerFacts:
    """One that points pods at our kube-scheduler."""
    given = {
        "pod_policy": ReadResult.FOUND,
        "pods_without_scheduler": (),
        "absent_scheduler": "default-scheduler",
    }
    return ServerFacts(**{**given, **extra})


def scheduler_pods(**extra: Any) -> PodObject:
    """Of engine Plugin."""
    given = {"name": "scheduler-a", "component": SCHEDULER, "node": "a", "ready": True}
    return PodObject(**{**given, **extra})


def dedicated(version: str = "v1.36.3", engine: Engine = Engine.PLUGIN, **extra: Any) -> DeploymentObject:
    """The second kube-scheduler as it should be."""
    body = scheduler_deployment(INSTALLATION, SchedulerSettings(engine=engine), version)
    given = {"uid": "uid-scheduler", "body": body, "is_rolled_out": True}
    return DeploymentObject(name=DEDICATED_SCHEDULER, **{**given, **extra})


def volcano_config(text: str | None = VOLCANO_CONFIG, **extra: Any) -> VolcanoConfigObject:
    given = {"result": ReadResult.FOUND, "uid": "uid-cm", "resource_version": "5", "text": text}
    return VolcanoConfigObject(**{**given, **extra})


def volcano_backup(original: str = VOLCANO_CONFIG, **extra: Any) -> VolcanoBackupObject:
    """As it is written before ``original`` is edited."""
    edit = enable(original)
    given = {
        "uid": "uid-backup",
        "location": VOLCANO,
        "original": original,
        "written": hashlib.sha256(edit.text.encode()).hexdigest(),
        "additions": tuple((addition.plugin, addition.whole) for addition in edit.additions),
    }
    return VolcanoBackupObject(name=VOLCANO_BACKUP, **{**given, **extra})


def plugin_pod(on: str, policy: str = "default", **extra: Any) -> PodObject:
    return PodObject(
        **{"name": f"plugin-{on}", "component": PLUGIN, "policy": policy, "node": on, "ready": True, **extra}
    )


def extender_pod(on: str = "cp", **extra: Any) -> PodObject:
    given = {
        "component": EXTENDER,
        "node": on,
        "ready": True,
        "extender_ports": (EXTENDER_PORT,),
        "runs_extender": True,
    }
    return PodObject(**{"name": f"extender-{on}", **given, **extra})


def scheduler(on: str = "cp", **extra: Any) -> SchedulerObject:
    """As an upgrade of the control plane leaves it: without our configuration."""
    return SchedulerObject(**{"name": on, "node": on, "seen": NOW, **extra})


def hostctl_run(command: HostctlCommand, **settings: Any) -> HostctlRun:
    return HostctlRun(command=command, settings=SchedulerSettings(**settings), installation=INSTALLATION)


def job(command: HostctlCommand, on: str = "cp", sequence: int = 1, **extra: Any) -> JobObject:
    given = {
        "uid": f"uid-job-{sequence}",
        "command": str(command),
        "node": on,
        "node_uid": f"uid-{on}",
        "sequence": sequence,
        "spec_hash": hostctl_run(command).work_hash,
        "inputs_hash": hostctl_run(command).inputs_hash,
    }
    return JobObject(name=job_name(command, on, sequence), **{**given, **extra})


def installed(on: str = "cp", sequence: int = 1, **extra: Any) -> JobObject:
    return job(HostctlCommand.INSTALL, on, sequence, **{"complete": True, "finished": NOW, **extra})


def restored(on: str = "cp", sequence: int = 2, **extra: Any) -> JobObject:
    return job(HostctlCommand.RESTORE, on, sequence, **{"complete": True, "finished": NOW, **extra})


def failed(
    command: HostctlCommand, *, ago: float, sequence: int = 1, on: str = "cp", **extra: Any
) -> JobObject:
    finished = NOW - timedelta(seconds=ago)
    given = {"failed": True, "failure": "BackoffLimitExceeded", "finished": finished}
    return job(command, on, sequence, **{**given, **extra})


def job_pod(of: JobObject, exit_code: int, termination: str = "") -> PodObject:
    return PodObject(
        name=f"{of.name}-x",
        component=HOSTCTL,
        job=of.name,
        node=of.node,
        exit_code=exit_code,
        termination=termination,
    )


SeenObject = (
    ServerFacts
    | DeploymentObject
    | PolicyObject
    | NodeObject
    | ShareNodeObject
    | DaemonSetObject
    | JobObject
    | PodObject
    | SchedulerObject
    | CallsObject
    | VolcanoBackupObject
    | VolcanoConfigObject
)

FIELDS: dict[type, str] = {
    PolicyObject: "policies",
    NodeObject: "nodes",
    ShareNodeObject: "share_nodes",
    DaemonSetObject: "daemon_sets",
    DeploymentObject: "deployments",
    JobObject: "jobs",
    PodObject: "pods",
    SchedulerObject: "schedulers",
    CallsObject: "calls",
    VolcanoBackupObject: "volcano_backups",
}


def snapshot(*seen: SeenObject | Iterable[SeenObject], kubernetes: str = "v1.36.3") -> ClusterSnapshot:
    """A cluster in which exactly this is seen. ``kubernetes``: the API server's version."""
    fields: dict[str, Any] = {}
    server: ServerFacts | None = None
    for one_or_many in seen:
        for known in one_or_many if isinstance(one_or_many, Iterable) else (one_or_many,):
            if isinstance(known, ServerFacts):
                server = known
            elif isinstance(known, VolcanoConfigObject):
                fields.setdefault("volcano_configs", {})[VOLCANO] = known
            else:
                fields.setdefault(FIELDS[type(known)], {})[known.name] = known
    return ClusterSnapshot(kubernetes=kubernetes, server=server, **fields)


def sharing(*seen: SeenObject | Iterable[SeenObject], kubernetes: str = "v1.36.3") -> ClusterSnapshot:
    """As ``snapshot``, and a node shares its cards under each policy that stays and of which none is seen."""
    found = snapshot(*seen)
    owned = {share_node.policy for share_node in found.share_nodes.values()}
    shares = [
        share(f"of-{policy.name}", policy)
        for policy in found.policies.values()
        if policy.spec and policy.spec.nodes[0].mode is not Mode.OFF and not policy.deleting
        if policy.name not in owned
    ]
    return snapshot(*seen, shares, kubernetes=kubernetes)


def serving(owner: PolicyObject, *names: str) -> list[SeenObject]:
    """All that a policy in force has made on the workers ``names`` and on one control plane."""
    workers: list[SeenObject] = []
    for name in names:
        workers += [node(name, owner.name, offered=("gpushare.io/memory",)), share(name, owner)]
        workers.append(plugin_pod(name, owner.name))
    return [owner, *workers, plugins(owner), control_plane(), extender(), extender_pod(), installed()]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one policy gets of all nodes."""

    enabled: Mapping[str, int] = field(default_factory=dict)
    """Node name -> the rule that it falls under."""
    kept: frozenset[str] = frozenset()
    lost: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, str] = field(default_factory=dict)

    @property
    def sharing(self) -> list[str]:
        return [*self.enabled, *sorted(self.kept)]


def assign(seen: ClusterSnapshot, policy: PolicyObject) -> Assignment:
    """Returns the nodes of ``policy``, each of them assigned by itself."""
    claimants = claimants_of(seen, policy)
    nodes = {name: assign_node(state, claimants) for name, state in seen.states.items()}
    return Assignment(
        enabled={name: assignment.rule for name, assignment in nodes.items() if assignment.rule is not None},
        kept=frozenset(name for name, assignment in nodes.items() if assignment.is_kept),
        lost={name: assignment.lost_to for name, assignment in nodes.items() if assignment.lost_to},
        waiting={name: assignment.waits_for for name, assignment in nodes.items() if assignment.waits_for},
    )


def policy_actions(seen: ClusterSnapshot, name: str = "default") -> list[Action]:
    """What is planned for one policy."""
    return list(plan_policy(seen, seen.policies[name], INSTALLATION, NOW).actions)


def cluster_actions(seen: ClusterSnapshot) -> list[Action]:
    """What is planned for all policies together."""
    return list(plan_cluster(seen, INSTALLATION, NOW).actions)


def class_names(actions: Iterable[Action]) -> list[str]:
    return [type(action).__name__ for action in actions]
