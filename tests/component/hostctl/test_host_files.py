"""Files on the host: atomic, durable, and resolved as the host would."""

import contextlib
import errno
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpushare_hostctl.decide.run.snapshot import File
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host import system_calls
from gpushare_hostctl.host.files import FileChangedError, HostFiles
from gpushare_hostctl.host.system_calls import exchange

CONTENT = File(content=b"new", mode=0o640, uid=os.getuid(), gid=os.getgid())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc/folder").mkdir(parents=True)
    (tmp_path / "etc/target").mkdir()
    return tmp_path


def test_a_file_is_written_with_its_mode_and_nothing_beside_it(root: Path) -> None:
    HostFiles(root).write("/etc/target/file", CONTENT, through="/etc/folder")

    assert HostFiles(root).read("/etc/target/file") == CONTENT
    assert [path.name for path in (root / "etc/target").iterdir()] == ["file"]
    assert not list((root / "etc/folder").iterdir())


def test_writing_is_one_rename_of_a_finished_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = root / "etc/target/file"
    target.write_bytes(b"old")
    seen: list[bytes] = []
    rename = Path.replace

    def watched(self: Path, other: Path) -> Path:
        seen.extend([target.read_bytes(), self.read_bytes()])
        return rename(self, other)

    monkeypatch.setattr(Path, "replace", watched)
    HostFiles(root).write("/etc/target/file", CONTENT, through="/etc/folder")

    assert seen == [b"old", b"new"]


def test_a_leftover_of_an_earlier_run_is_overwritten(root: Path) -> None:
    (root / "etc/folder/file.new").write_bytes(b"torn")

    HostFiles(root).write("/etc/target/file", CONTENT, through="/etc/folder")

    assert (root / "etc/target/file").read_bytes() == b"new"


def test_folders_on_two_file_systems_need_a_person(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, other: Path) -> Path:
        raise OSError(18, "Invalid cross-device link", str(self), None, str(other))

    monkeypatch.setattr(Path, "replace", refuse)

    with pytest.raises(NeedsPersonError, match="one file system"):
        HostFiles(root).write("/etc/target/file", CONTENT, through="/etc/folder")
    assert not list((root / "etc/folder").iterdir())


def test_what_is_missing_is_none_or_empty(root: Path) -> None:
    host = HostFiles(root)

    assert host.read("/etc/nothing") is None
    assert host.read("/etc/nothing/below") is None
    assert host.read_folder("/etc/nothing") == {}


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["a folder", "a pipe"])
def test_what_is_no_regular_file_needs_a_person(root: Path, make: Callable[[Path], None]) -> None:
    make(root / "etc/thing")

    with pytest.raises(NeedsPersonError, match="not a regular file"):
        HostFiles(root).read("/etc/thing")


def test_a_folder_is_read_without_what_is_no_file(root: Path) -> None:
    (root / "etc/folder/a").write_bytes(b"1")
    (root / "etc/folder/below").mkdir()

    assert list(HostFiles(root).read_folder("/etc/folder")) == ["a"]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        pytest.param("etc/link", "/etc/target", id="an absolute link begins at the host's root"),
        pytest.param("etc/link", "target", id="a relative link"),
        pytest.param("etc/link", "../../../etc/target", id="a link that climbs too high"),
        pytest.param("etc/link", "/etc/folder/../target", id="a link with a step back"),
    ],
)
def test_links_are_followed_inside_the_host(root: Path, link: str, target: str) -> None:
    (root / link).symlink_to(target)
    (root / "etc/target/file").write_bytes(b"x")

    file = HostFiles(root).read("/etc/link/file")

    assert file is not None
    assert file.content == b"x"


def test_writing_through_a_link_keeps_the_link(root: Path) -> None:
    (root / "etc/target/file").write_bytes(b"x")
    (root / "etc/link").symlink_to("/etc/target/file")

    HostFiles(root).write("/etc/link", CONTENT, through="/etc/folder")

    assert (root / "etc/link").is_symlink()
    assert (root / "etc/target/file").read_bytes() == b"new"


def test_links_in_a_circle_need_a_person(root: Path) -> None:
    (root / "etc/link").symlink_to("link")

    with pytest.raises(NeedsPersonError, match="too many links"):
        HostFiles(root).read("/etc/link")


def test_a_folder_of_ours_is_for_its_owner_only(root: Path) -> None:
    HostFiles(root).make_folder("/etc/ours")
    HostFiles(root).make_folder("/etc/ours")

    assert (root / "etc/ours").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("selinux", [True, False])
def test_a_folder_is_labelled_for_containers_where_selinux_is_on(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    selinux: bool,  # noqa: FBT001
) -> None:
    labels: dict[Path, bytes] = {}

    def label(path: Path, name: str) -> bytes:
        if not selinux:
            raise OSError(errno.ENODATA, "No data available", str(path), None, name)
        return b"system_u:object_r:kubernetes_file_t:s0\x00"

    monkeypatch.setattr(os, "getxattr", label)
    monkeypatch.setattr(os, "setxattr", lambda path, _, value: labels.update({path: value}))

    HostFiles(root).share_with_containers("/etc/folder")

    expected = {root / "etc/folder": b"system_u:object_r:container_file_t:s0\x00"}
    assert labels == (expected if selinux else {})


def test_an_empty_folder_goes_and_a_full_one_stays(root: Path) -> None:
    (root / "etc/folder/file").write_bytes(b"x")

    for name in ("folder", "target", "nothing"):
        HostFiles(root).remove_empty_folder(f"/etc/{name}")

    assert (root / "etc/folder/file").exists()
    assert not (root / "etc/target").exists()


def test_a_folder_for_a_group(root: Path) -> None:
    HostFiles(root).make_folder("/etc/shared", mode=0o750, gid=os.getgid())

    status = (root / "etc/shared").stat()
    assert (status.st_mode & 0o777, status.st_gid) == (0o750, os.getgid())


STAGED = "/etc/folder/staged"
TARGET = "/etc/target/file"


@pytest.fixture
def staged(root: Path) -> HostFiles:
    """A file that is to replace one with the content ``old``."""
    (root / "etc/target/file").write_bytes(b"old")
    host = HostFiles(root)
    host.stage(STAGED, CONTENT, like=TARGET)
    return host


def content(root: Path) -> bytes:
    return (root / "etc/target/file").read_bytes()


def test_a_file_is_replaced_by_one_of_its_own_mode(root: Path, staged: HostFiles) -> None:
    staged.replace(STAGED, TARGET, expected=b"old")

    assert staged.read(TARGET) == CONTENT
    assert not list((root / "etc/folder").iterdir())


def test_a_file_is_replaced_only_where_it_is_as_expected(root: Path, staged: HostFiles) -> None:
    with pytest.raises(FileChangedError, match="changed by somebody else"):
        staged.replace(STAGED, TARGET, expected=b"older")
    assert content(root) == b"old"

    (root / "etc/target/file").unlink()
    with pytest.raises(FileChangedError):
        staged.replace(STAGED, TARGET, expected=b"old")
    assert not (root / "etc/target/file").exists()


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_what_others_write_between_the_comparison_and_the_rename_stays(
    root: Path, staged: HostFiles, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Each time before the two files are exchanged, and with it after the last look."""
    newer = [b"newer %d" % number for number in range(writes)]
    pending = list(newer)

    def exchange_late(first: Path, second: Path) -> bool:
        if pending:
            (root / "etc/newer").write_bytes(pending.pop(0))
            (root / "etc/newer").replace(root / "etc/target/file")
        return exchange(first, second)

    monkeypatch.setattr(system_calls, "exchange", exchange_late)

    with pytest.raises(FileChangedError):
        staged.replace(STAGED, TARGET, expected=b"old")
    assert content(root) == newer[-1]
    assert not list((root / "etc/folder").iterdir())


def test_a_file_that_is_gone_at_the_rename_stays_gone(
    root: Path, staged: HostFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchange_late(first: Path, second: Path) -> bool:
        first.unlink()
        return exchange(first, second)

    monkeypatch.setattr(system_calls, "exchange", exchange_late)

    with pytest.raises(FileChangedError):
        staged.replace(STAGED, TARGET, expected=b"old")
    assert not (root / "etc/target/file").exists()


def test_where_files_cannot_be_exchanged_they_are_compared_and_renamed_and_it_is_said(
    root: Path, staged: HostFiles, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(system_calls, "_call", refuse)

    staged.replace(STAGED, TARGET, expected=b"old")

    assert content(root) == b"new"
    assert not list((root / "etc/folder").iterdir())
    assert "cannot exchange" in caplog.text


def test_who_watches_the_folder_sees_the_file_come_last(root: Path, staged: HostFiles) -> None:
    """A kubelet that saw it go last would end the pod until it lists the folder again, after 20 seconds."""
    with watching(root / "etc/target") as events:
        staged.replace(STAGED, TARGET, expected=b"old")
        assert events() == [MOVED_FROM, MOVED_TO]


MOVED_FROM, MOVED_TO = 0x40, 0x80


@contextlib.contextmanager
def watching(folder: Path) -> Iterator[Callable[[], list[int]]]:
    """What happened to files in a folder since, as ``inotify`` tells."""
    descriptor = system_calls._call("inotify_init1", os.O_NONBLOCK)
    system_calls._call("inotify_add_watch", descriptor, bytes(folder), MOVED_FROM | MOVED_TO)

    def events() -> list[int]:
        content, kinds = os.read(descriptor, 4096), []
        while content:
            _, kind, _, length = struct.unpack_from("iIII", content)
            kinds.append(kind)
            content = content[16 + length :]
        return kinds

    yield events
    os.close(descriptor)


def test_reading_is_noticed_and_looking_is_not(root: Path, staged: HostFiles) -> None:
    with staged.watch_reads(TARGET) as was_read:
        assert was_read is not None
        (root / "etc/target/file").stat()
        assert was_read() is False
        (root / "etc/target/file").read_bytes()
        assert was_read() is True
        assert was_read() is True


def test_what_cannot_be_watched_is_said(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    with HostFiles(root).watch_reads("/etc/nothing") as was_read:
        assert was_read is None
    assert "cannot notice who reads /etc/nothing" in caplog.text


def test_removing_what_is_not_there_is_no_error(root: Path) -> None:
    HostFiles(root).remove("/etc/nothing")
    HostFiles(root).remove("/nothing/at-all")
    HostFiles(root).remove_empty_folder("/etc/nothing")

    assert (root / "etc/folder").exists()


def test_of_a_link_only_the_link_is_removed(root: Path) -> None:
    (root / "etc/folder/link").symlink_to("../target/file")
    (root / "etc/target/file").write_text("theirs")
    HostFiles(root).remove("/etc/folder/link")

    assert (root / "etc/target/file").exists()
    assert not (root / "etc/folder/link").is_symlink()


def test_the_lock_is_for_one(root: Path) -> None:
    with (
        HostFiles(root).lock("/etc"),
        pytest.raises(RetryableError, match="another"),
        HostFiles(root).lock("/etc"),
    ):
        pytest.fail("two hold the lock")
    with HostFiles(root).lock("/etc"):
        assert (root / "etc").exists()
