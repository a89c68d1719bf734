"""What all policies together ask of the schedulers' connection."""

from dataclasses import dataclass, replace

from gpushare_core.api.enums import Engine
from gpushare_core.api.names import DEDICATED_SCHEDULER, EXTENDER_PORT
from gpushare_core.api.policy import Placement, Scheduler
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_operator.cluster.labels import EXTENDER, PORT_ANNOTATION, read_ports
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import EXTENDER_NAME
from gpushare_operator.policies.decisive_policy import decisive_policy
from gpushare_operator.policies.served_resources import ignored_resources, managed_resources


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """What all policies together ask of the schedulers' connection."""

    engine: Engine = Engine.EXTENDER
    """The engine that is asked for; ``choose_engine`` says which one serves."""
    port: int = EXTENDER_PORT
    """Where the extender listens."""
    timeout: int = Scheduler().timeout_seconds
    """Seconds until an edited kube-scheduler has to serve."""
    weight: int = Placement().weight
    """Of the engine's scores."""
    listening: tuple[int, ...] = ()
    """Where the extender listens already: any scheduler may call any of these ports."""
    asked: frozenset[str] = frozenset()
    """What people have asked for by annotations of policies, as ``POLICY=VALUE``."""
    resources: tuple[str, ...] = tuple(GPUSHARE.resources)
    """The resources for which schedulers ask the extender."""
    ignored_resources: tuple[str, ...] = ()
    """The resources that pods may ask for although no node offers them."""

    @property
    def extender_arguments(self) -> list[str]:
        """Returns the arguments by which hostctl writes the extender into a configuration."""
        return [
            "--extender-url",
            f"https://127.0.0.1:{self.port}/gpushare",
            *self._resource_arguments,
            "--prioritize-verb",
            "prioritize",
            "--weight",
            str(self.weight),
        ]

    @property
    def plugin_arguments(self) -> list[str]:
        """Returns the arguments by which hostctl writes the scheduler's plugin into a configuration."""
        return ["--engine", Engine.PLUGIN.value, *self._resource_arguments, "--weight", str(self.weight)]

    @property
    def _resource_arguments(self) -> list[str]:
        managed = (part for name in self.resources for part in ("--managed-resource", name))
        ignored = (part for name in self.ignored_resources for part in ("--ignored-resource", name))
        return [*managed, *ignored]


def scheduler_settings(snapshot: ClusterSnapshot) -> SchedulerSettings:
    """Returns what is asked for by the decisive policy; while that one cannot be read, port and engine stay
    those in force."""
    asked = frozenset(
        f"{policy.name}={policy.retry}" for policy in snapshot.policies.values() if policy.retry
    )
    ports = ports_in_force(snapshot)
    settings = SchedulerSettings(
        engine=_engine_in_force(snapshot),
        port=ports[0] if ports else EXTENDER_PORT,
        listening=ports,
        asked=asked,
        resources=managed_resources(snapshot),
        ignored_resources=ignored_resources(snapshot),
    )
    policy = decisive_policy(snapshot)
    if policy is None or policy.spec is None:
        return settings
    scheduler = policy.spec.scheduler
    return replace(
        settings,
        engine=scheduler.desired_engine,
        port=scheduler.extender_port,
        timeout=scheduler.timeout_seconds,
        weight=policy.spec.placement.weight,
    )


def _engine_in_force(snapshot: ClusterSnapshot) -> Engine:
    """Returns the engine of our own kube-scheduler, else the one that the cluster's own got last."""
    deployment = snapshot.deployments.get(DEDICATED_SCHEDULER)
    if deployment is None:
        edits = (job for job in snapshot.jobs.values() if job.complete and job.engine)
        ended = {job.finished: job.engine for job in edits if job.finished}
        return Engine.PLUGIN if ended and ended[max(ended)] == Engine.PLUGIN else Engine.EXTENDER
    spec = deployment.body.get("spec", {})
    containers = spec.get("template", {}).get("spec", {}).get("containers", ())
    names = {container.get("name") for container in containers}
    return Engine.PLUGIN if names and EXTENDER not in names else Engine.EXTENDER


def ports_in_force(snapshot: ClusterSnapshot) -> tuple[int, ...]:
    """Returns the ports that schedulers may call: those of the extender's DaemonSet; if somebody has deleted
    it, those that the Jobs of hostctl recorded."""
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    annotations = extender.body.get("metadata", {}).get("annotations", {}) if extender else {}
    jobs = sorted(snapshot.jobs.values(), key=lambda job: job.name)
    known = dict.fromkeys(port for job in jobs for port in job.extender_ports)
    return read_ports(str(annotations.get(PORT_ANNOTATION, ""))) or tuple(known)
