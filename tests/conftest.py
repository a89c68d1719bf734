"""How tests are spread over processes that run side by side, each with a local cluster of its own."""

import hashlib
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.fuzz.fuzzing import EXAMPLES, SECONDS
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# How long examples take says nothing where clusters run beside: only what they show is a result. Everybody
# draws the same ones, so that what is green here is green elsewhere; `make fuzz` looks for others.
settings.register_profile(
    "property tests", deadline=None, derandomize=not EXAMPLES, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("property tests")

INOTIFY_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
INSTANCES = 512
"""For all clusters together. One of four nodes takes 36, and machines usually lend 128."""

FAST_PROCESSES = ("gw0", "gw1")
"""They begin with the tests that need no cluster. Most of these wait for a process of their own, so that two
processes end sooner than one does."""
MAX_CLUSTERS = 4
"""More would not end much earlier: some modules take half of the whole time."""
MEMORY = Path("/proc/meminfo")
CLUSTER_MEMORY = 3 << 30
"""Bytes for a process: twice a cluster, as a module may have one of its own beside the one that is shared."""
OWN_MEMORY = 2 << 30
"""Bytes for everything else."""

FIRST = (
    "test_scheduler_reconnection",
    "test_lifecycle",
    "test_admission_limits",
    "test_chaos",
    "test_control_planes",
    "test_scheduler_engine",
    "test_isolation_hook",
    "test_burst",
    "test_chart",
    "test_kubernetes_upgrade",
    "test_backends",
    "test_cdi",
    "test_image",
    "test_isolation_excess",
    "test_isolation_driver",
    "test_modes_and_dialects",
    "test_dedicated",
    "test_dedicated_engine",
    "test_localcluster",
    "test_interruptions",
    "test_second_control_plane",
    "test_scheduler_connection",
    "test_dialects",
    "test_upgrade",
    "test_replaced_system",
    "test_nodes",
    "test_operator_replicas",
    "test_hanging_plugin",
    "test_dialect_scenarios",
    "test_isolation_evict",
    "test_cli_undo",
    "test_cli_simulate",
    "test_inventory",
    "test_audit",
    "test_preemption",
    "test_cli_isolation",
    "test_cli_status",
    "test_client",
    "test_cli_preflight",
    "test_cli_viewer",
    "test_scenario",
    "test_told_pods",
    "test_amounts",
    "test_manifests",
    "test_card_health",
)
"""Modules begun first: a process that begins a long one last keeps everybody waiting. Those that wait most
come in turns with those that compute most. Those without the mark ``connected`` come early, as a process
waits for kube-scheduler where it changes from one kind to the other."""

LONG_WITHOUT_CLUSTER = ("test_go", "test_power_loss", "test_convergence", "test_bursts", "test_program")
"""Modules that the process of the fast tests begins with, so that none of them is left over at the end. Those
that compute come first: at the beginning the processes with clusters wait."""

SECOND_CLUSTER = frozenset(
    {
        "test_interruptions",
        "test_lifecycle",
        "test_second_control_plane",
        "test_scheduler_connection",
        "test_scheduler_reconnection",
    }
)
"""Where the machine lends no more instances than for two clusters: modules that take about as long as all
others with a cluster together."""


class ModuleScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Keeps a module in one process: its tests share a policy. ``--dist=loadfile`` would begin with the
    modules of many tests, and those are the fast ones."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Fast processes begin with the fast tests, at the end of the queue: they compute while the others,
        with their clusters, wait."""
        if node.gateway.id in FAST_PROCESSES:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """A process is given its next module as late as it can do with: until then another one may be free
        for it."""
        if self.workqueue and self._pending_of(self.assigned_work[node]) > 1:
            return
        super()._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        module, _, _ = nodeid.partition("::")
        if not _is_end_to_end(module) or _instances() >= INSTANCES:
            return module
        return "second cluster" if Path(module).stem in SECOND_CLUSTER else "first cluster"


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """As many clusters side by side as the machine's memory allows: they wait more than they compute.

    With ``logical`` as many processes as processors.
    """
    if config.option.numprocesses == "logical":
        return None
    with_cluster = (_available_memory() - OWN_MEMORY) // CLUSTER_MEMORY
    return len(FAST_PROCESSES) + min(max(with_cluster, 1), MAX_CLUSTERS)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    config.option.loadscopereorder = False
    return ModuleScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not hasattr(config, "workerinput"):
        return
    if EXAMPLES:
        # Whatever the time ends, it is not always the same tests that it leaves out.
        run = config.workerinput["testrunuid"]
        items.sort(key=lambda item: hashlib.sha256(f"{run}{item.path}".encode()).digest())
    else:
        items.sort(key=lambda item: _turn(item.path))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    session.config.stash[_BEGUN] = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() - item.config.stash[_BEGUN] > SECONDS:
        pytest.skip("the time of this run is over")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Lends the clusters what they need, where this is allowed, before the first of them starts."""
    if getattr(session.config.option, "numprocesses", None):
        session.config.stash[_BEFORE] = _instances()
        _lend(max(INSTANCES, _instances()))


def pytest_unconfigure(config: pytest.Config) -> None:
    if before := config.stash.get(_BEFORE, None):
        _lend(before)


_BEFORE = pytest.StashKey[int]()
_BEGUN = pytest.StashKey[float]()


def _is_end_to_end(module: str) -> bool:
    return "tests/e2e/" in module


def _turn(path: Path) -> int:
    if not _is_end_to_end(str(path)):
        return len(FIRST) + (2 if path.stem in LONG_WITHOUT_CLUSTER else 1)
    return FIRST.index(path.stem) if path.stem in FIRST else len(FIRST)


def _available_memory() -> int:
    """Bytes that programs can have without anything being swapped out."""
    lines = MEMORY.read_text().splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return int(kibibytes) * 1024


def _instances() -> int:
    return int(INOTIFY_INSTANCES.read_text())


def _lend(instances: int) -> None:
    try:
        INOTIFY_INSTANCES.write_text(str(instances))
    except OSError:  # then two clusters have to do
        return
