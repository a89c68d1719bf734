"""What nodes whose cards fit lack beside cards: CPU, memory, places for pods, other resources."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.finding import Finding
from gpushare_cli.decide.why.nearest import fitting_nodes
from gpushare_cli.decide.why.pod_amounts import pod_amounts
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import counted, memory_text
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import read_amount
from gpushare_core.scheduling.preemption.bound_pods import BoundPod

BYTES = ("memory", "ephemeral-storage")


def missing_resources(situation: PodSituation) -> Iterator[Finding]:
    """Compares with the nodes whose cards fit: with what they have in all, and, where their pods were read,
    with what these leave. Decisive where each of them lacks something, be it not the same."""
    short = _short(situation)
    is_decisive = not _without(situation, short)
    for name, lefts in short.items():
        yield _finding(situation, name, lefts, is_decisive=is_decisive)


def nodes_with_all(situation: PodSituation) -> list[str]:
    """Returns the nodes whose cards fit, without those that lack something else."""
    return _without(situation, _short(situation))


def _without(situation: PodSituation, short: Mapping[str, Collection[str]]) -> list[str]:
    lacking = {node for nodes in short.values() for node in nodes}
    return [node for node in fitting_nodes(situation) if node not in lacking]


def _asked(situation: PodSituation) -> dict[str, Fraction]:
    asked = {name: amount for name, amount in pod_amounts(written_pod(situation.pod).spec).items() if amount}
    return {name: amount for name, amount in asked.items() if name not in RESOURCES} | {"pods": Fraction(1)}


def _nodes(situation: PodSituation) -> list[KubeNode]:
    """Returns those whose cards fit and of which it is known what they have."""
    known = situation.cluster.nodes or {}
    nodes = (known[name] for name in fitting_nodes(situation) if name in known)
    return [node for node in nodes if node.status.allocatable]


def _short(situation: PodSituation) -> dict[str, dict[str, Fraction]]:
    """Returns resource -> node that lacks it -> what it has left."""
    short: dict[str, dict[str, Fraction]] = {}
    asked = _asked(situation)
    for node in _nodes(situation):
        for name, amount in asked.items():
            if (left := _free(node, name, situation.neighbours.get(node.name))) < amount:
                short.setdefault(name, {})[node.name] = left
    return short


def _finding(situation: PodSituation, name: str, short: dict[str, Fraction], *, is_decisive: bool) -> Finding:
    amount, nodes = _asked(situation)[name], _nodes(situation)
    nearest = max(short, key=lambda node: (short[node], node))
    total = _total(next(node for node in nodes if node.name == nearest), name)
    of_all = f" of {_number(name, total)}" if nearest in situation.neighbours else ""
    is_never = all(_total(node, name) < amount for node in nodes)
    others = "; the others lack something else" if is_decisive and len(short) < len(nodes) else ""
    sentence = _sentence(name, amount, short=len(short), of=len(nodes), is_offered=bool(total))
    return Finding(
        code=f"No{_CODES.get(name, 'Resource')}",
        sentence=f"{sentence}{others}.",
        nodes=len(short),
        nearest=f"{nearest}: {_number(name, short[nearest])}{of_all} free" if total else "",
        advice=_advice(name, nearest, total, is_never=is_never),
        is_decisive=is_decisive,
    )


def _sentence(name: str, amount: Fraction, *, short: int, of: int, is_offered: bool) -> str:
    """Without its full stop. ``is_offered``: whether the nearest node has any of it."""
    asks = (
        "A node takes a limited number of pods"
        if name == "pods"
        else f"The pod asks for {_text(name, amount)}"
    )
    which = (
        f"the {counted(of, 'node')} whose cards have room"
        if of > 1
        else "the only node whose cards have room"
    )
    if not is_offered and short == of:
        return f"{asks}, and no node whose cards have room offers any"
    little = "no room for another one" if name == "pods" else "too little left"
    if of == 1:
        return f"{asks}, and {which} has {little}"
    some = "each" if short == of else f"{short:,}"
    return f"{asks}, and of {which} {some} {'have' if 1 < short < of else 'has'} {little}"


def _advice(name: str, nearest: str, total: Fraction, *, is_never: bool) -> list[str]:
    if name == "pods":
        return [f"kubectl get pods -A --field-selector spec.nodeName={nearest}"]
    describe = f"kubectl describe node {nearest}"
    if not total:
        return [
            f"Remove {name} from the pod, or check that its device plugin runs there.",
            describe,
        ]
    wait = "waiting does not help: no empty node has that much" if is_never else "or wait for others to end"
    return [f"Ask for less {_NOUNS.get(name, name)} in the requests of the pod; {wait}.", describe]


_CODES = {"cpu": "Cpu", "memory": "Memory", "ephemeral-storage": "Storage", "pods": "PodPlaces"}
_NOUNS = {"cpu": "CPU", "ephemeral-storage": "storage"}


def _text(name: str, amount: Fraction) -> str:
    noun = f" {_NOUNS.get(name, name)}" if name in ("cpu", *BYTES) else f" of {name}"
    return f"{_number(name, amount)}{noun}"


def _number(name: str, amount: Fraction) -> str:
    if name in BYTES or name.startswith("hugepages-"):
        return memory_text(int(amount))
    return f"{float(amount):.3f}".rstrip("0").rstrip(".")


def _total(node: KubeNode, name: str) -> Fraction:
    return read_amount((node.status.allocatable or {}).get(name))


def _free(node: KubeNode, name: str, pods: Sequence[BoundPod] | None) -> Fraction:
    """Without its pods, where these were not read."""
    total = _total(node, name)
    if pods is None:
        return total
    if name == "pods":
        return total - len(pods)
    return total - sum((pod.frees.get(name, Fraction(0)) for pod in pods), Fraction(0))
