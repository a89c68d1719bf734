"""The kinds of isolation, by name."""

from collections.abc import Mapping

from gpushare_core.api.enums import MemoryIsolation
from gpushare_plugin.decide.isolation.kind import IsolationEquipment, IsolationKind

NONE = IsolationKind(
    name=MemoryIsolation.NONE,
    unable=lambda _: None,
    equipment=lambda _: IsolationEquipment(),
    in_force=lambda _share, _memory, _facts: True,
)

ISOLATION_KINDS: Mapping[MemoryIsolation, IsolationKind] = {kind.name: kind for kind in (NONE,)}
