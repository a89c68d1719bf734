"""The first process of the plugin's container: it starts the plugin, and ends it when it hangs.

A kubelet waits for a device plugin without a deadline, in the loop that starts every pod of the node and acts
upon failed probes. So another process has to end a plugin that hangs. It is process 1 of the container, which
cannot be killed from within.

The plugin writes a byte while its event loop turns and its gRPC services answer (``heartbeat``), and gets one
back. If the watchdog hangs, the plugin's liveness probe fails, and the kubelet starts the container anew:
nothing keeps it waiting then. If both are stopped, nothing in the container can help.

Nothing is imported that is not needed: this process costs memory on every node.
"""

import os
import signal
import sys
import time
from contextlib import suppress

TICK = 1.0
"""Seconds between two looks."""
MAX_TICK = 2.0
"""Seconds that one look counts for at most: after the whole container stood still the plugin needs time."""
SILENT_AFTER = 12.0
"""Seconds without a sign after which the plugin is ended."""
START_SECONDS = 60.0
"""Seconds until the first sign: the plugin imports its modules, and no kubelet knows it yet."""

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
KILLED = 128
"""Exit status of a process that a signal ended, less the signal's number, as in shells."""
TERMINATION_LOG = "/dev/termination-log"
"""Kubernetes shows its text as the message of the container that ended."""

_PR_SET_PDEATHSIG = 1
"""Source: ``linux/prctl.h``."""


def main() -> None:
    """Returns never: this process and the plugin end with the same status."""
    (beats, beat), (echoes, echo) = os.pipe(), os.pipe()
    watchdog, mask = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *FORWARDED})
    plugin = os.fork()
    if plugin:
        os.close(beat)
        os.close(echoes)
        sys.exit(watch(plugin, beats=beats, echo=echo))
    os.close(beats)
    os.close(echo)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    end_with(watchdog)
    run_plugin(beat=beat, echoes=echoes)


def run_plugin(*, beat: int, echoes: int) -> None:
    # Imported here, so that the watchdog has none of it.
    from gpushare_plugin.heartbeat import Watchdog
    from gpushare_plugin.main import main as plugin

    plugin(Watchdog(beat, echoes))


def end_with(parent: int) -> None:
    """Has the kernel kill this process when ``parent`` ends: with ``hostPID`` that is not process 1."""
    import ctypes  # as in run_plugin

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def watch(plugin: int, *, beats: int, echo: int) -> int:
    """Returns the status to exit with once the process ``plugin`` has ended, by itself or because it hung.

    ``beats`` and ``echo`` are ends of pipes. Signals have to be blocked: ``sigtimedwait`` takes them.
    """
    os.set_blocking(beats, False)
    os.set_blocking(echo, False)
    before, silent, allowed = time.monotonic(), 0.0, START_SECONDS
    while (status := ended(plugin)) is None:
        received = signal.sigtimedwait({signal.SIGCHLD, *FORWARDED}, TICK)
        # After this process was stopped and continued, Python 3.11 returns an undefined one.
        if received and received.si_signo in FORWARDED:
            os.kill(plugin, received.si_signo)
        now = time.monotonic()
        silent, before = silent + min(now - before, MAX_TICK), now
        if has_beaten(beats):
            give_back(echo)
            silent, allowed = 0.0, SILENT_AFTER
        if silent >= allowed:
            end(plugin, silent)
            silent = 0.0
    return status


def ended(plugin: int) -> int | None:
    """Returns the exit status of ``plugin``, None while it runs. Process 1 has to reap orphans, too."""
    pid = -1
    while pid:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == plugin:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED - code
    return None


def has_beaten(beats: int) -> bool:
    """Returns whether the plugin gave a sign since the last look; a closed pipe is none."""
    try:
        return bool(os.read(beats, 4096))
    except BlockingIOError:
        return False


def give_back(echo: int) -> None:
    with suppress(OSError):  # the plugin does not read, or has just ended
        os.write(echo, b".")


def end(plugin: int, silent: float) -> None:
    """Kills the plugin. Writes a log line as ``gpushare_core.process.log`` does, and the container's
    termination message."""
    message = (
        f"the plugin gave no sign for {silent:.0f} s: its process, its event loop or its gRPC service hangs;"
        " it was killed and restarts, so that the kubelet does not wait for it"
    )
    os.kill(plugin, signal.SIGKILL)
    seconds, moment = int(time.time() % 1 * 1000), time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    line = f'"time": "{moment}.{seconds:03}+00:00", "level": "error", "logger": "{__name__}"'
    line += f', "message": "{message}"'
    with suppress(OSError):
        os.write(sys.stderr.fileno(), f"{{{line}}}\n".encode())
    with suppress(OSError):
        log = os.open(TERMINATION_LOG, os.O_WRONLY | os.O_TRUNC)
        os.write(log, message.encode())
        os.close(log)
