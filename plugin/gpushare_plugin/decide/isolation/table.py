"""The kinds of isolation, by name."""

from collections.abc import Mapping

from gpushare_core.api.enums import MemoryIsolation
from gpushare_plugin.decide.isolation.driver import DRIVER
from gpushare_plugin.decide.isolation.hook import HOOK
from gpushare_plugin.decide.isolation.kind import (
    IsolationChoice,
    IsolationEquipment,
    IsolationFinding,
    IsolationKind,
)

NONE = IsolationKind(
    name=MemoryIsolation.NONE,
    unable=lambda _: None,
    equipment=lambda _: IsolationEquipment(),
    in_force=lambda _share, _facts: IsolationFinding(in_force=True),
)
NO_ISOLATION = IsolationChoice(kind=NONE)

ISOLATION_KINDS: Mapping[MemoryIsolation, IsolationKind] = {kind.name: kind for kind in (NONE, HOOK, DRIVER)}
