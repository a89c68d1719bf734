"""Copy the objects that are installed into the chart: ``copy_objects.py [--check]``.

A chart has to hold all that it renders. So ``manifests/``, ``crds/`` and what is optional in ``config/`` are
the source, and the chart's templates read the copies.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
FILES = Path("charts/gpushare/files")
MARK = "# Copied from {source} by `make chart`. Do not edit.\n"

OPERATOR = Path("manifests/operator.yaml")
"""The only copied file that the chart's values change."""
NAMESPACE = "namespace.yaml"
"""Helm stores its records in the namespace, so it has to be there before."""
OPTIONAL = (
    Path("config/monitoring/podmonitors.yaml"),
    Path("config/monitoring/servicemonitor.yaml"),
    Path("config/monitoring/rbac.yaml"),
    Path("config/network-policy/network-policies.yaml"),
    Path("manifests/kube-scheduler/rights.yaml"),
)

DEDICATED = Path("manifests/dedicated")
"""For backend Dedicated: a folder of its own, with another one inside for servers that cannot direct pods."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether the copies are up to date")
    options = parser.parse_args()
    copies = expected(ROOT)
    stale = differing(ROOT, copies)
    if options.check:
        return report(stale)
    for path in stale:
        write(ROOT / path, copies.get(path))
    return 0


def expected(root: Path) -> Mapping[Path, str]:
    """Returns the text of each file that the chart holds, by its path in ``root``."""
    return {FILES / folder / source.name: _copy(root, source) for source, folder in _sources(root).items()}


def differing(root: Path, copies: Mapping[Path, str]) -> list[Path]:
    """Returns the paths of ``copies`` that differ, and of files that are no copies."""
    present = {path.relative_to(root): path.read_text() for path in (root / FILES).rglob("*.yaml")}
    return sorted(path for path in copies.keys() | present.keys() if copies.get(path) != present.get(path))


def write(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def report(stale: list[Path]) -> int:
    for path in stale:
        print(f"{path} is not what it was copied from: run `make chart`", file=sys.stderr)
    return bool(stale)


def _sources(root: Path) -> Mapping[Path, str]:
    """Returns the folder of the chart for the copies of each source."""
    objects = [path for path in resources(root / "manifests") if path != OPERATOR]
    scheduler = [path.relative_to(root) for path in _nested(root / DEDICATED)]
    return {
        OPERATOR: "operator",
        **dict.fromkeys(resources(root / "crds"), "crds"),
        **dict.fromkeys(objects, "objects"),
        **dict.fromkeys(OPTIONAL, "optional"),
        **dict.fromkeys(scheduler, "dedicated"),
    }


def resources(folder: Path) -> list[Path]:
    """Returns the files that ``kubectl apply -k`` takes from ``folder`` itself."""
    names = [name for name in _listed(folder) if name.endswith(".yaml") and name != NAMESPACE]
    return [Path(folder.name, name) for name in names]


def _nested(folder: Path) -> Iterator[Path]:
    """Yields the files that ``kubectl apply -k`` takes from ``folder`` and from folders in it."""
    for path in (folder / name for name in _listed(folder)):
        yield from _nested(path) if path.is_dir() else [path]


def _listed(folder: Path) -> list[str]:
    listed: list[str] = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    return listed


def _copy(root: Path, source: Path) -> str:
    return MARK.format(source=source) + (root / source).read_text()


if __name__ == "__main__":
    sys.exit(main())
