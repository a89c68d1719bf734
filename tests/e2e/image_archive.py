"""What an archive of an image holds, as `docker save` writes it."""

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpushare_core.text.json_object import Json


@dataclass(frozen=True)
class Image:
    """An image: its configuration, and its files by path without the first slash, the topmost layer's."""

    configuration: Json
    entries: Mapping[str, tarfile.TarInfo] = field(repr=False)
    contents: Mapping[str, bytes] = field(repr=False)

    def text(self, path: str) -> str:
        return self.contents[path].decode()


def read_image(archive: Path) -> Image:
    entries: dict[str, tarfile.TarInfo] = {}
    contents: dict[str, bytes] = {}
    with tarfile.open(archive) as outer:
        manifest = json.loads(read(outer, "manifest.json"))[0]
        for layer in manifest["Layers"]:
            for path, entry, content in files(read(outer, layer)):
                entries[path], contents[path] = entry, content
        configuration = json.loads(read(outer, manifest["Config"]))
    return Image(configuration=configuration["config"], entries=entries, contents=contents)


def identity(archive: Path) -> Json:
    """Returns the digests of an image's configuration and of its layers, which equal images share."""
    with tarfile.open(archive) as outer:
        manifest: Json = json.loads(read(outer, "manifest.json"))[0]
    return {"Config": manifest["Config"], "Layers": manifest["Layers"]}


def files(layer: bytes) -> Iterator[tuple[str, tarfile.TarInfo, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.isfile() else None
            yield entry.name.strip("./"), entry, file.read() if file else b""


def read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, f"{name} in the archive is no file"
    return file.read()
