"""Manifests that people name with ``-f``: files, folders, and the standard input.

Nobody may keep the command busy with a file: what is longer than the limits is refused before it is parsed.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from gpushare_cli.decide.objects.workload import Document, Workloads, workloads_of
from gpushare_cli.errors import CannotLookError
from gpushare_core.text.json_object import UNREADABLE_JSON

MAX_YAML_BYTES = 512 * 1024
"""Of one file. Parsing takes seconds for it."""
MAX_JSON_BYTES = 16 * 1024 * 1024
"""Of one file: such as a long list that kubectl printed."""
MAX_FILES = 256
SUFFIXES = (".yaml", ".yml", ".json")
"""Of the files that count in a folder, as kubectl has it."""
STDIN = "-"


def read_workloads(sources: Sequence[str], *, namespace: str, stdin: BinaryIO) -> Workloads:
    """Returns what the manifests at ``sources`` contain, in their order. A folder stands for its files, by
    name, without folders in it. Objects without a namespace are of ``namespace``.

    Raises:
        CannotLookError: a source cannot be read; the text says which and why.
    """
    return workloads_of(read_documents(sources, stdin=stdin), namespace=namespace)


def read_documents(sources: Sequence[str], *, stdin: BinaryIO) -> list[Document]:
    """Returns the objects in ``sources``, as in ``read_workloads``."""
    if sources.count(STDIN) > 1:
        raise CannotLookError("-f - is there twice, and the standard input can be read once")
    found: list[Document] = []
    for place, source in enumerate(_files(sources)):
        if place >= MAX_FILES:
            raise CannotLookError(f"there are more than {MAX_FILES} files; name fewer")
        found.extend(_documents(source, stdin) if isinstance(source, str) else _documents_in(source))
    return found


def _files(sources: Sequence[str]) -> Iterator[Path | str]:
    for source in sources:
        if source == STDIN:
            yield source
        elif source.startswith(("http://", "https://")):
            raise CannotLookError(
                f"{source}: no manifests are read from the web;"
                f" try: curl -sSf {source} | kubectl gpushare simulate -f -"
            )
        elif (path := Path(source)).is_dir():
            yield from _in_folder(path)
        else:
            yield path


def _in_folder(folder: Path) -> list[Path]:
    try:
        inside = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    except OSError as error:
        raise CannotLookError(f"{folder}: {error.strerror}") from error
    if not inside:
        raise CannotLookError(f"{folder}: there is no file in it that ends in {', '.join(SUFFIXES)}")
    return inside


def _documents_in(path: Path) -> list[Document]:
    try:
        with path.open("rb") as file:
            return _documents(str(path), file)
    except OSError as error:
        raise CannotLookError(f"{path}: {error.strerror}") from error


def _documents(name: str, file: BinaryIO) -> list[Document]:
    source = "standard input" if name == STDIN else name
    content = file.read(MAX_JSON_BYTES + 1)
    parsed = documents_of(content, source=source)
    is_one = len(parsed) == 1
    return [
        Document(source=source if is_one else f"{source}, document {number}", content=document)
        for number, document in enumerate(parsed, start=1)
    ]


def documents_of(content: bytes, *, source: str) -> list[object]:
    """Returns the documents in ``content``, YAML or JSON. Raises ``CannotLookError``."""
    if len(content) > MAX_JSON_BYTES:
        raise CannotLookError(f"{source}: it is longer than {MAX_JSON_BYTES // 2**20} MiB; split it")
    if content.lstrip()[:1] == b"{":
        try:
            return [msgspec.json.decode(content)]
        except UNREADABLE_JSON:
            pass  # YAML may begin like this, too
    return _yaml_documents(content, source)


def _yaml_documents(content: bytes, source: str) -> list[object]:
    from gpushare_core.text.yaml_edit import YamlEditError, documents  # takes as long as the rest of a start

    if len(content) > MAX_YAML_BYTES:
        raise CannotLookError(f"{source}: it is longer than {MAX_YAML_BYTES // 1024} KiB; split it")
    try:
        found = documents(content.decode("utf-8-sig"), max_characters=MAX_YAML_BYTES)
    except UnicodeDecodeError as error:
        raise CannotLookError(f"{source}: it is no text in UTF-8") from error
    except YamlEditError as error:
        raise CannotLookError(f"{source}: {error}") from error
    if all(document is None for document in found):
        raise CannotLookError(f"{source}: it is empty")
    return found
