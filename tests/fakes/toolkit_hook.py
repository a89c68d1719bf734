"""An OCI hook that limits a container by variables in its environment, for ``createRuntime``.

It does as the hook ``apply-cuda-memory-limits`` of NVIDIA's container toolkit.

    python3 toolkit_hook.py --library FILE --gpu-id UUID [--gpu-id UUID] < STATE

An error ends it with status 1, and then the runtime does not start the container. It needs nothing but
Python's own library: a runtime calls it outside of any environment.
"""

import argparse
import ctypes
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LIMIT, REQUEST = "NVIDIA_GPU_MEMORY_LIMIT", "NVIDIA_GPU_MEMORY_REQUEST"
MIB = 2**20
UNLIMITED = 2**64 - 1


class HookError(Exception):
    """The message is what the runtime shows."""


class _Limits(ctypes.Structure):
    """``nvmlSetMemoryLimits_v1_t``."""

    _fields_ = (
        ("cgroup", ctypes.c_char_p),
        ("soft", ctypes.c_ulonglong),
        ("hard", ctypes.c_ulonglong),
    )


def set_limits(library: Path, cgroup: Path, cards: Sequence[str], *, hard: int, soft: int = 0) -> None:
    """Sets limits in bytes on each card, by the driver's ``library``. Raises ``HookError``."""
    nvml = ctypes.CDLL(str(library))
    _check(nvml.nvmlInitWithFlags(0), "nvmlInit")
    try:
        for card in cards:
            handle = ctypes.c_void_p()
            _check(nvml.nvmlDeviceGetHandleByUUID(card.encode(), ctypes.byref(handle)), f"handle of {card}")
            limits = _Limits(os.fsencode(cgroup), soft, hard)
            _check(nvml.nvmlDeviceSetMemoryLimits_v1(handle, ctypes.byref(limits)), f"limits of {card}")
    finally:
        nvml.nvmlShutdown()


def _check(code: int, what: str) -> None:
    if code:
        raise HookError(f"{what}: NVML error {code}")


def limits_of(variables: Mapping[str, str]) -> tuple[int, int] | None:
    """Returns the soft and the hard limit in bytes, or None where none is asked for. Raises ``HookError``."""
    if LIMIT not in variables and REQUEST not in variables:
        return None
    hard = _bytes(variables[LIMIT]) if LIMIT in variables else UNLIMITED
    soft = _bytes(variables[REQUEST]) if REQUEST in variables else hard
    if soft > hard:
        raise HookError(f"memory request {soft} exceeds memory limit {hard}")
    return soft, hard


def _bytes(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) * MIB > UNLIMITED:
        raise HookError(f"{text!r} is no amount in MiB")
    return int(text) * MIB


def apply(state: str, library: Path, cards: Sequence[str], *, cgroups: Path, proc: Path) -> None:
    """``state``: of the container, as the OCI runtime gives it to a hook. Raises ``HookError``."""
    container = json.loads(state)
    config = json.loads((Path(container["bundle"]) / "config.json").read_text())
    # Of a variable that is there twice the last one counts.
    variables = dict(pair.split("=", 1) for pair in config["process"].get("env", ()) if "=" in pair)
    limits = limits_of(variables)
    if limits is None:
        return
    if not (cgroups / "cgroup.controllers").exists():
        raise HookError("setting GPU memory limits is only supported in cgroup v2")
    soft, hard = limits
    lines = (proc / str(container["pid"]) / "cgroup").read_text().splitlines()
    path = next(line.removeprefix("0::") for line in lines if line.startswith("0::"))
    set_limits(library, cgroups / path.lstrip("/"), cards, soft=soft, hard=hard)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--gpu-id", action="append", required=True)
    parser.add_argument("--cgroups", type=Path, default=Path("/sys/fs/cgroup"))
    parser.add_argument("--proc", type=Path, default=Path("/proc"))
    options = parser.parse_args()
    try:
        state, cards = sys.stdin.read(), options.gpu_id
        apply(state, options.library, cards, cgroups=options.cgroups, proc=options.proc)
    except HookError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
