"""What rows without a cluster are measured on: a folder, and stand-ins that each row starts itself."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.measuring.once import Once
from bench.measuring.size import Size
from bench.rows.programs.extender_process import ExtenderUse, measure_extender
from bench.rows.programs.plugin_node import PluginNode, PluginUse, measure_plugin


@dataclass(slots=True)
class Workplace:
    """``folder`` goes when it is over."""

    folder: Path
    size: Size
    _plugins: Once[PluginNode, PluginUse] = field(default_factory=Once)
    _extenders: Once[Size, ExtenderUse] = field(default_factory=Once)

    def subfolder(self, name: str) -> Path:
        """Returns a folder that is empty."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))

    async def plugin(self, node: PluginNode) -> PluginUse:
        """Returns what the plugin of ``node`` needs: measured once, for the rows that ask for it."""
        measure = partial(measure_plugin, self.subfolder("plugin"), node, self.size)
        return await self._plugins.get(node, measure)

    async def extender(self) -> ExtenderUse:
        """Returns what an extender with a whole cluster in its books needs: measured once, likewise."""
        measure = partial(measure_extender, self.subfolder("extender"), self.size)
        return await self._extenders.get(self.size, measure)


@asynccontextmanager
async def entered(size: Size) -> AsyncIterator[Workplace]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Workplace(Path(folder), size)
