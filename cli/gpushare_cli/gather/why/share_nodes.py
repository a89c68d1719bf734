"""GPUShareNodes as people ask about them, each decoded when it is asked for."""

from collections.abc import Iterator, Mapping

import msgspec

from gpushare_cli.decide.objects.share_node import ObservedShareNode


class ObservedShareNodes(Mapping[str, ObservedShareNode]):
    """By name. Thousands of them, decoded with all that they say, would take more memory than all the rest:
    the ledger has what placement needs."""

    def __init__(self, raw: Mapping[str, msgspec.Raw]) -> None:
        self._raw = raw
        self._decoder = msgspec.json.Decoder(ObservedShareNode)

    def __getitem__(self, name: str) -> ObservedShareNode:
        return self._decoder.decode(self._raw[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __contains__(self, name: object) -> bool:
        return name in self._raw
