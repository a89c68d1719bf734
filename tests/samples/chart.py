"""The chart, rendered by real Helm."""

import functools
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from gpushare_core.text.json_object import Json
from gpushare_localcluster.build.modules import ensure_helm
from gpushare_localcluster.cluster import to_stderr

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "gpushare"
SYSTEM = "gpushare-system"
KUBERNETES = "1.36.3"
POINTING_PODS = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
"""What a server has that can point pods at a scheduler; Helm by itself takes it for one that cannot."""


class HelmError(Exception):
    """Helm failed; the text is what it printed."""


@functools.cache
def helm() -> Path:
    """The program, built if it is not there."""
    return ensure_helm(report=to_stderr)


def run_helm(*arguments: str, env: dict[str, str] | None = None, timeout: float = 60.0) -> str:
    """Returns its output."""
    return _run(arguments, env, timeout).stdout


def run_helm_aloud(*arguments: str, env: dict[str, str] | None = None, timeout: float = 60.0) -> str:
    """Returns all that it prints: the logs of hooks are among the errors."""
    done = _run(arguments, env, timeout)
    return done.stdout + done.stderr


def _run(
    arguments: Sequence[str], env: dict[str, str] | None, timeout: float
) -> "subprocess.CompletedProcess[str]":
    command = [str(helm()), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=env)
    if done.returncode != 0:
        raise HelmError(done.stdout + done.stderr)
    return done


def as_arguments(values: Json) -> list[str]:
    return [part for name, value in values.items() for part in ("--set-json", f"{name}={json.dumps(value)}")]


def render(*, namespace: str = SYSTEM, served: str = POINTING_PODS, **values: Any) -> list[Json]:
    """All objects, hooks among them, with ``values`` over those of the chart, for a server that has the API
    ``served``."""
    arguments = ["template", "gpushare", str(CHART), "--namespace", namespace, "--kube-version", KUBERNETES]
    text = run_helm(*arguments, "--api-versions", served, *as_arguments(values))
    return [body for body in yaml.safe_load_all(text) if body]


def is_hook(body: Json) -> bool:
    return "helm.sh/hook" in body["metadata"].get("annotations", {})


def one(bodies: list[Json], kind: str, name: str) -> Json:
    (found,) = [body for body in bodies if (body["kind"], body["metadata"]["name"]) == (kind, name)]
    return found
