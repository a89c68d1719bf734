"""Building the images as a user does, without a registry; what is slow is cached."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpushare_core.process.version import VERSION
from gpushare_localcluster.build.container_runtime import ensure_runtime
from gpushare_localcluster.build.lock import locked
from gpushare_localcluster.build.minors import Minor
from gpushare_localcluster.build.packages import ensure_packages
from gpushare_localcluster.cluster import to_stderr
from gpushare_localcluster.directories import cache_folder

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("buildah", "debootstrap", "iptables")
IMAGE = "docker.io/library/gpushare:0.1.0"
"""As manifests/ name it."""
BASE = "localhost/debian-python:bookworm"
SUITE = "bookworm"
PYTHON = "3.11"
EPOCH = 1_700_000_000
"""When everything in the image was made, by its own account."""
MAX_STORED = 6 * 2**30
"""Bytes of layers, from which on all are thrown away: each build of other sources adds some."""


@dataclass(frozen=True)
class Builder:
    """buildah from Debian's packages, which are installed nowhere, with the nodes' runc."""

    packages: Path
    runc: Path
    cache: Path

    @property
    def environment(self) -> Mapping[str, str]:
        programs = (self.packages / "usr/sbin", self.packages / "usr/bin", os.environ["PATH"])
        libraries = self.packages.glob("usr/lib/*-linux-gnu")
        return {
            **os.environ,
            "PATH": ":".join(map(str, programs)),
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
            "DEBOOTSTRAP_DIR": str(self.packages / "usr/share/debootstrap"),
            "CONTAINERS_STORAGE_CONF": str(self._write_storage_configuration()),
            "BUILDAH_ISOLATION": "oci",
            # A machine with other programs for containers has settings of its own, and another runtime.
            "BUILDAH_RUNTIME": str(self.runc),
            "CONTAINERS_CONF": "/dev/null",
            "CONTAINERS_REGISTRIES_CONF": str(self.packages / "etc/containers/registries.conf"),
        }

    @property
    def policy(self) -> str:
        return f"--signature-policy={self.packages}/etc/containers/policy.json"

    def _write_storage_configuration(self) -> Path:
        path = self.cache / "storage.conf"
        lines = ["[storage]", 'driver = "overlay"']
        folders = [f'{name} = "{self.cache}/{name}"' for name in ("graphroot", "runroot")]
        path.write_text("\n".join([*lines, *folders, ""]))
        return path

    def run(self, *command: str | Path, **extra: str) -> str:
        """Runs a command whose mounts end with it, and returns what it prints."""
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", *command],
            cwd=ROOT,
            env={**self.environment, **extra},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{(done.stdout + done.stderr)[-4000:]}"
        return done.stdout


def build_image(archive: Path) -> None:
    """Builds the image by `make image` and writes it to ``archive``, as `docker save` would.

    Several modules of tests have it: the last one is kept, and is the same for the same sources.
    """
    cache = cache_folder().parent / "image"
    with locked(cache / "lock", report=to_stderr):
        kept = cache / "built" / f"{digest_of_sources()}.tar"
        if not kept.exists():
            shutil.rmtree(kept.parent, ignore_errors=True)
            kept.parent.mkdir(parents=True)
            unfinished = kept.with_suffix(".unfinished")
            make_archive(cache, unfinished)
            unfinished.rename(kept)
        shutil.copyfile(kept, archive)


def build_scheduler_image(archive: Path, minor: Minor, **variables: str) -> None:
    """Builds our kube-scheduler's image by `make scheduler-image` and writes it to ``archive``, as
    `docker save` would. ``variables``: of the environment."""
    cache, name = cache_folder().parent / "image", scheduler_image(minor)
    with locked(cache / "lock", report=to_stderr):
        builder = ensure_builder(cache)
        builder.run(
            *("make", "scheduler-image", f"IMAGE={IMAGE}", f"KUBERNETES={minor.version.removeprefix('v')}"),
            BUILDER="buildah",
            IMAGE_ARGS=builder.policy,
            SOURCE_DATE_EPOCH=str(EPOCH),
            **variables,
        )
        builder.run("buildah", "push", builder.policy, name, f"docker-archive:{archive}:{name}")


def scheduler_image(minor: Minor) -> str:
    return f"docker.io/library/gpushare-scheduler:{VERSION}-{minor.name}"


def ensure_builder(cache: Path) -> Builder:
    runc = ensure_runtime(report=to_stderr).runc / "runc"
    forget_layers(cache)
    return Builder(packages=ensure_packages(PACKAGES, report=to_stderr), runc=runc, cache=cache)


def make_archive(cache: Path, archive: Path) -> None:
    builder = ensure_builder(cache)
    ensure_base(builder)
    make_image(builder, ensure_wheels(cache))
    builder.run("buildah", "push", builder.policy, IMAGE, f"docker-archive:{archive}:{IMAGE}")


def digest_of_sources() -> str:
    """Returns what follows from all that the build is sent, and from how it is built here."""
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    content = hashlib.sha256()
    for name in (*sent, "Dockerfile", ".dockerignore", str(Path(__file__).relative_to(ROOT))):
        for path in files_of(ROOT / name):
            content.update(
                f"\n{path.relative_to(ROOT)}\n{path.stat().st_mode}\n".encode() + path.read_bytes()
            )
    return content.hexdigest()[:16]


def files_of(path: Path) -> list[Path]:
    found = [path] if path.is_file() else path.rglob("*")
    return sorted(file for file in found if file.is_file() and "__pycache__" not in file.parts)


def make_image(builder: Builder, wheels: Path) -> None:
    arguments = [builder.policy, "--network=host", f"--volume={wheels}:/wheels:ro"]
    builder.run(
        "make",
        "image",
        f"IMAGE={IMAGE}",
        f"BASE={BASE}",
        BUILDER="buildah",
        IMAGE_ARGS=" ".join(arguments),
        SOURCE_DATE_EPOCH=str(EPOCH),
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS="/wheels",
    )


def forget_layers(cache: Path) -> None:
    stored = cache / "graphroot"
    if sum(path.lstat().st_size for path in stored.rglob("*")) > MAX_STORED:
        shutil.rmtree(stored)


def ensure_base(builder: Builder) -> None:
    """Puts a minimal Debian with Python and pip among the builder's images."""
    archive = builder.cache / f"base-{SUITE}.tar"
    if not archive.exists():
        make_base(builder, archive)
    if BASE in builder.run("buildah", "images", "--format", "{{.Name}}:{{.Tag}}"):
        return
    with tempfile.TemporaryDirectory(dir=builder.cache) as context:
        Path(context, "Dockerfile").write_text(f"FROM scratch\nADD {archive.name} /\n")
        os.link(archive, Path(context, archive.name))
        builder.run("buildah", "build", builder.policy, "--timestamp=0", "--tag", BASE, context)


def make_base(builder: Builder, archive: Path) -> None:
    to_stderr("making a minimal Debian with Python: a minute, once")
    with tempfile.TemporaryDirectory(dir=builder.cache) as folder:
        root, unfinished = Path(folder, "root"), Path(folder, "unfinished.tar")
        builder.run("debootstrap", "--variant=minbase", "--include=python3,python3-pip", SUITE, root)
        builder.run("tar", "--directory", root, "--create", "--file", unfinished, ".")
        unfinished.rename(archive)


def ensure_wheels(cache: Path) -> Path:
    """Returns a folder with what the image's locks name, fetched by this machine's pip and its settings."""
    folder = cache / "wheels"
    for lock in ("build", "requirements"):
        text = (ROOT / "image" / f"{lock}.lock").read_text()
        fetched = folder / f"{lock}.lock"
        if not fetched.exists() or fetched.read_text() != text:
            download(ROOT / "image" / f"{lock}.lock", folder)
            fetched.write_text(text)
    return folder


def download(lock: Path, folder: Path) -> None:
    platforms = [f"manylinux{tag}_{platform.machine()}" for tag in ("2014", "_2_17", "_2_28", "_2_34")]
    command: Sequence[str | Path] = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:"),
        *("--python-version", PYTHON, *(part for tag in platforms for part in ("--platform", tag))),
        *("--requirement", lock, "--dest", folder),
    ]
    subprocess.run(command, check=True)
