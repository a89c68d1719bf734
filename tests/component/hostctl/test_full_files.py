"""A manifest or a configuration as long as it may be: what we add fits, or it is said why nothing is edited.

An edit that made a text longer than what is read could never be taken back.
"""

from pathlib import Path

import pytest
from tests.fakes.hostctl_node import OWN_CONFIG, OWN_CONFIG_PATH, FakeNode
from tests.samples.hostctl import KUBEADM, WITH_CONFIG

from gpushare_core.text.yaml_edit import MAX_CHARACTERS
from gpushare_hostctl.errors import NeedsPersonError


def padded(text: bytes, size: int) -> bytes:
    """With comments at its end, so many bytes in all."""
    return text + b"#" * (size - len(text) - 1) + b"\n"


def edit_size(folder: Path, text: bytes) -> int:
    """Returns how many bytes an installation adds to the manifest ``text``."""
    node = FakeNode(folder, text)
    node.install()
    return len(node.content) - len(text)


def test_a_manifest_that_the_edit_fills_is_edited_and_restored(tmp_path: Path) -> None:
    added = edit_size(tmp_path / "first", KUBEADM)
    node = FakeNode(tmp_path / "second", padded(KUBEADM, MAX_CHARACTERS - added))
    assert node.install().result == "Installed"
    assert len(node.content) == MAX_CHARACTERS
    assert node.restore().result == "Restored"
    node.assert_untouched()


def test_a_manifest_that_the_edit_would_make_too_long_stays_as_it_is(tmp_path: Path) -> None:
    added = edit_size(tmp_path / "first", KUBEADM)
    node = FakeNode(tmp_path / "second", padded(KUBEADM, MAX_CHARACTERS - added + 1))
    with pytest.raises(NeedsPersonError, match=r"the manifest would be too long: .* 128 KiB; shorten it"):
        node.install()
    node.assert_untouched()


@pytest.mark.parametrize("room", [0, 100])
def test_a_configuration_without_room_for_the_extender_is_said_and_nothing_is_edited(
    tmp_path: Path, room: int
) -> None:
    node = FakeNode(tmp_path, WITH_CONFIG)
    (node.root / OWN_CONFIG_PATH).write_bytes(padded(OWN_CONFIG, MAX_CHARACTERS - room))
    with pytest.raises(NeedsPersonError, match=r"--config file would be too long: .* 128 KiB; shorten it"):
        node.install()
    node.assert_untouched()
