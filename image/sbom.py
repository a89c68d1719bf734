"""Writes what the image consists of: CycloneDX 1.5 in JSON, and Debian's own metadata of its packages.

Runs in the image's build, after root_filesystem.py. The Python packages are those that were installed, each
by a hash in requirements.lock.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from root_filesystem import BUILT, HOOK, PRODUCT

BILL = "usr/share/gpushare/sbom.json"
DPKG = Path("/var/lib/dpkg/info")

Component = dict[str, Any]


def main() -> None:
    packages = [own for root in ("dependencies", "product") for own in installed(BUILT / root)]
    product = next(package for package in packages if package.metadata["Name"] == PRODUCT)
    debian = debian_packages(BUILT / "base")
    copy_documents(debian, BUILT / "base")
    components = [
        interpreter(),
        *(python_component(package) for package in packages if package is not product),
        *(debian_component(name) for name in debian),
        *(own_library(path) for path in sorted(HOOK.rglob("*.so"))),
    ]
    target = BUILT / "product" / BILL
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(
        json.dumps(bill(python_component(product), components), indent=1, sort_keys=True) + "\n"
    )


def installed(root: Path) -> list[Distribution]:
    folders = [str(folder) for folder in root.rglob("site-packages")]
    return sorted(distributions(path=folders), key=lambda distribution: distribution.metadata["Name"].lower())


def bill(product: Component, components: Sequence[Component]) -> Component:
    """Returns the bill of materials; equal content has an equal serial number."""
    made = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    content = json.dumps([product, *components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, content).urn,
        "version": 1,
        "metadata": {
            "timestamp": made.isoformat().replace("+00:00", "Z"),
            "component": {**product, "type": "application"},
        },
        "components": sorted(components, key=lambda component: str(component["bom-ref"])),
    }


def component(name: str, version: str, package_url: str) -> Component:
    return {
        "type": "library",
        "bom-ref": package_url,
        "name": name,
        "version": version,
        "purl": package_url,
    }


def python_component(package: Distribution) -> Component:
    name, version = package.metadata["Name"], package.version
    normal = name.lower().replace("_", "-").replace(".", "-")
    own = component(name, version, f"pkg:pypi/{normal}@{version}")
    license_named = package.metadata["License-Expression"] or license_of(package)
    return {**own, "licenses": [{"license": {"name": license_named}}]} if license_named else own


def license_of(package: Distribution) -> str:
    """Returns the licence as older packages state it: in classifiers, or in a field that may hold the whole
    text."""
    classifiers = package.metadata.get_all("Classifier") or []
    named = [
        classifier.rpartition(" :: ")[2] for classifier in classifiers if classifier.startswith("License :: ")
    ]
    first_line, *_ = (package.metadata["License"] or "").strip().splitlines() or [""]
    return ", ".join(named) or first_line


def own_library(path: Path) -> Component:
    """Returns a file that the build compiled of the product's own sources, and that is linked to nothing."""
    name = str(path.relative_to("/"))
    content = {"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}
    licence = [{"license": {"id": "Apache-2.0"}}]
    return {"type": "file", "bom-ref": name, "name": name, "hashes": [content], "licenses": licence}


def interpreter() -> Component:
    version = platform.python_version()
    return {**component("python", version, f"pkg:generic/python@{version}"), "type": "platform"}


def debian_packages(root: Path) -> list[str]:
    """Returns the Debian packages that the files below ``root`` belong to; none where the base is not
    Debian."""
    owners = dict(owned_files())
    paths = [f"/{path.relative_to(root)}" for path in root.rglob("*") if not path.is_dir()]
    # The package database has libraries where they were before /lib became a link into /usr.
    known = (owners.get(path) or owners.get(path.removeprefix("/usr")) for path in paths)
    return sorted({owner for owner in known if owner})


def owned_files() -> Iterator[tuple[str, str]]:
    for listing in DPKG.glob("*.list"):
        for path in listing.read_text().splitlines():
            yield path, listing.stem.partition(":")[0]


def debian_component(name: str) -> Component:
    version, architecture = field(name, "Version"), field(name, "Architecture")
    return component(name, version, f"pkg:deb/debian/{name}@{version}?arch={architecture}")


def field(name: str, wanted: str) -> str:
    return query("--show", "--showformat=${" + wanted + "}", name)


def query(*arguments: str) -> str:
    return subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True, check=True).stdout


def copy_documents(packages: Sequence[str], root: Path) -> None:
    """Copies licences, and the files that scanners read in images without a package manager."""
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True)
    for name in packages:
        (status / name).write_text(query("--status", name))
        copyright_file = Path("/usr/share/doc", name, "copyright")
        if copyright_file.exists():
            target = root / copyright_file.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(copyright_file.resolve(), target)


if __name__ == "__main__":
    main()
