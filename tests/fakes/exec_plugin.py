"""Programs that log in, and kubeconfigs whose user is one of them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = "client.authentication.k8s.io/v1"


def credential(token: str = "", *, version: str = VERSION, **status: str) -> str:
    """What a plugin prints."""
    fields = {"token": token, **status} if token else status
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": fields})


def plugin(folder: Path, *lines: str) -> str:
    """Writes a program of the shell. Returns its path."""
    path = folder / "plugin"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def printing(text: str) -> str:
    """A line of the shell that prints ``text``."""
    return f"cat <<'END'\n{text}\nEND"


def kubeconfig(
    folder: Path, cluster: Mapping[str, Any], *, command: str = "", user: object = None, **config: Any
) -> Path:
    """Writes a kubeconfig whose user is the exec plugin ``command``, or ``user``."""
    plugin_config = {"apiVersion": VERSION, "command": command, "interactiveMode": "Never", **config}
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
                "clusters": [{"name": "c", "cluster": dict(cluster)}],
                "users": [{"name": "u", "user": user or {"exec": plugin_config}}],
            }
        )
    )
    return path


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
