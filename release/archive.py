"""Archives of the same bytes wherever and whenever they are made: sorted names, one time, no owners."""

import gzip
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

COMPRESSION = 9


def tree(root: Path, *folders: str) -> Mapping[str, Path]:
    """Returns the files in ``folders`` of ``root`` by their paths, without hidden files and caches."""
    paths = (path for folder in folders for path in _files(root / folder))
    return {str(path.relative_to(root)): path for path in paths}


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        yield path
        return
    for child in path.iterdir():
        if not child.name.startswith((".", "__pycache__")):
            yield from _files(child)


def write_archive(target: Path, files: Mapping[str, Path], *, prefix: str, epoch: int) -> None:
    """Writes ``files`` below the folder ``prefix``. ``epoch``: the time of each file, in seconds since
    1970."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", COMPRESSION, raw, mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name, source in sorted(files.items()):
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            entry.mode = 0o755 if source.stat().st_mode & 0o100 else 0o644
            entry.mtime, entry.size = epoch, source.stat().st_size
            with source.open("rb") as content:
                archive.addfile(entry, content)
