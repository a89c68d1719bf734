"""A GPUShareNode with little of its holders: 5,000 of them are read in a second."""

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from gpushare_cli.decide.objects.share_node import IsolationText, ObservedCondition, condition_of
from gpushare_core.api.enums import Health, MemoryIsolation

GIVEN = (MemoryIsolation.HOOK, MemoryIsolation.DRIVER)
"""What a node gives new containers, where it gives anything."""


class ShareState(Struct, rename="camel", gc=False):
    """What a container was given to keep it to its units of a card."""

    uid: str = ""
    container: str = ""
    isolation: str = ""


class CardState(Struct, rename="camel"):
    index: int = 0
    uuid: str = ""
    units: int = 0
    allocated_units: int = 0
    health: str = ""
    health_reason: str = ""
    cordoned: bool = False
    lock: str = ""
    pods: list[ShareState] | None = None

    @property
    def is_sick(self) -> bool:
        return self.health not in ("", Health.HEALTHY)

    @property
    def is_locked_idly(self) -> bool:
        """Whether it serves one class alone though nobody holds anything of it."""
        return bool(self.lock) and not self.allocated_units


class NodeStateMeta(Struct, rename="camel"):
    name: str
    generation: int = 0
    deletion_timestamp: str = ""


class NodeStateSpec(Struct, rename="camel"):
    policy: str = ""
    mode: str = ""
    reserved_memory: str = "0"
    isolation: IsolationText = field(default_factory=IsolationText)


class NodeStateStatus(Struct, rename="camel"):
    observed_generation: int = 0
    plugin_version: str = ""
    isolation: str = ""
    conditions: list[ObservedCondition] | None = None
    cards: list[CardState] | None = None


class NodeState(Struct):
    metadata: NodeStateMeta
    spec: NodeStateSpec = field(default_factory=NodeStateSpec)
    status: NodeStateStatus = field(default_factory=NodeStateStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def policy(self) -> str:
        return self.spec.policy

    @property
    def cards(self) -> list[CardState]:
        return self.status.cards or []

    @property
    def is_answered(self) -> bool:
        """Whether its plugin has answered what is asked for now."""
        return self.status.observed_generation >= self.metadata.generation

    @property
    def gives_isolation(self) -> bool:
        """Whether its policy asks for isolation, and new containers get it."""
        return self.spec.isolation.memory != MemoryIsolation.NONE and self.status.isolation in GIVEN

    def condition(self, type_: str) -> ObservedCondition | None:
        return condition_of(self.status.conditions, type_)


class NodeStateReader:
    """Reads the GPUShareNodes of a cluster. Of cards and their holders it keeps those about which there is
    something to say, and of equal conditions one: 5,000 whole ones took 40 MiB."""

    def __init__(self) -> None:
        self._decoder = Decoder(NodeState)
        self._conditions: dict[ObservedCondition, ObservedCondition] = {}

    def read(self, raw: Raw) -> NodeState:
        node = self._decoder.decode(raw)
        conditions = [self._conditions.setdefault(one, one) for one in node.status.conditions or ()]
        node.status.conditions = conditions
        for card in node.cards:
            card.pods = _without_isolation(card) if node.gives_isolation else None
        if not any("card " in condition.message for condition in conditions):  # such as may name any card
            node.status.cards = [card for card in node.cards if _is_notable(card)]
        return node


def _without_isolation(card: CardState) -> list[ShareState] | None:
    return [share for share in card.pods or () if not share.isolation] or None


def _is_notable(card: CardState) -> bool:
    return card.is_sick or card.cordoned or card.is_locked_idly or bool(card.pods)
