"""A GPUShareNode with little of its holders: 5,000 of them are read in a second."""

from msgspec import Struct, field

from gpushare_cli.decide.objects.share_node import IsolationText, ObservedCondition, condition_of


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

    def condition(self, type_: str) -> ObservedCondition | None:
        return condition_of(self.status.conditions, type_)
