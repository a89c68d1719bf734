"""GPUShareNodes as people ask about them, each decoded when it is asked for."""

from collections.abc import Iterator, Mapping

import msgspec

from gpushare_cli.decide.objects.share_node import ObservedShareNode, ShareNodeMeta
from gpushare_core.text.json_object import UNREADABLE_JSON


class ObservedShareNodes(Mapping[str, ObservedShareNode]):
    """By name. Thousands of them, decoded with all that they say, would take more memory than all the rest:
    the ledger has what placement needs."""

    def __init__(self, raw: Mapping[str, msgspec.Raw]) -> None:
        self._raw = raw
        self._decoder = msgspec.json.Decoder(ObservedShareNode)

    def __getitem__(self, name: str) -> ObservedShareNode:
        """Returns an empty one for a node that cannot be read: the ledger says that it takes no pods."""
        try:
            return self._decoder.decode(self._raw[name])
        except UNREADABLE_JSON:
            return ObservedShareNode(metadata=ShareNodeMeta(name=name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __contains__(self, name: object) -> bool:
        return name in self._raw
