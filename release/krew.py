"""The manifest with which krew, kubectl's plugin manager, installs the client. Pure.

Source of the format: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
"""

from dataclasses import dataclass
from typing import Any

import yaml

HEAD = "# kubectl krew install --manifest=gpushare.yaml --archive={archive}\n"
DESCRIPTION = """\
Which pods hold which units of which GPU card, why a pod waits, and what would fit, on clusters whose cards
are shared by gpushare.
"""
CAVEATS = """\
kubectl completes its commands once kubectl_complete-gpushare is in PATH:
  program=$(readlink -f "$(command -v kubectl-gpushare)")
  ln -s "$(dirname "$program")/kubectl_complete-gpushare" ~/.local/bin/
"""


class _Dumper(yaml.SafeDumper):
    """Writes lines as lines."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KrewArchive:
    """An archive that was built, for one system."""

    uri: str
    sha256: str
    system: str
    architecture: str
    program: str
    """Its path in the archive."""


def krew_manifest(version: str, archive: KrewArchive) -> str:
    """Returns YAML. It names no system but that of ``archive``: krew refuses the others by name."""
    head = HEAD.format(archive=archive.uri.rpartition("/")[2])
    return head + yaml.dump(_plugin(version, archive), Dumper=_Dumper, sort_keys=False)


def _plugin(version: str, archive: KrewArchive) -> dict[str, Any]:
    selector = {"matchLabels": {"os": archive.system, "arch": archive.architecture}}
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "gpushare"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Who holds which GPU card, and why a pod waits",
            "description": DESCRIPTION,
            "caveats": CAVEATS,
            "platforms": [
                {
                    "selector": selector,
                    "uri": archive.uri,
                    "sha256": archive.sha256,
                    "files": [{"from": "*", "to": "."}],
                    "bin": archive.program,
                }
            ],
        },
    }
