"""install and restore on real files, beside a kube-scheduler that restarts when its manifest changes."""

import copy
import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from gpushare_hostctl import install, restore
from gpushare_hostctl.decide import manifest, plan, yamltext
from gpushare_hostctl.decide.configuration import Extender
from gpushare_hostctl.decide.endpoint import Endpoint
from gpushare_hostctl.decide.plan import Location
from gpushare_hostctl.decide.state import File
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host.files import Host
from gpushare_hostctl.host.node import Node, Outcome
from gpushare_hostctl.host.probe import Look, Waiter

KUBEADM = (Path(__file__).parents[2] / "data" / "hostctl" / "kubeadm-kube-scheduler.yaml").read_bytes()
LOCATION = Location(
    manifest="/etc/kubernetes/manifests/kube-scheduler.yaml", folder="/etc/kubernetes/gpushare"
)
EXTENDER = Extender(url="http://127.0.0.1:32766", managed_resources=("gpushare.io/memory",))
OTHER_EXTENDER = Extender(url="http://127.0.0.1:40000", managed_resources=("gpushare.io/memory",))

THEIR_CONFIG = b"""# ours
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
percentageOfNodesToScore: 50
"""
WITH_CONFIG = (
    KUBEADM.replace(b"- --leader-elect=true", b"- --config=/config/scheduler.yaml")
    .replace(b"    volumeMounts:\n", b"    volumeMounts:\n    - {name: config, mountPath: /config}\n")
    .replace(b"  volumes:\n", b"  volumes:\n  - {name: config, hostPath: {path: /etc/kubernetes/own}}\n")
)


class CrashError(Exception):
    """The process ends here, whatever it was about to do."""


# Hundreds of runs read the same few texts over and over; parsing them is most of the time.
_parse_once = functools.cache(manifest.parse)
_documents_once = functools.cache(yamltext.documents)


@pytest.fixture(autouse=True)
def parsing_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "parse", _parse_once)
    monkeypatch.setattr(yamltext, "documents", lambda text: copy.deepcopy(_documents_once(text)))


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
    process: int = 0
    running: bytes = b""
    looks: int = 0
    starting: int = 0

    def look(self, endpoint: Endpoint) -> Look:  # noqa: ARG002
        self.looks += 1
        if self.looks == self.interrupt_at:
            raise CrashError
        self._follow_manifest()
        if self.starting or not self._works():
            self.starting = max(0, self.starting - 1)
            return Look(serving=False, fingerprint=None, detail="Connection refused")
        return Look(serving=True, fingerprint=f"process {self.process}", detail="HTTP 200")

    def _follow_manifest(self) -> None:
        content = (self.root / LOCATION.manifest.lstrip("/")).read_bytes()
        if content != self.running:
            self.starting = 2
            self.running = content
            self.process += 1

    def _works(self) -> bool:
        return (self.root / _file_in_use(self.running)).exists() and not self.fails(self.running)


class CrashingHost(Host):
    """A host on which the process ends before, or in the middle of, the write with the given number."""

    def __init__(self, root: Path, *, crash_at: int, torn: bool = False) -> None:
        super().__init__(root)
        self.root = root
        self.crash_at = crash_at
        self.torn = torn
        self.writes = 0

    def make_folder(self, path: str) -> None:
        self._step()
        super().make_folder(path)

    def write(self, path: str, file: File, *, through: str) -> None:
        if self.torn and self.writes + 1 == self.crash_at:
            (self.root / through.lstrip("/") / f"{Path(path).name}.new").write_bytes(file.content[:10])
        self._step()
        super().write(path, file, through=through)

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def remove_folder(self, path: str) -> None:
        self._step()
        super().remove_folder(path)

    def _step(self) -> None:
        self.writes += 1
        if self.writes == self.crash_at:
            raise CrashError


@dataclass
class Machine:
    """A control-plane node below a temporary folder."""

    root: Path
    original: bytes
    scheduler: FakeScheduler = field(init=False)

    def __post_init__(self) -> None:
        self.manifest_path.parent.mkdir(parents=True)
        self.write(self.original)
        self.scheduler = FakeScheduler(self.root, running=self.original)
        config = self.root / "etc/kubernetes/own/scheduler.yaml"
        config.parent.mkdir()
        config.write_bytes(THEIR_CONFIG)

    @property
    def manifest_path(self) -> Path:
        return self.root / LOCATION.manifest.lstrip("/")

    @property
    def folder(self) -> Path:
        return self.root / LOCATION.folder.lstrip("/")

    @property
    def content(self) -> bytes:
        return self.manifest_path.read_bytes()

    @property
    def extenders(self) -> list[str]:
        """URLs of the extenders that the configuration in use names."""
        scheduler = manifest.parse(self.content)
        if scheduler.config is None:
            return []
        file = self.root / manifest.host_path(scheduler, scheduler.config).lstrip("/")
        return [entry["urlPrefix"] for entry in yaml.safe_load(file.read_bytes()).get("extenders", [])]

    @property
    def condition(self) -> str:
        return plan.status(self.node().snapshot())[0]

    def write(self, content: bytes) -> None:
        self.manifest_path.write_bytes(content)
        self.manifest_path.chmod(0o600)

    def edit(self, old: bytes, new: bytes) -> None:
        assert old in self.content
        self.write(self.content.replace(old, new))

    def node(self, host: Host | None = None) -> Node:
        now = [0.0]

        def sleep(seconds: float) -> None:
            now[0] += seconds

        waiter = Waiter(prober=self.scheduler, clock=lambda: now[0], sleep=sleep, timeout=5.0)
        return Node(host=host or Host(self.root), location=LOCATION, waiter=waiter)

    def install(self, extender: Extender = EXTENDER, *, host: Host | None = None) -> Outcome:
        return install.run(self.node(host), extender)

    def restore(self, *, host: Host | None = None) -> Outcome:
        return restore.run(self.node(host))

    def assert_untouched(self) -> None:
        assert self.content == self.original
        assert self.manifest_path.stat().st_mode & 0o777 == 0o600
        assert not self.folder.exists()
        assert [path.name for path in self.manifest_path.parent.iterdir()] == ["kube-scheduler.yaml"]


@pytest.fixture(params=[pytest.param(KUBEADM, id="no --config"), pytest.param(WITH_CONFIG, id="--config")])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path, request.param)


def test_install_connects_the_extender_and_restore_leaves_no_trace(machine: Machine) -> None:
    assert machine.install().result == "Installed"
    assert machine.extenders == [EXTENDER.url]
    assert machine.condition == "Installed"

    assert machine.restore().result == "Restored"
    machine.assert_untouched()
    assert machine.condition == "Absent"


def test_installing_again_writes_nothing(machine: Machine) -> None:
    machine.install()
    node = machine.node(CrashingHost(machine.root, crash_at=1))

    assert install.run(node, EXTENDER).result == "AlreadyInstalled"


def test_restoring_again_does_nothing(machine: Machine) -> None:
    machine.install()
    machine.restore()

    assert machine.restore().result == "NothingToDo"
    machine.assert_untouched()


def test_their_configuration_file_is_never_modified(machine: Machine) -> None:
    machine.install()
    machine.restore()

    assert (machine.root / "etc/kubernetes/own/scheduler.yaml").read_bytes() == THEIR_CONFIG


def test_another_url_restarts_the_scheduler_with_a_file_of_another_name(machine: Machine) -> None:
    machine.install()
    process = machine.scheduler.process

    assert machine.install(OTHER_EXTENDER).result == "Installed"
    assert machine.extenders == [OTHER_EXTENDER.url]
    assert machine.scheduler.process == process + 1
    assert len(list(machine.folder.glob("scheduler-config-*"))) == 1
    machine.restore()
    machine.assert_untouched()


def test_our_folder_is_for_root_only_and_the_backup_has_the_manifests_mode(machine: Machine) -> None:
    machine.install()

    assert machine.folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in machine.folder.glob("*.backup")] == [0o600]


def test_mode_of_the_manifest_is_kept(tmp_path: Path) -> None:
    machine = Machine(tmp_path, KUBEADM)
    machine.manifest_path.chmod(0o640)

    machine.install()
    assert machine.manifest_path.stat().st_mode & 0o777 == 0o640
    machine.restore()
    assert machine.manifest_path.stat().st_mode & 0o777 == 0o640


def test_what_others_edited_since_survives_the_restoration(machine: Machine) -> None:
    machine.install()
    machine.edit(b"v1.36.3", b"v1.36.4")
    assert machine.condition == "Drifted"

    assert machine.restore().result == "RestoredPartially"
    assert machine.content == machine.original.replace(b"v1.36.3", b"v1.36.4")
    assert not machine.folder.exists()


def test_an_upgrade_that_rewrote_the_manifest_is_edited_and_restored_as_upgraded(
    machine: Machine,
) -> None:
    machine.install()
    upgraded = machine.original.replace(b"v1.36.3", b"v1.37.0")
    machine.write(upgraded)

    assert machine.install().result == "Installed"
    assert machine.extenders == [EXTENDER.url]
    assert machine.restore().result == "Restored"
    assert machine.content == upgraded


def test_an_edit_beside_ours_is_kept_through_a_change_of_url(machine: Machine) -> None:
    machine.install()
    machine.edit(b"cpu: 100m", b"cpu: 200m")

    machine.install(OTHER_EXTENDER)
    machine.restore()

    assert machine.content == machine.original.replace(b"cpu: 100m", b"cpu: 200m")


def test_a_manifest_rewritten_without_us_is_left_so(machine: Machine) -> None:
    machine.install()
    machine.write(machine.original.replace(b"v1.36.3", b"v1.37.0"))

    assert machine.restore().result == "RestoredPartially"
    assert machine.content == machine.original.replace(b"v1.36.3", b"v1.37.0")
    assert not machine.folder.exists()


def test_a_manifest_that_is_gone_stays_gone(machine: Machine) -> None:
    machine.install()
    machine.manifest_path.unlink()

    assert machine.restore().result == "RestoredPartially"
    assert not machine.manifest_path.exists()
    assert not machine.folder.exists()
    assert machine.restore().result == "NothingToDo"


def test_a_scheduler_that_does_not_come_back_gets_its_manifest_back(machine: Machine) -> None:
    machine.scheduler.fails = lambda content: manifest.VOLUME.encode() in content

    with pytest.raises(RetryableError, match="earlier manifest is back and kube-scheduler serves again"):
        machine.install()
    machine.assert_untouched()


def test_a_new_url_that_fails_falls_back_to_the_one_before(machine: Machine) -> None:
    machine.install()
    before = machine.content
    machine.scheduler.fails = lambda content: content not in (before, machine.original)

    with pytest.raises(RetryableError, match="serves again"):
        machine.install(OTHER_EXTENDER)

    assert machine.content == before
    assert machine.extenders == [EXTENDER.url]
    assert machine.condition == "Installed"
    assert machine.restore().result == "Restored"
    machine.assert_untouched()


def test_a_scheduler_that_is_down_is_not_edited(machine: Machine) -> None:
    machine.scheduler.fails = lambda content: True  # noqa: ARG005

    with pytest.raises(RetryableError, match="nothing was changed"):
        machine.install()
    machine.assert_untouched()


def test_a_scheduler_that_stays_down_even_with_its_own_manifest_is_reported(machine: Machine) -> None:
    machine.install()
    machine.scheduler.fails = lambda content: True  # noqa: ARG005

    with pytest.raises(RetryableError, match="and still no kube-scheduler"):
        machine.install(OTHER_EXTENDER)


def test_an_installed_scheduler_that_does_not_serve_is_reported_and_left(machine: Machine) -> None:
    machine.install()
    before = machine.content
    machine.scheduler.fails = lambda content: True  # noqa: ARG005

    with pytest.raises(RetryableError, match="no kube-scheduler served"):
        machine.install()
    assert machine.content == before


def test_a_restored_scheduler_that_does_not_serve_keeps_the_backup_until_it_does(machine: Machine) -> None:
    machine.install()
    machine.scheduler.fails = lambda content: True  # noqa: ARG005

    with pytest.raises(RetryableError, match="run restore again"):
        machine.restore()
    assert machine.content == machine.original
    assert list(machine.folder.glob("*.backup"))

    machine.scheduler.fails = lambda content: False  # noqa: ARG005
    assert machine.restore().result == "Restored"
    machine.assert_untouched()


def test_a_lost_record_does_not_lose_the_manifest(tmp_path: Path) -> None:
    machine = Machine(tmp_path, KUBEADM)
    machine.install()
    (machine.folder / "state.json").unlink()
    assert machine.condition == "Drifted"

    assert machine.restore().result == "RestoredPartially"
    machine.assert_untouched()


def test_a_folder_removed_by_hand_is_made_good_by_installing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, KUBEADM)
    machine.install()
    for path in machine.folder.iterdir():
        path.unlink()
    machine.folder.rmdir()

    assert machine.install().result == "Installed"
    assert machine.condition == "Installed"
    assert machine.restore().result == "Restored"
    machine.assert_untouched()


def test_a_damaged_backup_is_not_written_back(machine: Machine) -> None:
    machine.install()
    next(machine.folder.glob("*.backup")).write_bytes(b"kind: Nonsense\n")

    assert machine.restore().result == "RestoredPartially"
    machine.assert_untouched()


def test_a_configuration_edited_by_hand_is_written_anew_under_another_name(machine: Machine) -> None:
    machine.install()
    config = next(machine.folder.glob("scheduler-config-*"))
    config.write_bytes(config.read_bytes() + b"parallelism: 1\n")
    process = machine.scheduler.process
    assert machine.condition == "Drifted"

    assert machine.install().result == "Installed"
    assert machine.condition == "Installed"
    assert machine.scheduler.process == process + 1
    assert not config.exists()


def test_a_change_of_their_configuration_is_taken_over(tmp_path: Path) -> None:
    machine = Machine(tmp_path, WITH_CONFIG)
    machine.install()
    source = machine.root / "etc/kubernetes/own/scheduler.yaml"
    source.write_bytes(THEIR_CONFIG.replace(b"50", b"70"))

    assert machine.install().result == "Installed"
    config = yaml.safe_load(next(machine.folder.glob("scheduler-config-*")).read_bytes())
    assert config["percentageOfNodesToScore"] == 70


@pytest.mark.parametrize(
    ("original", "said"),
    [
        pytest.param(b"kind: ConfigMap\n", "not a Pod", id="no pod"),
        pytest.param(
            KUBEADM.replace(b"hostNetwork: true", b"hostNetwork: false"), "hostNetwork", id="network"
        ),
        pytest.param(
            KUBEADM.replace(b"--leader-elect=true", b"--secure-port=0"), "secure-port", id="no HTTPS"
        ),
        pytest.param(
            WITH_CONFIG.replace(b"/etc/kubernetes/own}", b"/opt/own}"),
            "/opt/own/scheduler.yaml",
            id="a configuration out of reach",
        ),
        pytest.param(
            KUBEADM.replace(b"--leader-elect=true", b"--config=/in/the/image.yaml"),
            "mount it from the host",
            id="a configuration in the image",
        ),
    ],
)
def test_what_cannot_be_installed_needs_a_person_and_changes_nothing(
    tmp_path: Path, original: bytes, said: str
) -> None:
    machine = Machine(tmp_path, original)

    with pytest.raises(NeedsPersonError, match=said):
        machine.install()
    machine.assert_untouched()


def test_a_node_without_a_scheduler_needs_a_person(machine: Machine) -> None:
    machine.manifest_path.unlink()

    with pytest.raises(NeedsPersonError, match="use another scheduler backend"):
        machine.install()
    assert machine.condition == "Absent"


def test_a_record_of_another_manifest_needs_a_person(machine: Machine) -> None:
    machine.install()
    state = machine.folder / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "manifest": "/elsewhere.yaml"}))

    with pytest.raises(NeedsPersonError, match="give --manifest /elsewhere"):
        machine.restore()


# Crashes: the process may end before or in the middle of every write, and in every look at the scheduler.

Run = Callable[[Machine, Host | None], object]


def _update(machine: Machine, host: Host | None) -> Outcome:
    return machine.install(OTHER_EXTENDER, host=host)


def _install(machine: Machine, host: Host | None) -> Outcome:
    return machine.install(host=host)


def _restore(machine: Machine, host: Host | None) -> Outcome:
    return machine.restore(host=host)


def _after_install(machine: Machine) -> None:
    machine.install()


def _after_edit_by_others(machine: Machine) -> None:
    machine.install()
    machine.edit(b"v1.36.3", b"v1.36.4")
    machine.original = machine.original.replace(b"v1.36.3", b"v1.36.4")


def _from_scratch(machine: Machine) -> None:
    del machine


ORIGINALS = [pytest.param(KUBEADM, id="none"), pytest.param(WITH_CONFIG, id="config")]
PREPARATIONS = [
    pytest.param(_from_scratch, _install, id="first installation"),
    pytest.param(_after_install, _update, id="change of URL"),
    pytest.param(_after_install, _restore, id="restoration"),
    pytest.param(_after_edit_by_others, _install, id="installation after others' edit"),
    pytest.param(_after_edit_by_others, _restore, id="restoration after others' edit"),
]


def _crashes(
    folder: Path, original: bytes, prepare: Callable[[Machine], None], action: Run
) -> Iterator[tuple[str, Machine]]:
    """Run ``action`` on fresh machines, ended at one point after the other until it runs through."""
    for torn in (False, True):
        for point in range(1, 50):
            machine = Machine(folder / f"write-{point}-{torn}", original)
            prepare(machine)
            if not _ends_early(action, machine, CrashingHost(machine.root, crash_at=point, torn=torn)):
                break
            yield f"write {point}", machine
    for point in range(1, 50):
        machine = Machine(folder / f"look-{point}", original)
        prepare(machine)
        machine.scheduler.interrupt_at = machine.scheduler.looks + point
        if not _ends_early(action, machine, Host(machine.root)):
            break
        yield f"look {point}", machine


def _ends_early(action: Run, machine: Machine, host: Host) -> bool:
    try:
        action(machine, host)
    except CrashError:
        return True
    return False


@pytest.mark.parametrize("original", ORIGINALS)
@pytest.mark.parametrize(("prepare", "action"), PREPARATIONS)
def test_wherever_it_ends_restoring_leaves_no_trace(
    tmp_path: Path, original: bytes, prepare: Callable[[Machine], None], action: Run
) -> None:
    points = 0
    for point, machine in _crashes(tmp_path, original, prepare, action):
        points += 1
        assert len(list(machine.manifest_path.parent.iterdir())) == 1, point
        machine.restore()
        machine.assert_untouched()
        assert machine.scheduler.running == machine.original, point
    assert points > 5


@pytest.mark.parametrize("original", ORIGINALS)
@pytest.mark.parametrize(("prepare", "action"), PREPARATIONS)
def test_wherever_it_ends_installing_finishes(
    tmp_path: Path, original: bytes, prepare: Callable[[Machine], None], action: Run
) -> None:
    for point, machine in _crashes(tmp_path, original, prepare, action):
        machine.install()
        assert machine.condition == "Installed", point
        assert machine.extenders == [EXTENDER.url], point
        assert len(list(machine.folder.iterdir())) == 3, point
        machine.restore()
        machine.assert_untouched()


def test_an_interrupted_edit_that_does_not_work_is_rolled_back_by_the_next_run(
    machine: Machine,
) -> None:
    machine.install()
    machine.restore()
    machine.scheduler.fails = lambda content: manifest.VOLUME.encode() in content
    machine.scheduler.interrupt_at = machine.scheduler.looks + 10
    with pytest.raises(CrashError):
        machine.install()
    assert machine.content != machine.original

    with pytest.raises(RetryableError, match="serves again"):
        machine.install()
    machine.assert_untouched()
