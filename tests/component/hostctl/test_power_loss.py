"""The power goes, or the Job is killed, at any point; the next run leaves all as if nothing had been."""

import copy
import functools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from tests.fakes.hostctl_node import FakeNode
from tests.fakes.power_loss import PowerLossError, powered
from tests.samples.hostctl import EXTENDER, KUBEADM, PLUGIN, WITH_CONFIG

from gpushare_core.text import yaml_edit
from gpushare_hostctl.decide.run.own_files import is_ours
from gpushare_hostctl.decide.scheduler import key_pairs, manifest
from gpushare_hostctl.decide.scheduler.key_pairs import CLIENT_FILE, SERVER_FILE, TRUSTED_FILE
from gpushare_hostctl.host import system_calls
from gpushare_hostctl.host.system_calls import exchange

HTTPS = replace(EXTENDER, url="https://127.0.0.1:32766")
OTHER = replace(EXTENDER, url="http://127.0.0.1:40000")

# Hundreds of runs read the same few texts over and over; parsing them is most of the time.
_parse_once = functools.cache(manifest.parse)
_documents_once = functools.cache(yaml_edit.documents)
_root_once = functools.cache(yaml_edit._root)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(manifest, "parse", _parse_once)
    monkeypatch.setattr(yaml_edit, "_root", _root_once)
    monkeypatch.setattr(yaml_edit, "documents", lambda text, **_: copy.deepcopy(_documents_once(text)))


Step = Callable[[FakeNode], object]
Tree = dict[str, tuple[str, ...]]


def nothing(node: FakeNode) -> None:
    del node


def install(node: FakeNode) -> None:
    node.install()


def update(node: FakeNode) -> None:
    node.install(OTHER)


def install_with_keys(node: FakeNode) -> None:
    node.install(HTTPS)


def install_plugin(node: FakeNode) -> None:
    node.install(PLUGIN)


def restore(node: FakeNode) -> None:
    node.restore()


def install_and_age(node: FakeNode) -> None:
    node.install(HTTPS)
    node.now += timedelta(days=300)


def install_and_edit(node: FakeNode) -> None:
    node.install()
    node.edit(b"v1.36.3", b"v1.36.4")
    node.original = node.original.replace(b"v1.36.3", b"v1.36.4")


ORIGINALS = [pytest.param(KUBEADM, id="none"), pytest.param(WITH_CONFIG, id="config")]
RUNS = [
    pytest.param(nothing, install, id="first installation"),
    pytest.param(install, update, id="change of URL"),
    pytest.param(install, restore, id="restoration"),
    pytest.param(install, install_plugin, id="change to the plugin"),
    pytest.param(install_plugin, install, id="change to the extender"),
    pytest.param(install_and_edit, install, id="installation after others' edit"),
    pytest.param(install_and_edit, restore, id="restoration after others' edit"),
]
RUNS_WITH_KEYS = [
    pytest.param(nothing, install_with_keys, id="first installation"),
    pytest.param(install_and_age, install_with_keys, id="renewal"),
    pytest.param(install_with_keys, restore, id="restoration"),
    pytest.param(install_with_keys, install_plugin, id="change to the plugin"),
    pytest.param(install_plugin, install_with_keys, id="change to the extender"),
]


def new_node(folder: Path, original: bytes) -> FakeNode:
    node = FakeNode(folder, original)
    node.timeout = 6.0
    return node


def cut_short(folder: Path, original: bytes, prepare: Step, run: Step) -> Iterator[tuple[str, FakeNode]]:
    """Yields fresh nodes on which ``run`` ended at one point after the other, until it runs through."""
    for point in range(1, 200):
        node = new_node(folder / f"change-{point}", original)
        prepare(node)
        with powered(lost_after=point) as power:
            ended = ends_early(run, node)
        if not ended:
            assert not power.is_lost
            break
        yield f"after change {point}", node
    # Every wait from its beginning to its end.
    for point in [*range(1, 8), *range(8, 60, 6)]:
        node = new_node(folder / f"probe-{point}", original)
        prepare(node)
        node.scheduler.interrupt_at = node.scheduler.probes + point
        if not ends_early(run, node):
            break
        yield f"in probe {point}", node


def ends_early(run: Step, node: FakeNode) -> bool:
    try:
        run(node)
    except PowerLossError:
        return True
    return False


def tree(node: FakeNode, *, with_keys: bool = False) -> Tree:
    """Everything on the host: modes, owners and contents; of random keys only where they lie."""
    return {
        described(str(path.relative_to(node.root)), hide=with_keys): (
            oct(status.st_mode),
            str(status.st_gid),
            described(path.read_text(), hide=with_keys) if path.is_file() else "folder",
        )
        for path in sorted(node.root.rglob("*"))
        for status in [path.stat()]
    }


@functools.cache
def tree_before(folder: Path, original: bytes) -> Tree:
    return tree(FakeNode(folder / f"before {len(original)}", original))


@functools.cache
def tree_installed(folder: Path, original: bytes) -> Tree:
    node = new_node(folder / f"installed {len(original)}", original)
    node.install()
    return tree(node)


def described(text: str, *, hide: bool) -> str:
    if not hide:
        return text
    text = re.sub(r"-----BEGIN .*-----", "a key", text, flags=re.DOTALL)
    return re.sub(r"\b([0-9a-f]{64}|[0-9a-f]{12})\b", "checksum", text)


@pytest.mark.parametrize("original", ORIGINALS)
@pytest.mark.parametrize(("prepare", "run"), RUNS)
def test_wherever_it_ends_restoring_leaves_no_trace(
    tmp_path: Path, original: bytes, prepare: Step, run: Step
) -> None:
    points = 0
    for point, node in cut_short(tmp_path, original, prepare, run):
        points += 1
        assert len(list(node.manifest_path.parent.iterdir())) == 1, point
        node.restore()
        assert tree(node) == tree_before(tmp_path, node.original), point
        assert node.scheduler.running == node.original, point
    assert points > 8


@pytest.mark.parametrize("original", ORIGINALS)
@pytest.mark.parametrize(("prepare", "run"), RUNS)
def test_wherever_it_ends_installing_leads_to_the_same(
    tmp_path: Path, original: bytes, prepare: Step, run: Step
) -> None:
    points = 0
    for point, node in cut_short(tmp_path, original, prepare, run):
        points += 1
        node.install()
        assert tree(node) == tree_installed(tmp_path, node.original), point
        node.restore()
        node.assert_untouched()
    assert points > 8


NEWER = (b"v1.36.3", b"v1.37.0")


@pytest.mark.parametrize("original", ORIGINALS)
@pytest.mark.parametrize(
    ("prepare", "run"),
    [pytest.param(nothing, install, id="install"), pytest.param(install, restore, id="restore")],
)
def test_wherever_it_ends_what_others_wrote_at_that_moment_stays(
    tmp_path: Path, original: bytes, prepare: Step, run: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their manifest comes between our comparison and our rename, and then the power goes."""
    upgraded = original.replace(*NEWER)
    nodes: list[FakeNode] = []

    def exchange_late(first: Path, second: Path) -> bool:
        node = nodes[-1]
        if NEWER[1] not in node.content and not node.upgraded:
            node.write_anew(upgraded)
            node.upgraded = True
        return exchange(first, second)

    monkeypatch.setattr(system_calls, "exchange", exchange_late)

    def prepare_and_note(node: FakeNode) -> None:
        node.upgraded = True
        nodes.append(node)
        prepare(node)
        node.upgraded = False

    kept = 0
    for point, node in cut_short(tmp_path, original, prepare_and_note, run):
        if not node.upgraded:
            continue
        kept += 1
        node.install()
        assert NEWER[1] in node.content, point
        node.restore()
        assert node.content == upgraded, point
        assert not node.folder.exists()
    assert kept > 5


THEIRS = (
    "keys/theirs.pem",
    "kube-scheduler.yaml.0123456789ab.exchange",
    "kube-scheduler.yaml.of.today.exchange",
    "other.yaml.0123456789ab.0123456789ab.exchange",
    "scheduler-config-theirs.yaml",
)


@pytest.mark.parametrize(("prepare", "run"), RUNS_WITH_KEYS)
def test_wherever_it_ends_all_files_are_known_and_none_of_theirs_goes(
    tmp_path: Path, prepare: Step, run: Step
) -> None:
    def prepare_among_theirs(node: FakeNode) -> None:
        for name in THEIRS:
            path = node.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("theirs")
        prepare(node)

    points = 0
    for point, node in cut_short(tmp_path, WITH_CONFIG, prepare_among_theirs, run):
        points += 1
        present = {str(path.relative_to(node.folder)) for path in node.folder.rglob("*") if path.is_file()}
        known = {path for path in present if is_ours(path, manifest=node.manifest_path.name)}
        assert present - known == set(THEIRS), point
        node.restore()
        left = [str(path.relative_to(node.folder)) for path in node.folder.rglob("*") if path.is_file()]
        assert sorted(left) == sorted(THEIRS), point
    assert points > 8


@pytest.mark.parametrize(("prepare", "run"), RUNS_WITH_KEYS)
def test_wherever_it_ends_restoring_takes_the_keys_along(tmp_path: Path, prepare: Step, run: Step) -> None:
    for point, node in cut_short(tmp_path, WITH_CONFIG, prepare, run):
        node.restore()
        assert tree(node) == tree_before(tmp_path, WITH_CONFIG), point


@pytest.mark.parametrize(("prepare", "run"), RUNS_WITH_KEYS)
def test_wherever_it_ends_installing_leads_to_keys_that_fit(tmp_path: Path, prepare: Step, run: Step) -> None:
    expected = new_node(tmp_path / "expected", WITH_CONFIG)
    expected.install(HTTPS)
    for point, node in cut_short(tmp_path, WITH_CONFIG, prepare, run):
        node.install(HTTPS)
        assert tree(node, with_keys=True) == tree(expected, with_keys=True), point
        assert_keys_fit(node)


def assert_keys_fit(node: FakeNode) -> None:
    """Each side's certificate is of an authority that the other one trusts, and the scheduler has its own."""
    authority = key_pairs.decode((node.folder / key_pairs.AUTHORITY_FILE).read_bytes())
    assert authority is not None
    for path in (CLIENT_FILE, SERVER_FILE):
        pair = key_pairs.decode((node.folder / path).read_bytes())
        assert pair is not None
        pair.certificate.verify_directly_issued_by(authority.certificate)
    config = next(node.folder.glob("scheduler-config-*"))
    tls = yaml.safe_load(config.read_bytes())["extenders"][-1]["tlsConfig"]
    used = {name: (node.root / path.lstrip("/")).read_bytes() for name, path in tls.items()}
    assert used["certFile"] == used["keyFile"] == (node.folder / CLIENT_FILE).read_bytes()
    assert used["caFile"] == (node.folder / TRUSTED_FILE).read_bytes()
