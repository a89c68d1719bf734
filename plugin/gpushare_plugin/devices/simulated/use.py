"""A load on simulated cards: read from annotations of the pods that hold them."""

from collections import Counter
from collections.abc import Iterator, Mapping

from gpushare_core.api.names import SIMULATED_LOAD_ANNOTATION
from gpushare_core.placement.quantity import parse_memory
from gpushare_plugin.devices.use import ContainerUse, Load, Use, UseQuestion

HELP = (
    "use a size such as 3Gi, for each of its containers, or sizes by container such as main=3Gi,other=512Mi"
)


class SimulatedUse:
    """Uses what the annotations of pods ask for, at most all of a card."""

    async def measure(self, question: UseQuestion) -> Use:
        containers: list[ContainerUse] = []
        warnings = []
        for load in question.loads:
            try:
                containers += _of_pod(load, read_load(load.text))
            except ValueError as error:
                warnings.append(f"the simulated load of pod {load.pod} is ignored: {error}")
        together: Counter[str] = Counter()
        for container in containers:
            together[container.card] += container.used
        return Use(
            cards={card.uuid: min(card.memory, together[card.uuid]) for card in question.cards},
            containers=containers if question.by_container else (),
            warnings=warnings,
        )


def read_load(text: str) -> Mapping[str, int]:
    """Returns container -> bytes; the name ``""`` stands for every container that is not named. Raises
    ``ValueError``, which says what can be written."""
    load: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, size = (word.strip() for word in part.rpartition("="))
        try:
            if name.strip("abcdefghijklmnopqrstuvwxyz0123456789-"):  # no container can be called that
                raise ValueError(name)
            load[name] = parse_memory(size)
        except ValueError as error:
            raise ValueError(f"the annotation {SIMULATED_LOAD_ANNOTATION} has {part!r}: {HELP}") from error
    return load


def _of_pod(load: Load, sizes: Mapping[str, int]) -> Iterator[ContainerUse]:
    """The load of a container is spread evenly over its cards."""
    for container, cards in load.containers.items():
        size = sizes.get(container, sizes.get("", 0))
        for card in cards if size else ():
            yield ContainerUse(uid=load.uid, container=container, card=card, used=size // len(cards))
