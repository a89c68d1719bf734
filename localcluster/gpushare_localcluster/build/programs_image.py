"""An image of the cluster's program, which is kube-scheduler and pause to real containers."""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

from gpushare_localcluster.build.binary import Binary

PAUSE = "registry.k8s.io/pause:3.9"
PROGRAM = "usr/local/bin/kube-scheduler"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_programs_image(binary: Binary, archive: Path) -> None:
    """Writes an archive for `ctr images import`. The program acts as what its name says."""
    layer = archive.with_suffix(".layer")
    with tarfile.open(layer, "w") as content:
        content.add(binary.path, PROGRAM)
        link = tarfile.TarInfo("pause")
        link.type, link.linkname = tarfile.SYMTYPE, PROGRAM
        content.addfile(link)
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    configuration = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Env": ["PATH=/usr/local/bin"], "Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    names = [f"registry.k8s.io/kube-scheduler:{binary.minor.version}", PAUSE]
    manifest = [{"Config": "config.json", "RepoTags": names, "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as content:
        content.add(layer, "layer.tar")
        _add(content, "config.json", configuration)
        _add(content, "manifest.json", manifest)
    layer.unlink()


def _add(archive: tarfile.TarFile, name: str, content: object) -> None:
    text = json.dumps(content).encode()
    entry = tarfile.TarInfo(name)
    entry.size = len(text)
    archive.addfile(entry, io.BytesIO(text))
