"""The folder of files for isolation: whole files, by rename, and never through a symbolic link."""

import errno
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpushare_core.api.served import Problem
from gpushare_plugin.decide.isolation.needed_files import NeededFiles
from gpushare_plugin.isolation import keeper as isolation_keeper
from gpushare_plugin.isolation.folder import IsolationFilesError, IsolationFolder
from gpushare_plugin.isolation.keeper import GRACE, IsolationKeeper

ONE, OTHER = "1" * 32, "2" * 32
NOBODY = NeededFiles(complete=True)


@pytest.fixture
def folder(tmp_path: Path) -> IsolationFolder:
    library = tmp_path / "image.so"
    library.write_bytes(b"library")
    return IsolationFolder(tmp_path / "node" / "isolation", library)


def path(folder: IsolationFolder, identity: str) -> str:
    return str(folder.path / "limits" / identity)


def test_everybody_may_read_whatever_the_umask_is(folder: IsolationFolder) -> None:
    before = os.umask(0o077)
    try:
        folder.write({path(folder, ONE): b"limits"})
    finally:
        os.umask(before)
    modes = {
        found.name: oct(stat.S_IMODE(found.stat().st_mode))
        for found in [folder.path, *folder.path.rglob("*")]
    }
    assert modes == {
        "isolation": "0o755",
        "limits": "0o755",
        ONE: "0o644",
        "ld.so.preload": "0o644",
        "libgpushare-cuda.so": "0o755",
    }


def test_what_is_there_stays_and_what_differs_is_replaced(folder: IsolationFolder) -> None:
    assert folder.install() is None
    library = folder.path / "libgpushare-cuda.so"
    first = library.stat().st_ino
    assert folder.install() is None
    assert library.stat().st_ino == first
    with library.open("rb") as mounted:  # as by a container that runs
        folder.library.write_bytes(b"newer library")
        assert folder.install() is None
        assert (mounted.read(), library.read_bytes()) == (b"library", b"newer library")


@pytest.mark.parametrize("name", ["libgpushare-cuda.so", "ld.so.preload", f"limits/{ONE}"])
def test_a_link_is_replaced_and_never_followed(folder: IsolationFolder, tmp_path: Path, name: str) -> None:
    folder.write({path(folder, ONE): b"limits"})
    victim = tmp_path / "victim"
    victim.write_bytes(b"of somebody else")
    (folder.path / name).unlink()
    (folder.path / name).symlink_to(victim)
    folder.write({path(folder, ONE): b"limits"})
    assert victim.read_bytes() == b"of somebody else"
    assert not (folder.path / name).is_symlink()


def test_a_folder_that_is_a_link_is_refused(folder: IsolationFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.path.parent.mkdir()
    folder.path.symlink_to(tmp_path / "elsewhere")
    problem = folder.install()
    assert problem
    assert problem.reason == "FolderNotWritable"
    with pytest.raises(IsolationFilesError, match="create the pod again"):
        folder.write({path(folder, ONE): b"limits"})
    assert not [*(tmp_path / "elsewhere").iterdir()]


@pytest.mark.parametrize("content", [b"", b"x" * (4 * 2**20 + 1)])
def test_a_library_that_cannot_be_one_is_refused(folder: IsolationFolder, content: bytes) -> None:
    folder.library.write_bytes(content)
    problem = folder.install()
    assert isinstance(problem, Problem)
    assert problem.reason == "LibraryMissing"


@pytest.mark.parametrize("full", [{"f_bfree": 10}, {"f_ffree": 0}])
def test_a_full_disk_is_told_before_a_pod_comes(
    folder: IsolationFolder, monkeypatch: pytest.MonkeyPatch, full: dict[str, int]
) -> None:
    disk = {"f_blocks": 10**6, "f_frsize": 4096, "f_bfree": 10**5, "f_files": 1000, "f_ffree": 10}
    monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(**disk))
    assert folder.install() is None
    monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(**disk | full))
    problem = folder.install()
    assert problem
    assert "No space left on device" in problem.message


def test_of_a_file_that_cannot_be_written_nothing_stays(
    folder: IsolationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.install()
    monkeypatch.setattr(os, "fsync", _no_space)
    with pytest.raises(OSError, match="No space left"):
        folder.write({path(folder, ONE): b"limits"})
    assert not [*(folder.path / "limits").iterdir()]


def _no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_every_container_mounts_is_named_where_it_is_missing(folder: IsolationFolder) -> None:
    assert folder.missing() == ("libgpushare-cuda.so", "ld.so.preload")
    folder.install()
    assert folder.missing() == ()
    (folder.path / "ld.so.preload").write_bytes(b"/lib/another.so\n")
    assert folder.missing() == ("ld.so.preload",)


def test_what_is_no_file_is_not_read(folder: IsolationFolder) -> None:
    folder.write({path(folder, ONE): b"limits"})
    os.mkfifo(path(folder, OTHER))
    Path(path(folder, "3" * 32)).mkdir()  # made by containerd, where the source of a mount was missing
    assert folder.limits([ONE, OTHER, "3" * 32, "4" * 32]) == {ONE: b"limits"}


def test_at_the_end_nothing_is_left(folder: IsolationFolder) -> None:
    folder.write({path(folder, ONE): b"limits"})
    (folder.path / ".new-ld.so.preload").write_bytes(b"of a plugin that was killed")
    (folder.path / "limits" / f".new-{OTHER}").write_bytes(b"of a plugin that was killed")
    folder.remove([ONE])
    assert not folder.is_empty
    folder.remove_all()
    assert folder.is_empty
    assert not folder.path.exists()


def test_what_containerd_made_goes_and_what_is_somebody_elses_stays(folder: IsolationFolder) -> None:
    folder.write({path(folder, ONE): b"limits"})
    for name in ("ld.so.preload", f"limits/{ONE}"):
        (folder.path / name).unlink()
        (folder.path / name).mkdir()
    (folder.path / "limits" / "lost+found").mkdir()
    folder.remove([ONE])
    folder.remove_all()
    assert folder.is_empty
    assert [found.name for found in folder.path.rglob("*")] == ["limits", "lost+found"]


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def keeper(folder: IsolationFolder, seconds: Seconds) -> IsolationKeeper:
    return IsolationKeeper(folder, seconds)


async def answer(keeper: IsolationKeeper, identity: str) -> None:
    assert keeper.folder
    await keeper.write({path(keeper.folder, identity): b"limits"})


def identities(keeper: IsolationKeeper) -> set[str]:
    assert keeper.folder
    return {*keeper.folder.identities()}


async def test_a_file_waits_for_the_kubelet_to_write_down_who_has_it(
    keeper: IsolationKeeper, seconds: Seconds
) -> None:
    await answer(keeper, ONE)
    seconds.now = GRACE - 1
    assert await keeper.tidy(NOBODY, in_use=False)
    assert identities(keeper) == {ONE}
    seconds.now = GRACE
    assert not await keeper.tidy(NOBODY, in_use=False)


async def test_a_file_goes_with_the_container_that_has_it(keeper: IsolationKeeper, seconds: Seconds) -> None:
    await answer(keeper, ONE)
    seconds.now = GRACE
    assert await keeper.tidy(NeededFiles(identities=frozenset({ONE}), complete=True), in_use=True)
    assert identities(keeper) == {ONE}
    assert await keeper.tidy(NOBODY, in_use=True)  # the library stays
    assert not identities(keeper)


async def test_a_container_that_gets_the_units_of_one_that_ended_keeps_its_file(
    keeper: IsolationKeeper, seconds: Seconds
) -> None:
    await answer(keeper, ONE)
    seconds.now = GRACE
    await keeper.tidy(NeededFiles(identities=frozenset({ONE}), complete=True), in_use=True)
    await answer(keeper, ONE)
    await keeper.tidy(NOBODY, in_use=True)  # the kubelet has let go of the one, and not taken the other yet
    assert identities(keeper) == {ONE}


async def test_a_plugin_without_a_folder_says_which_pods_have_files_all_the_same() -> None:
    without = IsolationKeeper()
    assert not await without.tidy(NOBODY, in_use=False)
    assert await without.tidy(NeededFiles(pods=("default/a",)), in_use=False)


async def test_a_disk_that_hangs_holds_up_neither_the_kubelet_nor_the_rounds(
    folder: IsolationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation_keeper, "DEADLINE", 0.1)
    folder.path.parent.mkdir()
    os.mkfifo(folder.library.with_suffix(".fifo"))
    hanging = IsolationKeeper(IsolationFolder(folder.path, folder.library.with_suffix(".fifo")))
    facts = await hanging.look([])
    assert facts.problem
    assert "the disk does not answer" in facts.problem.message
    with pytest.raises(IsolationFilesError, match="the disk does not answer"):
        await answer(hanging, ONE)
    assert await hanging.tidy(NOBODY, in_use=False)
    folder.library.with_suffix(".fifo").write_bytes(b"library")  # lets the thread end


async def test_nothing_goes_while_the_kubelet_cannot_be_asked(
    keeper: IsolationKeeper, seconds: Seconds
) -> None:
    await answer(keeper, ONE)
    seconds.now = 10 * GRACE
    assert await keeper.tidy(NeededFiles(), in_use=False)
    assert identities(keeper) == {ONE}


async def test_files_of_a_plugin_before_wait_once_more(folder: IsolationFolder, seconds: Seconds) -> None:
    folder.write({path(folder, ONE): b"limits"})
    seconds.now = 10 * GRACE
    restarted = IsolationKeeper(folder, seconds)
    assert await restarted.tidy(NOBODY, in_use=False)
    seconds.now += GRACE
    assert not await restarted.tidy(NOBODY, in_use=False)
