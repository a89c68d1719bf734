"""The files of a host in which something of gpushare can be left."""

from collections.abc import Iterator
from pathlib import Path

from gpushare_cli.errors import CannotLookError
from gpushare_core.api.share_node import ISOLATION_FOLDER
from gpushare_core.residue import HostFile

FOLDERS = ("etc/kubernetes", "var/lib/kubelet/device-plugins", ISOLATION_FOLDER.removeprefix("/"))
MAX_TEXT = 4 * 2**20
"""Bytes of a manifest or a configuration."""


def read_host_files(root: Path) -> list[HostFile]:
    """Returns the files and the empty folders in ``FOLDERS`` of the host with this root."""
    folders = [root / folder for folder in FOLDERS]
    if not any(folder.is_dir() for folder in folders):
        wanted = " nor ".join(f"/{folder}" for folder in FOLDERS)
        raise CannotLookError(f"{root} has neither {wanted}: give the root of a node's files, as / there")
    try:
        return [file for folder in folders if folder.is_dir() for file in _files(root, folder)]
    except OSError as error:
        raise CannotLookError(f"{error.filename}: {error.strerror}; run this as root") from error


def _files(root: Path, folder: Path) -> Iterator[HostFile]:
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() or not any(path.iterdir()):
            yield HostFile(path.relative_to(root).as_posix(), mentions_us=_mentions_us(path))


def _mentions_us(path: Path) -> bool:
    if path.suffix not in (".yaml", ".yml", ".json", ".conf") or not path.is_file():
        return False
    with path.open("rb") as file:
        return b"gpushare" in file.read(MAX_TEXT)
