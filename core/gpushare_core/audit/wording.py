"""How differences name things, so that all sentences read alike."""

from collections.abc import Iterable, Mapping

from gpushare_core.audit.records import NodeRecords

PODRESOURCES = "the kubelet's PodResources"
CHECKPOINT = "the kubelet's checkpoint"
ANNOTATION = "the pod's annotation"
STATUS = "the GPUShareNode"
ENVIRONMENT = "the container's environment"
LEDGER = "the extender"
DRIVER = "the driver or the inventory"

DELETE_PODS = "delete some of the pods on that card, and report a bug: this must never happen"
LOOK_AT_PLUGIN = (
    "if this stays, see the condition LedgerInSync of the GPUShareNode and the log of the node's plugin"
)
LOOK_AT_EXTENDER = "if this stays, see the extender's log; restarting the extender makes it count anew"


def card_name(records: NodeRecords, uuid: str) -> str:
    """Returns how people find the card: its index, where a status tells it, and its UUID."""
    card = records.share_node.card(uuid) if records.share_node else None
    return f"card {card.index} ({uuid})" if card else f"card {uuid}"


def shares_text(shares: Mapping[str, int] | None) -> str:
    """Returns ``shares`` (card UUID -> units) for people."""
    if not shares:
        return "nothing"
    return " and ".join(f"{units} of {card}" for card, units in sorted(shares.items()))


def list_text(words: Iterable[str], most: int = 5) -> str:
    """Returns ``words`` with commas, no more than ``most`` of them by name."""
    every = sorted(set(words))
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest
