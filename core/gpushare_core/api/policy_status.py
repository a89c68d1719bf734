"""What a GPUSharePolicy says came of it; the operator writes it. The CRD is generated from these classes."""

from typing import Annotated

from msgspec import field

from gpushare_core.api import bounds
from gpushare_core.api.api_object import ApiObject, Word, bounded
from gpushare_core.api.conditions import ConditionList
from gpushare_core.api.share_node import MemoryTotals

_Units = Annotated[str, bounded(bounds.text(bounds.UNITS))]
_Versions = Annotated[str, bounded(bounds.text(bounds.VERSIONS))]


class NodeTotals(ApiObject, frozen=True, kw_only=True):
    enabled: int = 0
    ready: int = 0
    summary: Word = ""
    """Ready/enabled, for people."""


class CardTotals(ApiObject, frozen=True, kw_only=True):
    total: int = 0
    healthy: int = 0
    summary: Word = ""
    """Healthy and not cordoned/total, for people."""


class PolicyUnits(ApiObject, frozen=True, kw_only=True):
    """With nodes in different modes the numbers add up different kinds of units; the texts list each kind."""

    total: int = 0
    allocated: int = 0
    unit: _Units = ""
    """What a unit is, such as 1Gi, 1/2 card or 1 card; a list where nodes have several kinds."""
    summary: _Units = ""
    """Allocated/total of each kind of unit, in the same order."""


class ProgramVersions(ApiObject, frozen=True, kw_only=True):
    """Which versions run; where several run, how many of each: ``0.2.0 (5), 0.1.0 (3)``."""

    operator: Word = ""
    """Version of the leading operator."""
    plugin: _Versions = ""
    """Versions of the plugins on the policy's nodes."""
    extender: _Versions = ""
    """Versions in the extender's pods."""
    scheduler: _Versions = ""
    """Versions in the pods of gpushare's own kube-scheduler, with engine Plugin."""
    hostctl: _Versions = ""
    """Versions of the last run on each host."""


class PolicyStatus(ApiObject, frozen=True, kw_only=True):
    """How far the policy is in force."""

    observed_generation: int = 0
    backend: Word = ""
    """The scheduler backend that places pods: the one that the oldest policy asks for."""
    engine: Word = ""
    """The engine that places pods: Plugin or Extender. Empty where neither does, such as with backend
    Volcano."""
    conditions: ConditionList = field(default_factory=list)
    nodes: NodeTotals = field(default_factory=NodeTotals)
    cards: CardTotals = field(default_factory=CardTotals)
    units: PolicyUnits = field(default_factory=PolicyUnits)
    memory: MemoryTotals = field(default_factory=MemoryTotals)
    versions: ProgramVersions = field(default_factory=ProgramVersions)
