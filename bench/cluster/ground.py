"""What a row needs of a cluster, whoever places shared pods there."""

from collections.abc import Mapping
from typing import Protocol

from bench.cluster.cluster_objects import Layout
from bench.measuring.size import Size
from bench.readings.process_use import ProcessUse

from gpushare_core.audit.records import LedgerRecord
from gpushare_core.kube.client import KubeClient


class Ground(Protocol):
    """A cluster in which shared pods are placed."""

    @property
    def client(self) -> KubeClient:
        """The administrator's."""

    @property
    def size(self) -> Size: ...

    @property
    def layout(self) -> Layout:
        """The nodes that only exist as objects."""

    @property
    def scheduler_name(self) -> str:
        """The ``schedulerName`` of shared pods."""

    @property
    def program(self) -> str:
        """The program whose memory ``use`` says."""

    @property
    def shows_attempts(self) -> bool:
        """Whether ``scheduler_metrics`` are those of the kube-scheduler that places shared pods."""

    async def only_objects(self) -> None:
        """Returns when the nodes that only exist as objects take shared pods, and no other node takes any."""

    async def scheduler_metrics(self) -> str: ...

    async def failed_binds(self) -> float:
        """Returns how many binds of shared pods have failed so far."""

    async def use(self) -> ProcessUse:
        """Returns what the program that knows the cards has used."""

    async def ledger(self) -> Mapping[str, LedgerRecord]:
        """Returns node -> what that program counts there; nothing where it shows that to nobody."""
