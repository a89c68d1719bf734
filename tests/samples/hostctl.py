"""Manifests, snapshots, plans and probes for hostctl's tests, short to write."""

from pathlib import Path

from gpushare_hostctl.decide.run import plan
from gpushare_hostctl.decide.run.plan import InstallPlan
from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.decide.run.record import FILE_NAME, InstallationRecord
from gpushare_hostctl.decide.run.restart_detector import ProbeResult
from gpushare_hostctl.decide.run.snapshot import File, HostPaths, HostSnapshot
from gpushare_hostctl.decide.scheduler.extender_entry import ExtenderEntry
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.scheduler.plugin_entry import PluginEntry
from gpushare_hostctl.decide.scheduler.scheduler_config import EngineEntry

DATA = Path(__file__).parents[1] / "data" / "hostctl"

KUBEADM = (DATA / "kubeadm-kube-scheduler.yaml").read_bytes()
"""kube-scheduler.yaml as kubeadm writes it."""

WITH_CONFIG = (
    KUBEADM.replace(b"- --leader-elect=true", b"- --config=/config/scheduler.yaml")
    .replace(b"    volumeMounts:\n", b"    volumeMounts:\n    - {name: config, mountPath: /config}\n")
    .replace(b"  volumes:\n", b"  volumes:\n  - {name: config, hostPath: {path: /etc/kubernetes/own}}\n")
)
"""The same with a configuration file, on the host in /etc/kubernetes/own."""

CONFIG_HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

PATHS = HostPaths(manifest="/etc/kubernetes/manifests/kube-scheduler.yaml", folder="/etc/kubernetes/ours")
EXTENDER = ExtenderEntry(url="http://127.0.0.1:32766", managed_resources=("gpushare.io/memory",))
PLUGIN = PluginEntry(
    lease_namespace="gpushare-system",
    resources=("gpushare.io/memory",),
    weight=5,
    image="gpushare-scheduler:0.1.0-1.36",
)
ENDPOINT = HealthEndpoint(host="127.0.0.1", port=10259, path="/readyz", lasting_certificate=False)
NOBODY_LISTENS = ProbeResult(
    serving=False, detail="Connection refused", process=ProcessIdentity(sockets=()), refused=True
)
TOO_SLOW = ProbeResult(serving=False, detail="The read operation timed out")
"""A probe of a busy node."""


def process(certificate: str | None = None, *sockets: int) -> ProcessIdentity:
    """A process by its certificate, its listening sockets, or both."""
    return ProcessIdentity(sockets=sockets or None, certificate=certificate)


def serving(certificate: str, *sockets: int) -> ProbeResult:
    """A probe of a process that is ready."""
    return ProbeResult(serving=True, detail="HTTP 200", process=process(certificate, *sockets))


def starting(certificate: str, *sockets: int) -> ProbeResult:
    """A probe of a process that answers but is not ready."""
    return ProbeResult(serving=False, detail="HTTP 500", process=process(certificate, *sockets))


def file(content: bytes, *, mode: int = 0o600) -> File:
    """A file of root's."""
    return File(content=content, mode=mode, uid=0, gid=0)


def snapshot_of(manifest: bytes | None, **files: File) -> HostSnapshot:
    """A host with this manifest and these files in our folder."""
    return HostSnapshot(paths=PATHS, manifest=file(manifest) if manifest else None, files=files)


FRESH = snapshot_of(KUBEADM)
"""A host that hostctl never touched."""


def planned(snapshot: HostSnapshot, engine: EngineEntry = EXTENDER) -> InstallPlan:
    """The plan to install ``engine`` where the scheduler has no configuration file."""
    return plan.install(snapshot, source=None, engine=engine)


def performed(install_plan: InstallPlan, *, stored: InstallationRecord | None = None) -> HostSnapshot:
    """The host after a plan, or with another record than the plan's."""
    files = {
        install_plan.backup_name: install_plan.base,
        install_plan.config_name: install_plan.config,
        FILE_NAME: file((stored or install_plan.record).encode()),
    }
    return HostSnapshot(paths=PATHS, manifest=install_plan.manifest, files=files)
