"""Reads all that a simulation needs, and has it decided."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from gpushare_cli.decide.objects.workload import Workloads, within_limit
from gpushare_cli.decide.simulation.policy_change import PolicyChange
from gpushare_cli.decide.simulation.redivision import readable_share_nodes, units_of
from gpushare_cli.decide.simulation.simulation import SimulatedCluster, SimulationQuestion, simulate
from gpushare_cli.decide.simulation.simulation_report import SimulationReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.simulation.cluster_state import StateReader, read_cluster, with_unheld_nodes
from gpushare_cli.output.progress import ProgressLine
from gpushare_cli.wording import listed
from gpushare_core.kube.client import KubeClient
from gpushare_core.placement.units import MemoryUnit

if TYPE_CHECKING:
    from gpushare_cli.gather.simulation.policy_dry_run import DryRun  # brings pydantic


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """As people give them."""

    files: Sequence[str] = ()
    replicas: int | None = None
    with_waiting: bool = False
    policy: str = ""
    """A file."""
    without: Sequence[str] = ()
    unit: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.files or self.with_waiting or self.policy or self.without or self.unit)


async def run_simulation(
    client: KubeClient,
    options: SimulationOptions,
    *,
    namespace: str,
    stdin: BinaryIO,
    progress: ProgressLine,
) -> SimulationReport:
    """Raises ``CannotLookError``."""
    if options.is_empty:
        raise CannotLookError(
            "nothing to simulate: name manifests with -f, or see --help for --waiting, --without, --unit and"
            " --policy"
        )
    workloads, unit = _workloads(options, namespace, stdin), _unit(options.unit)
    progress.doing("reading GPUShareNodes, nodes and pods")
    share_nodes = await StateReader(client).share_nodes()
    cluster = await read_cluster(client, share_nodes, without=options.without)
    if unit or options.policy:
        cluster = await with_unheld_nodes(client, cluster)
    progress.doing("placing pods")
    question = SimulationQuestion(
        workloads=workloads,
        with_waiting=options.with_waiting,
        without=options.without,
        unit=unit,
        units_before=units_of(readable_share_nodes(share_nodes)) if unit or options.policy else (),
    )
    if options.policy:
        cluster, question = await _with_policy(client, options.policy, cluster, question, stdin=stdin)
    return simulate(cluster, question)


def _workloads(options: SimulationOptions, namespace: str, stdin: BinaryIO) -> Workloads:
    if not options.files:
        return Workloads()
    from gpushare_cli.gather.manifests import read_workloads

    read = read_workloads(options.files, namespace=namespace, stdin=stdin)
    counted = [workload.with_replicas(options.replicas) for workload in read.workloads]
    return within_limit(replace(read, workloads=tuple(counted)))


def _unit(text: str) -> MemoryUnit | None:
    try:
        return MemoryUnit.parse(text) if text else None
    except ValueError as error:
        raise CannotLookError(f"--unit: {error}") from error


def _missing(checked: "DryRun", cluster: SimulatedCluster) -> Iterator[str]:
    claim = next(claim for claim in checked.claims if claim.name == checked.name)
    if missing := claim.missing(cluster.nodes or ()):
        yield f"The policy names nodes that are not there: {listed(missing)}."


async def _with_policy(
    client: KubeClient,
    file: str,
    cluster: SimulatedCluster,
    question: SimulationQuestion,
    *,
    stdin: BinaryIO,
) -> tuple[SimulatedCluster, SimulationQuestion]:
    """Returns the cluster as it would be with the policy; nothing is placed where the policy is refused."""
    from gpushare_cli.decide.simulation.policy_effect import lost_nodes, policy_effect  # brings pydantic
    from gpushare_cli.gather.manifests import read_documents
    from gpushare_cli.gather.simulation.policy_dry_run import dry_run, policy_in

    if cluster.nodes is None:
        raise CannotLookError("a policy selects nodes by their labels, and nodes cannot be listed")
    checked = await dry_run(client, policy_in(read_documents([file], stdin=stdin)))
    change = PolicyChange(
        name=checked.name, is_new=checked.is_new, checked_by=checked.checked_by, refusal=checked.refusal
    )
    if checked.refusal:
        return cluster, SimulationQuestion(policy=change)
    present = {node["metadata"]["name"]: node for node in readable_share_nodes(cluster.share_nodes)}
    effect = policy_effect(checked.claims, cluster.nodes, present, ledger=cluster.ledger())
    shown = [node for node in effect.changes if node.concerns(checked.name)]
    return (
        replace(
            cluster,
            share_nodes=[*map(msgspec.json.encode, effect.share_nodes)],
            remarks=[
                *cluster.remarks,
                *([checked.remark] if checked.remark else []),
                *_missing(checked, cluster),
            ],
        ),
        replace(
            question,
            policy=msgspec.structs.replace(
                change, nodes=shown, lost=lost_nodes(checked.claims, checked.name, cluster.nodes)
            ),
            units_in_the_end=units_of(effect.in_the_end),
        ),
    )
