"""A control-plane node below a temporary folder, whose kube-scheduler restarts when its manifest changes."""

import errno
import functools
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml
from tests.fakes.hostctl_prober import SleepClock
from tests.fakes.power_loss import PowerLossError
from tests.samples.hostctl import EXTENDER, NOBODY_LISTENS, PATHS, TOO_SLOW, serving

from gpushare_core.text.json_object import Json
from gpushare_hostctl import install, mutual_tls, restore
from gpushare_hostctl.decide.run.restart_detector import ProbeResult
from gpushare_hostctl.decide.run.snapshot import File
from gpushare_hostctl.decide.run.status import read_status
from gpushare_hostctl.decide.scheduler import manifest
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.scheduler.key_pairs import Keys
from gpushare_hostctl.decide.scheduler.scheduler_config import EngineEntry
from gpushare_hostctl.host.extender_probe import Answer, ExtenderProbe
from gpushare_hostctl.host.files import HostFiles
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.host.scheduler_waiter import SchedulerWaiter
from gpushare_hostctl.mutual_tls import MutualTls
from gpushare_hostctl.report import Report

OWN_CONFIG = b"""# ours
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
percentageOfNodesToScore: 50
"""
"""What the node's owner has in OWN_CONFIG_PATH."""

OWN_CONFIG_PATH = "etc/kubernetes/own/scheduler.yaml"


@functools.cache
def _file_in_use(content: bytes) -> str:
    scheduler = manifest.parse(content)
    return manifest.host_path(scheduler, scheduler.config).lstrip("/") if scheduler.config else "etc"


@dataclass
class FakeScheduler:
    """The kubelet and kube-scheduler of the node in one: a new manifest is a new process.

    The process of a manifest that ``fails``, or whose configuration file is missing, never serves.
    """

    root: Path
    fails: Callable[[bytes], bool] = lambda content: False  # noqa: ARG005
    interrupt_at: int | None = None
    before_probe: Callable[[], None] = lambda: None
    """What somebody else does on the host at the same time; called before each probe."""
    has_stuck_kubelet: bool = False
    too_slow: Collection[int] = ()
    """Numbers of the probes that get no answer in time."""
    process: int = 0
    running: bytes = b""
    probes: int = 0
    starting: int = 0

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult:  # noqa: ARG002
        self.probes += 1
        if self.probes == self.interrupt_at:
            raise PowerLossError
        self.before_probe()
        if not self.has_stuck_kubelet:
            self._follow_manifest()
        if self.probes in self.too_slow:
            return TOO_SLOW
        if self.starting or not self._works():
            self.starting = max(0, self.starting - 1)
            return NOBODY_LISTENS
        return serving(f"process {self.process}")

    def _follow_manifest(self) -> None:
        content = (self.root / PATHS.manifest.lstrip("/")).read_bytes()
        if content != self.running:
            self.running = content
            self.restart()

    def restart(self) -> None:
        """Ends the process, and starts another one with the manifest that the kubelet saw last."""
        self.starting = 2
        self.process += 1
        config = self.root / _file_in_use(self.running)
        if config.is_file():
            config.read_bytes()

    def _works(self) -> bool:
        return (self.root / _file_in_use(self.running)).exists() and not self.fails(self.running)


class FillingHostFiles(HostFiles):
    """Files of a host whose disk accepts no byte once it is ``full``."""

    full = False

    def stage(self, path: str, file: File, *, like: str) -> None:
        self._check()
        super().stage(path, file, like=like)

    def _check(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")


@dataclass
class FakeExtender:
    """Responses at the extender's address, from a script; the last one is repeated."""

    answers: list[Answer] = field(default_factory=lambda: ["ready"])
    asked: list[str] = field(default_factory=list)

    def probe(self, url: str, keys: Keys) -> ExtenderProbe:  # noqa: ARG002
        self.asked.append(url)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return ExtenderProbe(answer, "as the script says")


@dataclass
class FakeNode:
    """A control-plane node below a temporary folder."""

    root: Path
    original: bytes
    scheduler: FakeScheduler = field(init=False)
    is_stopped: bool = False
    """Whether hostctl got a signal to end."""
    timeout: float = 30.0
    extender: FakeExtender = field(default_factory=lambda: FakeExtender())
    upgraded: bool = False
    """Whether somebody else has written the manifest."""
    now: datetime = datetime(2026, 11, 21, tzinfo=UTC)

    def __post_init__(self) -> None:
        self.manifest_path.parent.mkdir(parents=True)
        self.write(self.original)
        self.scheduler = FakeScheduler(self.root, running=self.original)
        config = self.root / OWN_CONFIG_PATH
        config.parent.mkdir()
        config.write_bytes(OWN_CONFIG)

    @property
    def manifest_path(self) -> Path:
        return self.root / PATHS.manifest.lstrip("/")

    @property
    def folder(self) -> Path:
        return self.root / PATHS.folder.lstrip("/")

    @property
    def content(self) -> bytes:
        return self.manifest_path.read_bytes()

    @property
    def configuration(self) -> Json:
        """What kube-scheduler reads; empty where it runs by its flags."""
        scheduler = manifest.parse(self.content)
        if scheduler.config is None:
            return {}
        file = self.root / manifest.host_path(scheduler, scheduler.config).lstrip("/")
        document: Json = yaml.safe_load(file.read_bytes())
        return document

    @property
    def extenders(self) -> list[str]:
        """URLs of the extenders that the configuration in use names."""
        return [entry["urlPrefix"] for entry in self.configuration.get("extenders", [])]

    @property
    def plugins(self) -> list[str]:
        """Names of what comes first in ``filter``, in each profile of the configuration in use."""
        profiles = self.configuration.get("profiles", [])
        return [profile["plugins"]["filter"]["enabled"][0]["name"] for profile in profiles]

    @property
    def state(self) -> str:
        return read_status(self.connected().snapshot()).state

    def write(self, content: bytes) -> None:
        self.manifest_path.write_bytes(content)
        self.manifest_path.chmod(0o600)

    def write_anew(self, content: bytes) -> None:
        """As kubeadm does: a file written elsewhere and moved into the manifest's place."""
        newer = self.root / "etc/kubernetes/newer"
        newer.write_bytes(content)
        newer.chmod(0o600)
        newer.replace(self.manifest_path)

    def edit(self, old: bytes, new: bytes) -> None:
        assert old in self.content
        self.write(self.content.replace(old, new))

    def connected(self, files: HostFiles | None = None) -> ControlPlaneNode:
        """What hostctl works with on this node."""
        clock = SleepClock()
        waiter = SchedulerWaiter(
            prober=self.scheduler,
            clock=clock.read,
            sleep=clock.sleep,
            timeout=self.timeout,
            is_stopped=lambda: self.is_stopped,
        )
        return ControlPlaneNode(files=files or HostFiles(self.root), paths=PATHS, waiter=waiter)

    def install(
        self,
        engine: EngineEntry = EXTENDER,
        *,
        files: HostFiles | None = None,
        rolled_back_inputs: str | None = None,
    ) -> Report:
        node = self.connected(files)
        return install.run(node, engine, self.mutual_tls, rolled_back_inputs=rolled_back_inputs)

    def make_keys(self) -> Report:
        return mutual_tls.run(self.connected(), self.mutual_tls)

    @property
    def mutual_tls(self) -> MutualTls:
        return MutualTls(now=lambda: self.now, group=os.getgid(), prober=self.extender)

    def restore(self, *, files: HostFiles | None = None) -> Report:
        return restore.run(self.connected(files))

    def assert_untouched(self) -> None:
        assert self.content == self.original
        assert self.manifest_path.stat().st_mode & 0o777 == 0o600
        assert not self.folder.exists()
        assert [path.name for path in self.manifest_path.parent.iterdir()] == ["kube-scheduler.yaml"]
