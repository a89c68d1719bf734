"""Images of users: a program or two and the C library that they are linked to, nothing else."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PROGRAM, READABLE = 0o755, 0o644


def write_image(archive: Path, name: str, files: Mapping[str, Path], *, user: str = "0") -> None:
    """Writes an image of ``files`` (path in the image -> file of this machine) as `docker save` does."""
    layer = _layer(files)
    configuration = json.dumps(
        {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": {"User": user},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        _add(tar, "layer.tar", layer, READABLE)
        _add(tar, "config.json", configuration, READABLE)
        _add(tar, "manifest.json", json.dumps(manifest).encode(), READABLE)


def add_links(archive: Path, into: Path, links: Mapping[str, str]) -> None:
    """Writes an image of ``archive`` with symbolic links (path -> target) besides."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for path, target in links.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    with tarfile.open(archive) as old, tarfile.open(into, "w") as new:
        (manifest,) = json.loads(_read(old, "manifest.json"))
        configuration = json.loads(_read(old, manifest["Config"]))
        for path in manifest["Layers"]:
            _add(new, path, _read(old, path), READABLE)
        configuration["rootfs"]["diff_ids"].append(_digest(layer.getvalue()))
        configuration.pop("history", None)
        manifest["Layers"].append("links.tar")
        _add(new, "links.tar", layer.getvalue(), READABLE)
        _add(new, manifest["Config"], json.dumps(configuration).encode(), READABLE)
        _add(new, "manifest.json", json.dumps([manifest]).encode(), READABLE)


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None, f"{name} in the archive is no file"
    return file.read()


def _digest(layer: bytes) -> str:
    return f"sha256:{hashlib.sha256(layer).hexdigest()}"


def _layer(files: Mapping[str, Path]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for path, source in files.items():
            _add(tar, path.lstrip("/"), source.read_bytes(), PROGRAM)
    return written.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
