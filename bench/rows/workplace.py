"""What rows without a cluster are measured on: a folder, and stand-ins that each row starts itself."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.rows.plugin_node import PluginNode, PluginUse, measure_plugin
from bench.size import Size


@dataclass(slots=True)
class Workplace:
    """``folder`` goes when it is over."""

    folder: Path
    size: Size
    _plugins: dict[PluginNode, "asyncio.Task[PluginUse]"] = field(default_factory=dict)

    def subfolder(self, name: str) -> Path:
        """Returns a folder that is empty."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))

    async def plugin(self, node: PluginNode) -> PluginUse:
        """Returns what the plugin of ``node`` needs: measured once, for the rows that ask for it."""
        if node not in self._plugins:
            folder = self.subfolder("plugin")
            self._plugins[node] = asyncio.create_task(measure_plugin(folder, node, self.size))
        return await self._plugins[node]

    async def close(self) -> None:
        for task in self._plugins.values():
            task.cancel()
        await asyncio.gather(*self._plugins.values(), return_exceptions=True)


@asynccontextmanager
async def entered(size: Size) -> AsyncIterator[Workplace]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        workplace = Workplace(Path(folder), size)
        try:
            yield workplace
        finally:
            await workplace.close()
