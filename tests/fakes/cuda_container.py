"""Containers that are given the hook: namespaces of their own, with the mounts that the plugin answers."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.cuda_driver import CudaDriver
from tests.fakes.cuda_user import User

MIB = 2**20
IDENTITY = "0123456789abcdef0123456789abcdef"
CONTEXT_MEMORY = 600 * MIB
"""The default of the policy's ``contextMemory``."""
PRELOAD = "/opt/gpushare/lib/libgpushare-cuda.so"
DEADLINE = 30.0
KEPT_OF_ETC = ("passwd", "group", "nsswitch.conf")


@dataclass(slots=True)
class Container:
    """Namespaces for mounts and PIDs. ``folder`` is its own, and stays when it is restarted."""

    folder: Path
    driver: CudaDriver
    hook: bytes | None
    """The library; None: a container without isolation."""
    limits: Mapping[str, int]
    """UUID -> bytes."""
    programs: Path
    """A folder with the users' programs."""
    identity: str = IDENTITY
    context: int = CONTEXT_MEMORY
    group: int = 0
    """Under which the driver counts what its processes have."""
    own_limits: str | None = None
    """The file of limits, where it is not what the plugin writes."""
    shm_options: str | None = None
    """Of a file system that is mounted on /dev/shm; None: ``shm``, which survives a restart."""
    has_proc: bool = True
    pod_shm: Path | None = None
    """The folder of a pod whose containers share it; None: one of its own."""
    _holder: "subprocess.Popen[str] | None" = field(default=None, repr=False)
    _users: "list[User]" = field(default_factory=list, repr=False)

    @property
    def shm(self) -> Path:
        return self.pod_shm or self.folder / "shm"

    @property
    def ledger(self) -> Path:
        return self.shm / f".gpushare-{self.identity}"

    def start(self) -> None:
        self._write_files()
        unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        command = [*unshare, *rights, "sh", "-ec", self._mounts()]
        self._holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n", "the container's mounts failed"

    def _mounts(self) -> str:
        shm = f"mount --bind {self.shm} /dev/shm"
        if self.shm_options is not None:
            shm = f"mount -t tmpfs -o {self.shm_options} none /dev/shm"
        return f"""
            mount --bind {self.folder}/etc /etc
            mount --bind {self.folder}/opt /opt
            {shm}
            {"" if self.has_proc else "mount -t tmpfs none /proc"}
            echo ready
            exec cat
        """

    def _write_files(self) -> None:
        etc, opt = self.folder / "etc", self.folder / "opt/gpushare/lib"
        for folder in (etc / "gpushare", opt, self.shm):
            folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.shm.chmod(0o1777)
        for name in KEPT_OF_ETC:
            with suppress(FileNotFoundError):
                shutil.copy(Path("/etc", name), etc / name)
        conf = etc / "ld.so.conf"
        conf.write_text(f"{Path('/etc/ld.so.conf').read_text()}{self.driver.folder}\n")
        ldconfig = shutil.which("ldconfig", path=f"{os.environ['PATH']}:/sbin:/usr/sbin")
        assert ldconfig, "no ldconfig"
        subprocess.run(
            [ldconfig, "-X", "-f", conf, "-C", etc / "ld.so.cache"], check=True, stderr=subprocess.DEVNULL
        )
        if self.hook is not None:
            (opt / Path(PRELOAD).name).write_bytes(self.hook)
            (etc / "ld.so.preload").write_text(f"{PRELOAD}\n")
            (etc / "gpushare/limits").write_text(self._limits())

    def _limits(self) -> str:
        if self.own_limits is not None:
            return self.own_limits
        lines = [f"container {self.identity}", f"context {self.context}"]
        return "".join(
            f"{line}\n" for line in [*lines, *(f"{uuid} {size}" for uuid, size in self.limits.items())]
        )

    def command(self, program: Sequence[str | Path], *, uid: int = 0) -> list[str]:
        """Returns the command that runs a program in here."""
        rights = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        user = ["--setuid", str(uid), "--setgid", str(uid)] if uid else []
        enter = ["nsenter", "--target", str(self._first_pid()), "--mount", "--pid", *rights, *user, "--"]
        return [*enter, *map(str, program)]

    def user(
        self,
        way: str = "dlsym",
        *,
        uid: int = 0,
        environment: Mapping[str, str] | None = None,
        wrapped_in: Iterable[str] = (),
        program: Sequence[str | Path] | None = None,
    ) -> User:
        """Starts a program that uses the driver in this way: see ``cuda/users``."""
        chosen = program if program is not None else self._program(way)
        command = self.command([*wrapped_in, *chosen], uid=uid)
        variables = {"CUDA_STUB_GROUP": str(self.group), "PATH": os.environ["PATH"], **(environment or {})}
        user = User.start(command, variables)
        self._users.append(user)
        return user

    def _program(self, way: str) -> list[str | Path]:
        if way == "ctypes":
            return [sys.executable, self.programs / "user.py"]
        if way in ("linked", "static"):
            return [self.programs / way]
        if way == "plugin":
            return [self.programs / "user", way, self.programs / way]
        return [self.programs / "user", way]

    def _first_pid(self) -> int:
        assert self._holder is not None
        pid = self._holder.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def stop(self) -> None:
        """Kills everything in here, as the end of its first process does."""
        if self._holder is None:
            return
        with suppress(ProcessLookupError, IndexError):
            os.kill(self._first_pid(), signal.SIGKILL)
        for user in self._users:
            user.process.send_signal(signal.SIGCONT)  # what entered it for the program may be stopped
        self._holder.communicate(timeout=DEADLINE)
        for user in self._users:
            user.end()
        self._users.clear()
        self._holder = None

    def restart(self) -> None:
        """A new PID namespace; /dev/shm is the pod's, and stays."""
        self.stop()
        self.start()
