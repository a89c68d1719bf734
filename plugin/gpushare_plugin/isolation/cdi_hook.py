"""Whether the node's CDI specification has the hook that limits a container's memory.

Of NVIDIA's container toolkit a pod sees no more than the files that the toolkit has written. Its runtime can
make the specification itself when a container starts: then there is no file.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from gpushare_plugin.decide.isolation.driver import TOOLKIT_HOOK

FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Of the CDI specification's standard."""
MAX_BYTES = 4 * 2**20
"""Of a file that is read: one of 16 cards has a fiftieth of that."""
_SUFFIXES = frozenset({".json", ".yaml"})


def has_toolkit_hook(kind: str, folders: Iterable[Path] = FOLDERS) -> bool | None:
    """Returns whether a specification of ``kind`` has the hook, or None where no such specification is seen.
    Blocks.

    Names are looked for in the text: whether the files are valid is the runtime's matter.
    """
    contents = [content for folder in folders for content in _contents(folder) if kind.encode() in content]
    return any(TOOLKIT_HOOK.encode() in content for content in contents) if contents else None


def _contents(folder: Path) -> Iterator[bytes]:
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            if path.suffix in _SUFFIXES and path.is_file():
                with suppress(OSError), path.open("rb") as file:
                    yield file.read(MAX_BYTES)
