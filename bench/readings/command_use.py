"""Runs a command some times, one after the other, and prints as JSON what each run took.

``python -m bench.readings.command_use RUNS COMMAND [ARGUMENT ...]``. In a process of its own, which is small:
what the kernel says of the memory of a process begins with that of the one that started it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any


def run(command: Sequence[str]) -> dict[str, Any]:
    """``seconds`` from start to end and of processor, MiB resident at most, bytes printed, and the last line
    on stderr."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as printed, process.stderr as errors:
        length = 0
        while chunk := printed.read(2**16):
            length += len(chunk)
        last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "seconds": time.perf_counter() - begun,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss / 1024,
        "printed": length,
        "status": process.returncode,
        "error": last,
    }


if __name__ == "__main__":
    runs, *command = sys.argv[1:]
    print(json.dumps({"runs": [run(command) for _ in range(int(runs))]}))
