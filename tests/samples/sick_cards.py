"""Two cards, what is seen of them, and the time."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.samples.plugin import card, share_node

from gpushare_core.api.names import CLEAR_FAULT_ANNOTATION
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import CardFault, GPUShareNode
from gpushare_plugin.decide.health.card_health import (
    HealthRecord,
    examine,
    faults_of,
    judged,
    recorded_health,
)
from gpushare_plugin.devices.card import CardEvent, Reading

QUIET = 600
RESET = Problem("RecoveryActionDue", "reset it")
HUNG = Problem("DriverHung", "the driver does not answer")
LOST: dict[str, Any] = {"healthy": False, "reason": "it is lost"}
ODD: dict[str, Any] = {"healthy": False, "reason": "it is odd", "passing": True}


@dataclass(slots=True)
class Ward:
    """Two cards and the time."""

    health: HealthRecord = field(default_factory=HealthRecord)
    now: datetime = datetime(2026, 11, 22, 10, tzinfo=UTC)
    annotation: str = ""
    held: tuple[str, ...] = ()
    rules: dict[str, Any] = field(default_factory=dict)

    @property
    def share_node(self) -> GPUShareNode:
        """As the API server has it, after the last look."""
        cards = [
            {
                "index": 0,
                "uuid": uuid,
                "memory": "16Gi",
                "units": 16,
                "pods": [{"namespace": "default", "name": "a", "uid": "u", "container": "main", "units": 1}],
            }
            for uuid in self.held
        ]
        status = {"cards": cards, "faults": [fault.to_json() for fault in faults_of(self.health)]}
        devices = {"source": "NVML", "health": self.rules}
        node = share_node(status=status, devices=devices)
        annotations = {CLEAR_FAULT_ANNOTATION: self.annotation}
        return msgspec.structs.replace(
            node, metadata=msgspec.structs.replace(node.metadata, annotations=annotations)
        )

    def look(self, *xids: int, after: float = 10, **of_second: Any) -> bool:
        """Whether the second card is healthy, ``after`` seconds more; ``of_second``: how it is."""
        events = tuple(CardEvent("GPU-1", xid) for xid in xids)
        return self.see(Reading(cards=(card(0), replace(card(1), **of_second)), events=events), after=after)

    def see(self, reading: Reading, *, after: float = 10) -> bool:
        self.now += timedelta(seconds=after)
        self.health = examine(self.health, reading, self.share_node, now=self.now)
        cards = {judged_card.uuid: judged_card for judged_card in judged(reading, self.health).cards}
        assert cards.get("GPU-0", card(0)).healthy or reading.problem
        second = cards.get("GPU-1")
        return second is not None and second.healthy

    def restart(self) -> None:
        self.health = recorded_health(GPUShareNode.from_json(self.share_node.to_json()))

    @property
    def fault(self) -> CardFault:
        (fault,) = self.health.faults.values()
        return fault

    def until_healthy(self, *, step: float = 10, **of_second: Any) -> float:
        """Returns the seconds that it takes; a card that never returns fails the test."""
        began = self.now
        for _ in range(20_000):
            if self.look(after=step, **of_second):
                return (self.now - began).total_seconds()
        pytest.fail("the card never returned")
