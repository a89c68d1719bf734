"""Packages of Debian: fetched into a folder whole, or not at all."""

from pathlib import Path

import pytest

from gpushare_localcluster.build import packages
from gpushare_localcluster.errors import LocalClusterError

APT_GET = """#!/bin/sh
echo "$@" >> "$CALLS"
for option in "$@"; do
  case $option in
    Dir::Cache::archives=*) archives=${option#*=} ;;
    Dir::State::status=*) status=${option#*=} ;;
  esac
done
case "$1" in
  install)
    for name in one two; do
      grep -q "^Package: $name$" "$status" || touch "$archives/$name.deb"
    done
    ;;
esac
"""
"""Leaves out what is installed, as far as it is told that it is."""
APT_CONFIG = """#!/bin/sh
echo "status='$STATUS'"
"""
DPKG_DEB = """#!/bin/sh
mkdir -p "$3/usr/bin" && touch "$3/usr/bin/$(basename "$2" .deb)"
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs of the names that are used, and a cache of the test's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("STATUS", str(tmp_path / "status"))
    (tmp_path / "status").write_text("Package: dpkg\nEssential: yes\nStatus: install ok installed\n")
    install(folder, "apt-get", APT_GET)
    install(folder, "apt-config", APT_CONFIG)
    install(folder, "dpkg-deb", DPKG_DEB)
    return folder


def install(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def silent(message: str) -> None:
    del message


@pytest.mark.usefixtures("tools")
def test_packages_are_unpacked_once_into_one_folder(tmp_path: Path) -> None:
    first = packages.ensure_packages(["containerd", "runc"], report=silent)
    assert sorted(path.name for path in (first / "usr/bin").iterdir()) == ["one", "two"]
    calls = (tmp_path / "calls").read_text()
    assert packages.ensure_packages(["runc", "containerd"], report=silent) == first
    assert (tmp_path / "calls").read_text() == calls


@pytest.mark.usefixtures("tools")
def test_what_this_machine_has_already_is_there_as_well(tmp_path: Path) -> None:
    with (tmp_path / "status").open("a") as status:
        status.write("\nPackage: two\nStatus: install ok installed\n")
    folder = packages.ensure_packages(["one"], report=silent)
    assert sorted(path.name for path in (folder / "usr/bin").iterdir()) == ["one", "two"]


@pytest.mark.usefixtures("tools")
def test_the_machines_own_lists_are_left_alone(tmp_path: Path) -> None:
    packages.ensure_packages(["runc"], report=silent)
    for call in (tmp_path / "calls").read_text().splitlines():
        assert f"Dir::State::lists={tmp_path}/cache/" in call
        assert "install" not in call or "--download-only" in call


def test_what_cannot_be_fetched_is_tried_again_the_next_time(tools: Path) -> None:
    install(tools, "apt-get", "#!/bin/sh\necho 'E: Unable to locate package runc' >&2; exit 100\n")
    with pytest.raises(LocalClusterError, match="apt-get update failed: E: Unable to locate package runc"):
        packages.ensure_packages(["runc"], report=silent)
    install(tools, "apt-get", APT_GET)
    assert (packages.ensure_packages(["runc"], report=silent) / "usr/bin/one").exists()


def test_another_system_is_told_what_it_lacks(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tools))
    (tools / "apt-get").unlink()
    with pytest.raises(LocalClusterError, match="lacks apt-get, tar: use Debian or Ubuntu"):
        packages.ensure_packages(["runc"], report=silent)
