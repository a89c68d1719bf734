"""Which nodes have cards of NVIDIA's, with which driver, and how a container gets at it."""

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_cli.decide.preflight.node_groups import grouped_nodes, groups_text, places
from gpushare_cli.decide.preflight.objects import PreflightNode

PRESENT = "nvidia.com/gpu.present"
"""By GPU feature discovery: what the sample policy selects."""
WHOLE_CARDS = "nvidia.com/gpu"
VENDOR = "10de"
"""NVIDIA's number on the PCI bus, in the labels of node feature discovery."""
PCI_PREFIX = "feature.node.kubernetes.io/pci-"
CLOUD_LABELS = (
    "cloud.google.com/gke-accelerator",
    "eks.amazonaws.com/instance-gpu-manufacturer",
    "k8s.amazonaws.com/accelerator",
    "karpenter.azure.com/sku-gpu-manufacturer",
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "kubernetes.azure.com/accelerator",
)
CLOUD_VALUE = "nvidia"
"""At the beginning of their values, such as ``nvidia-l4``; cards of others have such labels, too."""
DRIVER_LABELS = (
    ("nvidia.com/cuda.driver-version.full",),
    ("nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev"),
)
"""By GPU feature discovery, the newer one first."""
HANDLER = "nvidia"


def has_cards(node: PreflightNode) -> bool:
    """Returns whether anything says so: a label, or cards that another device plugin offers."""
    return (
        node.labels.get(PRESENT) == "true"
        or node.has(WHOLE_CARDS)
        or any(node.labels.get(label, "").startswith(CLOUD_VALUE) for label in CLOUD_LABELS)
        or any(
            name.startswith(PCI_PREFIX) and VENDOR in name and value == "true"
            for name, value in node.labels.items()
        )
    )


def card_nodes(facts: PreflightFacts) -> list[PreflightNode]:
    return [node for node in facts.nodes if has_cards(node)]


def cards_answer(facts: PreflightFacts) -> PreflightAnswer:
    nodes = card_nodes(facts)
    if not nodes:
        return PreflightAnswer(
            verdict=Verdict.NOTE,
            found="no node is known to have NVIDIA cards",
            to_do="Label the nodes that have them, or install GPU feature discovery. For other vendors'"
            " cards, or simulated ones, write a policy of yours: docs/inventory.md, docs/simulation.md.",
            command=f"kubectl label node NAME {PRESENT}=true",
        )
    unlabelled = tuple(node.name for node in nodes if node.labels.get(PRESENT) != "true")
    found = f"on {places([node.name for node in nodes])}"
    if not unlabelled:
        return PreflightAnswer(
            verdict=Verdict.OK, found=f"{found}; config/samples/nvidia.yaml would share all of them"
        )
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=f"{found}, of which config/samples/nvidia.yaml would not share {places(unlabelled)}",
        to_do=f"Label these nodes, if they are to be shared: the sample selects {PRESENT}.",
        command=f"kubectl label node {unlabelled[0]} {PRESENT}=true",
        nodes=unlabelled,
    )


def driver_answer(facts: PreflightFacts) -> PreflightAnswer:
    nodes = card_nodes(facts)
    if not nodes:
        return PreflightAnswer(verdict=Verdict.UNKNOWN, found="no node is known to have NVIDIA cards")
    known = [node for node in nodes if _driver(node)]
    if not known:
        return PreflightAnswer(
            verdict=Verdict.UNKNOWN,
            found="no label of GPU feature discovery names its version",
            to_do=f"Look on {places([node.name for node in nodes])}.",
            command="nvidia-smi --query-gpu=driver_version --format=csv",
        )
    found = groups_text(grouped_nodes(known, _driver), rest=len(nodes) - len(known))
    return PreflightAnswer(verdict=Verdict.OK, found=found)


def _driver(node: PreflightNode) -> str:
    for labels in DRIVER_LABELS:
        parts = [node.labels.get(label, "") for label in labels]
        if parts[0]:
            return ".".join(filter(None, parts))
    return ""


def runtime_class_answer(facts: PreflightFacts) -> PreflightAnswer:
    names = sorted(found.metadata.name for found in facts.runtime_classes if found.handler == HANDLER)
    if names:
        return PreflightAnswer(
            verdict=Verdict.OK,
            found=f"{', '.join(names)}; a policy names it (plugin.runtimeClassName) where NVIDIA's runtime is"
            " not the default one of its nodes",
        )
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=f"no RuntimeClass has the handler {HANDLER}",
        to_do="On nodes with NVIDIA's cards its container runtime has to be the default one, or make a"
        " RuntimeClass for it: docs/nvml.md.",
    )
