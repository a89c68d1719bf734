"""A load on cards that do not exist: read from annotations of the pods that hold them."""

from collections import Counter
from collections.abc import Iterator, Mapping

from gpushare_core.api.names import SIMULATED_LOAD_ANNOTATION
from gpushare_core.placement.quantity import parse_memory
from gpushare_plugin.devices.use import ContainerUse, Load, Use, UseQuestion

HELP = (
    "use a size such as 3Gi, for each of its containers, or sizes by container such as main=3Gi,other=512Mi"
)


class SimulatedUse:
    """Plays the loads that pods are annotated with, at once; a card is never fuller than full."""

    async def measure(self, question: UseQuestion) -> Use:
        containers: list[ContainerUse] = []
        remarks = []
        for load in question.loads:
            try:
                containers += _of_pod(load, read_load(load.text))
            except ValueError as error:
                remarks.append(f"the simulated load of pod {load.pod} is ignored: {error}")
        together: Counter[str] = Counter()
        for container in containers:
            together[container.card] += container.used
        return Use(
            cards={card.uuid: min(card.memory, together[card.uuid]) for card in question.cards},
            containers=containers if question.by_container else (),
            remarks=remarks,
        )


def read_load(text: str) -> Mapping[str, int]:
    """Returns container -> bytes; the name ``""`` stands for each container that is not named.

    Raises:
        ValueError: it is no such text; the message says what can be written.
    """
    load: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, size = part.rpartition("=")
        try:
            load[_container_name(name.strip())] = parse_memory(size.strip())
        except ValueError as error:
            raise ValueError(f"the annotation {SIMULATED_LOAD_ANNOTATION} has {part!r}: {HELP}") from error
    return load


def _container_name(name: str) -> str:
    """Raises ``ValueError`` for what no container can be called."""
    if name.strip("abcdefghijklmnopqrstuvwxyz0123456789-"):
        raise ValueError(name)
    return name


def _of_pod(load: Load, sizes: Mapping[str, int]) -> Iterator[ContainerUse]:
    """What a container uses lies evenly on its cards."""
    for container, cards in load.containers.items():
        size = sizes.get(container, sizes.get("", 0))
        for card in cards if size else ():
            yield ContainerUse(uid=load.uid, container=container, card=card, used=size // len(cards))
