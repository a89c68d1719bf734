"""Which policies go, and step by step what that does: the order is the operator's."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpushare_cli.decide.ledger import by_node, card_uuids, observed_ledger, orphaned_uids, shares_of
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.decide.undo.objects import (
    BACKEND_ANNOTATION,
    EXTERNAL,
    LEAVE_FILES_ANNOTATION,
    UndoNode,
    UndoObject,
    UndoObjects,
    UndoPolicy,
)
from gpushare_cli.decide.undo.report import HeldPod, UndoPlan, UndoStep, UndoWarning
from gpushare_cli.errors import CannotLookError
from gpushare_cli.wording import listed
from gpushare_core.api.enums import Backend
from gpushare_core.api.names import COMPONENT_LABEL, DEDICATED_SCHEDULER, POLICY_LABEL
from gpushare_core.api.plugin_heartbeat import PREFIX, IsolationFiles
from gpushare_core.scheduling.ledger.node_sums import Share
from gpushare_core.scheduling.objects.holder import PodUpdate

EXTENDER = "gpushare-extender"
VOLCANO_BACKUP = "gpushare-volcano-backup"
OPERATOR = "kubectl get deployments -A -l app.kubernetes.io/name=gpushare"
LET_GO = "kubectl annotate gpusharepolicy {policy} gpushare.io/let-go={node}"

LEAVE_FILES = f"kubectl annotate gpusharepolicy {{policies}} {LEAVE_FILES_ANNOTATION}=true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """What is there, and which of the policies go."""

    objects: UndoObjects
    going: Sequence[UndoPolicy]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(policy.name for policy in self.going)

    @property
    def staying(self) -> list[UndoPolicy]:
        return [policy for policy in self.objects.policies if policy.name not in self.names]

    @property
    def needed(self) -> str | None:
        """The backend of the policies that stay; None where none of them shares a node."""
        shared = {share.spec.policy for share in self.objects.share_nodes}
        using = [policy for policy in self.staying if not policy.is_deleting and policy.name in shared]
        oldest = min(
            using, key=lambda policy: (policy.metadata.creation_timestamp, policy.name), default=None
        )
        return oldest.spec.scheduler.backend if oldest else None

    @property
    def conflicted(self) -> list[tuple[str, str]]:
        """The policies that stay and may get nodes of those that go, and what they say."""
        found = ((policy.name, policy.condition("Conflicted")) for policy in self.staying)
        return [(name, found.message) for name, found in found if found and found.status == "True"]

    @property
    def has_operator(self) -> bool:
        operators = (found for found in self.objects.deployments if _component(found) == "operator")
        return any(found.status.available_replicas for found in operators)

    @property
    def share_nodes(self) -> list[str]:
        shares = self.objects.share_nodes
        return sorted(share.name for share in shares if share.spec.policy in self.names)

    @property
    def nodes(self) -> list[str]:
        return sorted(node.name for node in self.objects.nodes if node.policy in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step of the operator's, by the same name."""

    name: str
    says: str
    """What is done, for people; ``{objects}`` are the names of what it is done to."""
    objects: Callable[[Undoing], Iterable[str]]
    backend: Backend | None = None
    """Left out while a policy that stays needs this backend."""


def chosen(policies: Sequence[UndoPolicy], names: Sequence[str]) -> list[UndoPolicy]:
    """Returns the policies of these names, or all where none is named. Raises ``CannotLookError``."""
    by_name = {policy.name: policy for policy in policies}
    if unknown := [name for name in names if name not in by_name]:
        present = f"there are {', '.join(by_name)}" if by_name else "there is none"
        raise CannotLookError(f"there is no GPUSharePolicy {', '.join(unknown)}: {present}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(policies)


def undo_plan(undoing: Undoing) -> UndoPlan:
    return UndoPlan(
        policies=[policy.name for policy in undoing.going],
        staying=[policy.name for policy in undoing.staying],
        needed_backend=undoing.needed,
        shared_goes=undoing.needed is None and not undoing.conflicted,
        nodes=undoing.nodes,
        steps=[*_steps(undoing)],
        warnings=[*_warnings(undoing)],
        pods=_pods(undoing),
        nodes_with_files=[*_isolation_files(undoing, are_left=True)],
    )


def _steps(undoing: Undoing) -> Iterator[UndoStep]:
    for row in STEPS:
        objects = [*row.objects(undoing)]
        if objects and (row.backend is None or row.backend != undoing.needed):
            yield UndoStep(name=row.name, says=row.says, objects=objects)


def _pods(undoing: Undoing) -> list[HeldPod]:
    shares = (share for share in undoing.objects.share_nodes if share.spec.policy in undoing.names)
    booked = by_node(undoing.objects.booked)
    held = [
        HeldPod(namespace=pod.namespace, name=pod.name, node=share.name)
        for share in shares
        for pod in _present_pods(share, booked.get(share.name, ()))
    ]
    return sorted(held, key=lambda pod: (pod.namespace, pod.name, pod.node))


def _present_pods(share_node: ObservedShareNode, booked: Collection[PodUpdate]) -> Iterator[Share]:
    """Yields who has units of the node's cards, without the pods that the API server does not have."""
    ledger, orphans = observed_ledger(share_node, booked), orphaned_uids(share_node.cards)
    return (pod for pod in shares_of(ledger, card_uuids(ledger)) if pod.uid not in orphans)


def _isolation_files(undoing: Undoing, *, are_left: bool) -> dict[str, IsolationFiles]:
    """Returns node -> the files there. They are left on nodes that are not Ready, where nobody removes them,
    and by policies that say so."""
    leaving = {policy.name for policy in undoing.going if policy.leaves_files}
    left = {node.name: node.policy in leaving or not node.is_ready for node in undoing.objects.nodes}
    read = {lease.name.removeprefix(PREFIX): lease.isolation_files for lease in undoing.objects.leases}
    nodes = (name for name in undoing.nodes if left[name] is are_left)
    return {name: files for name in nodes if (files := read.get(name)) is not None}


def _waited_for(undoing: Undoing) -> list[str]:
    found = _isolation_files(undoing, are_left=False)
    more = [f"{files.more} more on {node}" for node, files in found.items() if files.more]
    return [*(pod for files in found.values() for pod in files.pods), *more]


def _warnings(undoing: Undoing) -> Iterator[UndoWarning]:
    if not undoing.has_operator:
        yield UndoWarning(
            says="No operator is available, and without it nothing is undone:", command=OPERATOR
        )
    for node in _edited_hosts(undoing) if undoing.needed != Backend.KUBE_SCHEDULER else ():
        if not node.is_ready:
            yield UndoWarning(
                says=f"Control-plane node {node.name} is not Ready: all waits until it is back and its"
                " kube-scheduler is restored. If it is lost for ever:",
                command=LET_GO.format(policy=next(iter(sorted(undoing.names)), "POLICY"), node=node.name),
            )
    if waited_for := _waited_for(undoing):
        have = "has" if len(waited_for) == 1 else "have"
        policies = " ".join(policy.name for policy in undoing.going if not policy.leaves_files)
        yield UndoWarning(
            says=f"What comes after the isolation files waits until {listed(waited_for)} {have} ended. To"
            " wait no longer, and leave these files on the nodes:",
            command=LEAVE_FILES.format(policies=policies),
        )
    for name, message in undoing.conflicted:
        yield UndoWarning(says=f"Nodes may go to policy {name}, which says: {message}")


def _component(item: UndoObject) -> str:
    return item.metadata.label(COMPONENT_LABEL)


def _hosts(undoing: Undoing, *, external: bool) -> list[UndoNode]:
    marked = (node for node in undoing.objects.nodes if node.scheduler_mark)
    return [node for node in marked if (node.scheduler_mark == EXTERNAL) is external]


def _edited_hosts(undoing: Undoing) -> list[UndoNode]:
    return _hosts(undoing, external=False)


def _names(nodes: Iterable[UndoNode]) -> list[str]:
    return sorted(node.name for node in nodes)


def _extenders(undoing: Undoing, *, external: bool) -> list[str]:
    found = (item for item in undoing.objects.daemon_sets if item.name == EXTENDER)
    return [item.path for item in found if (_backend(item) == Backend.EXTERNAL) is external]


def _backend(extender: UndoObject) -> str:
    return (extender.metadata.annotations or {}).get(BACKEND_ANNOTATION, Backend.KUBE_SCHEDULER)


def _dedicated(undoing: Undoing) -> list[str]:
    return [item.path for item in undoing.objects.deployments if item.name == DEDICATED_SCHEDULER]


def _volcano(undoing: Undoing) -> list[str]:
    return [item.path for item in undoing.objects.config_maps if item.name == VOLCANO_BACKUP]


def _plugins(undoing: Undoing) -> list[str]:
    sets = undoing.objects.daemon_sets
    ours = [item.path for item in sets if item.metadata.label(POLICY_LABEL) in undoing.names]
    return [*ours, *undoing.nodes]


def _tainted(undoing: Undoing) -> list[str]:
    going = (node for node in undoing.objects.nodes if node.policy in undoing.names)
    return _names(node for node in going if node.has_startup_taint)


STEPS = (
    StepRow(
        name="GPUShareNodes",
        says="Cards are no longer offered: the GPUShareNodes {objects} go.",
        objects=lambda undoing: undoing.share_nodes,
    ),
    StepRow(
        name="schedulers restored",
        says="kube-scheduler gets its former configuration back and restarts, on one control-plane node after"
        " the other: {objects}.",
        objects=lambda undoing: _names(_edited_hosts(undoing)),
        backend=Backend.KUBE_SCHEDULER,
    ),
    StepRow(
        name="extender",
        says="The extender goes, which nobody asks any more: DaemonSet {objects}.",
        objects=lambda undoing: _extenders(undoing, external=False),
        backend=Backend.KUBE_SCHEDULER,
    ),
    StepRow(
        name="marks on control-plane nodes",
        says="The label that says where kube-scheduler was edited comes off {objects}.",
        objects=lambda undoing: _names(_edited_hosts(undoing)),
        backend=Backend.KUBE_SCHEDULER,
    ),
    StepRow(
        name="Jobs",
        says="The Jobs that edited and restored kube-scheduler go: {objects}.",
        objects=lambda undoing: [job.path for job in undoing.objects.jobs],
        backend=Backend.KUBE_SCHEDULER,
    ),
    StepRow(
        name="extender stopped",
        says="What follows waits until the extender has stopped on {objects}.",
        objects=lambda undoing: _names(_edited_hosts(undoing)),
        backend=Backend.KUBE_SCHEDULER,
    ),
    StepRow(
        name="external extender",
        says="The extender goes: DaemonSet {objects}. A kube-scheduler that you connected yourself stays"
        " connected: remove the extender from its configuration.",
        objects=lambda undoing: _extenders(undoing, external=True),
        backend=Backend.EXTERNAL,
    ),
    StepRow(
        name="external extender stopped",
        says="What follows waits until the extender has stopped on {objects}.",
        objects=lambda undoing: _names(_hosts(undoing, external=True)),
        backend=Backend.EXTERNAL,
    ),
    StepRow(
        name="external marks",
        says="The label that says where the extender runs comes off {objects}.",
        objects=lambda undoing: _names(_hosts(undoing, external=True)),
        backend=Backend.EXTERNAL,
    ),
    StepRow(
        name="dedicated scheduler",
        says="gpushare's own kube-scheduler goes: Deployment {objects}.",
        objects=_dedicated,
        backend=Backend.DEDICATED,
    ),
    StepRow(
        name="dedicated scheduler stopped",
        says="What follows waits until its pods have stopped: {objects}.",
        objects=_dedicated,
        backend=Backend.DEDICATED,
    ),
    StepRow(
        name="Volcano's ConfigMap restored",
        says="Volcano's scheduler gets back the configuration that it had before, from the backup {objects}.",
        objects=_volcano,
        backend=Backend.VOLCANO,
    ),
    StepRow(
        name="isolation files",
        says="The plugins remove isolation files from nodes. What follows waits until the pods have ended"
        " that need these: {objects}.",
        objects=_waited_for,
    ),
    StepRow(
        name="plugins and labels",
        says="The plugins stop, and their labels come off the nodes, by name: {objects}.",
        objects=_plugins,
    ),
    StepRow(
        name="capacity on nodes",
        says="gpushare's resources leave the status of {objects}. Kubelets may show 0 of them for five"
        " minutes more.",
        objects=lambda undoing: undoing.nodes,
    ),
    StepRow(
        name="startup taints",
        says="The startup taint comes off {objects}.",
        objects=_tainted,
    ),
    StepRow(
        name="finalizer",
        says="Last, the policies themselves go: {objects}.",
        objects=lambda undoing: [policy.name for policy in undoing.going],
    ),
)
