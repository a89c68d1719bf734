"""install with the engine Plugin on real files: our image, our plugin, the way from and to the extender."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.hostctl_node import FakeNode
from tests.samples.hostctl import EXTENDER, KUBEADM, PLUGIN, WITH_CONFIG

from gpushare_hostctl.decide.scheduler.scheduler_config import EngineEntry
from gpushare_hostctl.errors import NeedsPersonError, RolledBackError

HTTPS = replace(EXTENDER, url="https://127.0.0.1:32766/gpushare")
NEXT_IMAGE = replace(PLUGIN, image="gpushare-scheduler:0.2.0-1.36")


@pytest.fixture(params=[pytest.param(KUBEADM, id="no --config"), pytest.param(WITH_CONFIG, id="--config")])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path, request.param)


def image_line(node: FakeNode) -> bytes:
    return next(line for line in node.content.splitlines() if b" image:" in line).strip()


OURS, STOCK = b"image: gpushare-scheduler:0.1.0-1.36", b"image: registry.k8s.io/kube-scheduler:v1.36.3"


def test_a_whole_life_of_the_plugin(node: FakeNode) -> None:
    report = node.install(PLUGIN)

    assert (report.result, report.renew_after) == ("Installed", None)
    assert image_line(node) == OURS
    assert (node.plugins, node.extenders) == (["GPUShare"], [])
    assert (node.state, node.scheduler.process) == ("Installed", 1)
    assert not list(node.folder.rglob("*.pem")), "nobody calls an extender"
    assert node.extender.asked == []

    assert node.install(PLUGIN).result == "AlreadyInstalled"
    assert node.scheduler.process == 1
    assert node.restore().result == "Restored"
    node.assert_untouched()


def test_a_change_of_engine_is_one_restart_either_way(node: FakeNode) -> None:
    node.install(HTTPS)
    process = node.scheduler.process

    assert node.install(PLUGIN).result == "Installed"
    assert node.scheduler.process == process + 1
    assert (image_line(node), node.plugins, node.extenders) == (OURS, ["GPUShare"], [])

    assert node.install(HTTPS).result == "Installed"
    assert node.scheduler.process == process + 2
    assert (image_line(node), node.extenders) == (STOCK, [HTTPS.url])
    node.restore()
    node.assert_untouched()


def test_the_keys_go_once_kube_scheduler_calls_no_extender(node: FakeNode) -> None:
    node.install(HTTPS)
    had_keys: list[bool] = []
    node.scheduler.before_probe = lambda: had_keys.append((node.folder / "extender/server.pem").exists())

    node.install(PLUGIN)

    assert all(had_keys), "until the new process is proven the one of before may come back"
    assert not list(node.folder.rglob("*.pem"))
    node.restore()
    node.assert_untouched()


def test_an_extender_that_is_still_there_sees_the_keys_of_the_way_back(node: FakeNode) -> None:
    """Its pod has the folder mounted: one that is made anew would not be that one."""
    node.install(HTTPS)
    mounted = (node.folder / "extender").stat().st_ino

    node.install(PLUGIN)
    node.install(HTTPS)

    assert (node.folder / "extender").stat().st_ino == mounted
    assert (node.folder / "extender/server.pem").exists()


def test_a_plugin_that_does_not_serve_gives_way_to_the_extender_of_before(node: FakeNode) -> None:
    node.install(HTTPS)
    before = {path: path.read_bytes() for path in node.folder.rglob("*") if path.is_file()}
    manifest = node.content
    node.scheduler.fails = lambda content: OURS in content

    with pytest.raises(RolledBackError, match=r"with the image gpushare-scheduler:0\.1\.0-1\.36") as raised:
        node.install(PLUGIN)

    assert node.content == manifest
    assert {path: path.read_bytes() for path in node.folder.rglob("*") if path.is_file()} == before
    with pytest.raises(RolledBackError, match="not tried again"):
        node.install(PLUGIN, rolled_back_inputs=raised.value.inputs)
    node.scheduler.fails = lambda content: b"image: gpushare" in content
    with pytest.raises(RolledBackError, match="no restarted kube-scheduler"):
        node.install(NEXT_IMAGE, rolled_back_inputs=raised.value.inputs)


def test_an_extender_that_does_not_serve_gives_way_to_the_plugin_of_before(node: FakeNode) -> None:
    node.install(PLUGIN)
    manifest = node.content
    node.scheduler.fails = lambda content: STOCK in content

    with pytest.raises(RolledBackError, match="the earlier manifest is back and kube-scheduler serves again"):
        node.install(HTTPS)
    assert node.content == manifest
    assert node.plugins == ["GPUShare"]


def test_another_image_alone_is_another_edit(node: FakeNode) -> None:
    node.install(PLUGIN)
    process = node.scheduler.process

    assert node.install(NEXT_IMAGE).result == "Installed"
    assert image_line(node) == b"image: gpushare-scheduler:0.2.0-1.36"
    assert node.scheduler.process == process + 1
    node.restore()
    node.assert_untouched()


@pytest.mark.parametrize("engine", [pytest.param(PLUGIN, id="plugin"), pytest.param(HTTPS, id="extender")])
def test_after_an_upgrade_of_the_control_plane_its_image_is_the_one_of_before(
    node: FakeNode, engine: EngineEntry
) -> None:
    node.install(PLUGIN)
    upgraded = node.original.replace(b"v1.36.3", b"v1.37.0")
    node.write_anew(upgraded)

    assert node.install(engine).result == "Installed"
    node.restore()
    assert node.content == upgraded


def test_another_image_that_somebody_wrote_gives_way_to_ours_and_comes_back_in_the_end(
    node: FakeNode,
) -> None:
    """It does not start with our configuration, which names the plugin."""
    node.install(PLUGIN)
    node.scheduler.fails = lambda content: b"image: registry" in content and b"gpushare" in content
    node.edit(OURS, b"image: registry.k8s.io/kube-scheduler:v1.36.4")

    assert node.install(PLUGIN).result == "Installed"
    assert image_line(node) == OURS
    node.restore()
    assert node.content == node.original.replace(b"v1.36.3", b"v1.36.4")


def test_without_our_folder_the_image_of_before_is_put_back(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, KUBEADM)
    node.install(PLUGIN)
    for path in node.folder.iterdir():
        path.unlink()
    node.folder.rmdir()

    assert node.restore().result == "RestoredPartially"
    node.assert_untouched()


def test_what_others_changed_meanwhile_stays_and_our_image_goes(node: FakeNode) -> None:
    node.install(PLUGIN)
    node.edit(b"cpu: 100m", b"cpu: 200m")

    assert node.restore().result == "RestoredPartially"
    assert node.content == node.original.replace(b"cpu: 100m", b"cpu: 200m")


def test_an_image_that_would_be_pulled_at_each_start_is_refused_before_anything_is_edited(
    tmp_path: Path,
) -> None:
    node = FakeNode(tmp_path, KUBEADM.replace(b"IfNotPresent", b"Always"))

    with pytest.raises(NeedsPersonError, match="write IfNotPresent, as kubeadm does"):
        node.install(PLUGIN)
    assert node.content == node.original
    assert not node.folder.exists()
