"""An OCI runtime that adds the hook of ``toolkit_hook.py`` to containers with NVIDIA's cards, and calls runc.

So does the runtime of NVIDIA's container toolkit. Beside this one lie ``runc.real``, ``toolkit_hook.py`` and
``toolkit.json``, which says where the driver's library is; without it nothing is added, as by an older one.
A container's cards are those that its variable ``NVIDIA_VISIBLE_DEVICES`` names by UUID.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OWN = Path(__file__).resolve().parent
VARIABLE = "NVIDIA_VISIBLE_DEVICES="


def main(arguments: Sequence[str]) -> None:
    if "create" in arguments and (OWN / "toolkit.json").exists():
        add_hook(Path(arguments[arguments.index("--bundle") + 1]) / "config.json")
    os.execv(OWN / "runc.real", ["runc", *arguments])  # noqa: S606 - no shell is wanted


def add_hook(path: Path) -> None:
    config = json.loads(path.read_text())
    if cards := cards_of(config):
        library = json.loads((OWN / "toolkit.json").read_text())
        config.setdefault("hooks", {}).setdefault("createRuntime", []).append(hook(cards, **library))
        path.write_text(json.dumps(config))


def cards_of(config: Any) -> list[str]:
    named = [pair for pair in config["process"].get("env", ()) if pair.startswith(VARIABLE)]
    words = named[-1].removeprefix(VARIABLE).split(",") if named else []
    return [word for word in words if word.startswith("GPU-")]


def hook(cards: Sequence[str], *, library: str, cgroups: str) -> Any:
    command = [sys.executable, str(OWN / "toolkit_hook.py"), "--library", library, "--cgroups", cgroups]
    return {"path": sys.executable, "args": [*command, *(f"--gpu-id={card}" for card in cards)]}


if __name__ == "__main__":
    main(sys.argv[1:])
