"""The hook on a machine with a real NVIDIA card: what it counts beside what NVML sees, what gets through it,
what it costs, and that nothing is over the share. Each test prints a table: ``pytest -s``.

Without a card the other modules here try the same on a driver of the tests. A machine without compiler is
brought a folder that ``python -m tests.fakes.real_card FOLDER`` makes elsewhere; the variable
``GPUSHARE_HOOK_FOLDER`` names it.
"""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.cuda_driver import GIB, MIB
from tests.fakes.cuda_user import NULL, ON_HOST, OUT, OUT_OF_MEMORY, User, created, flat, pool, shape
from tests.fakes.hook_library import compiled_hook
from tests.fakes.nvml_figures import RealCard, has_driver
from tests.fakes.real_card import BUILT, CONTEXT_MEMORY, FLAGS, Share, Table, mib
from tests.fakes.real_card_scripts import GRAPH, IPC_OWNER, IPC_USER, MODULE, TORCH, TORCH_BESIDE

pytestmark = pytest.mark.skipif(not has_driver(), reason="no NVIDIA driver on this machine")

SHARE = 8 * GIB
POLL_SECONDS = 0.05
FOREVER = (2**64 - 1).to_bytes(8, "little")


@pytest.fixture(scope="session")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if folder := os.environ.get(BUILT):
        return Path(folder, "libgpushare-cuda.so")
    library = tmp_path_factory.mktemp("hook") / "libgpushare-cuda.so"
    library.write_bytes(compiled_hook(*FLAGS))
    return library


@pytest.fixture
def share(hook: Path) -> Iterator[Share]:
    share = Share(RealCard(), hook, SHARE)
    yield share
    share.end()


def _ptx(size: int) -> bytes:
    """A module with an array of so many bytes."""
    return (
        f".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 8 .b8 a[{size}];\0".encode()
    )


# What is counted.


class Counting:
    """A user, and a table of what each call changed for NVML and for the hook."""

    def __init__(self, share: Share, title: str) -> None:
        self.share = share
        self.table = Table(title, ("call", "NVML", "hook", "code"))
        self.user = share.start().open()
        self.over: list[str] = []
        """Calls that took more than the hook counts."""
        self.seen, self.counted = share.used(self.user), share.counted(self.user)
        self.table.add("primary context", mib(self.seen), mib(self.counted), 0)

    def call(self, what: str, symbol: str, *arguments: int | str | bytes) -> int:
        answer = self.user.call(symbol, *arguments)
        self.look(what, answer.code)
        return answer.values[0] if answer.values else answer.code

    def look(self, what: str, code: int = 0) -> None:
        seen, counted = self.share.used(self.user), self.share.counted(self.user)
        self.table.add(what, mib(seen - self.seen), mib(counted - self.counted), code)
        if seen > self.seen and seen - self.seen > counted - self.counted + 2 * MIB:
            self.over.append(what)
        self.seen, self.counted = seen, counted


def test_what_is_counted_is_what_nvml_sees(share: Share) -> None:
    counting = Counting(share, "memory after each call, in MiB")
    user, call = counting.user, counting.call
    for size, name in ((4096, "4 KiB"), (MIB, "1 MiB"), (3 * MIB, "3 MiB"), (GIB + 1, "1 GiB + 1")):
        address = call(f"cuMemAlloc {name}", "cuMemAlloc_v2", OUT, size)
        call("cuMemFree", "cuMemFree_v2", address)
    small = [user.allocate(4096) for _ in range(1000)]
    counting.look("cuMemAlloc 4 KiB, 1,000 times")
    for address in small:
        user.free(address)
    counting.look("cuMemFree of them")
    for kibibytes in (600, 1024, 1536, 2000, 2048, 3 * 1024, 5 * 1024, 7 * 1024):
        addresses = [user.allocate(kibibytes * 1024) for _ in range(50)]
        counting.look(f"cuMemAlloc {kibibytes} KiB, 50 times")
        for address in addresses:
            user.free(address)
        counting.look("cuMemFree of them")
    addresses = [user.allocate(64 * 1024) for _ in range(1024)]
    counting.look("cuMemAlloc 64 KiB, 1,024 times")
    for number, address in enumerate(addresses):
        if number % 32:
            user.free(address)
    counting.look("cuMemFree of all but each 32nd")
    for address in addresses[::32]:
        user.free(address)
    counting.look("cuMemFree of these")
    address = call("cuMemAllocPitch 1,000 x 100,000", "cuMemAllocPitch_v2", OUT, OUT, 1000, 100_000, 4)
    call("cuMemFree", "cuMemFree_v2", address)
    address = call("cuMemAllocManaged 1 GiB", "cuMemAllocManaged", OUT, GIB, 1)
    call("cuMemFree", "cuMemFree_v2", address)
    array = call("cuArrayCreate 32,768 x 32,768", "cuArrayCreate_v2", OUT, flat(32768, 32768))
    call("cuArrayDestroy", "cuArrayDestroy", array)
    array = call("cuArray3DCreate 1,000 x 1,000 x 1,000", "cuArray3DCreate_v2", OUT, shape(1000, 1000, 1000))
    call("cuArrayDestroy", "cuArrayDestroy", array)
    array = call(
        "cuMipmappedArrayCreate 16,384 x 16,384, 8 levels",
        "cuMipmappedArrayCreate",
        OUT,
        shape(16384, 16384),
        8,
    )
    call("cuMipmappedArrayDestroy", "cuMipmappedArrayDestroy", array)
    call("cuMemHostAlloc 1 GiB", "cuMemHostAlloc", OUT, GIB, 0)
    context = call("a second context", "cuCtxCreate_v2", OUT, 0, 0)
    call("1 GiB in it", "cuMemAlloc_v2", OUT, GIB)
    call("cuCtxDestroy", "cuCtxDestroy_v2", context)
    assert counting.over == []
    for _ in range(64):
        user.call("cuStreamCreate", OUT, 1)
    counting.look("cuStreamCreate, 64 times: not counted")


def test_pools_are_counted_as_nvml_sees_them(share: Share) -> None:
    counting = Counting(share, "pools, in MiB")
    call = counting.call
    address = call("cuMemAllocAsync 1 GiB, default pool", "cuMemAllocAsync", OUT, GIB, 0)
    call("cuMemFreeAsync", "cuMemFreeAsync", address, 0)
    call("cuCtxSynchronize", "cuCtxSynchronize")
    made = call("cuMemPoolCreate", "cuMemPoolCreate", OUT, pool())
    call("cuMemPoolSetAttribute: keep all", "cuMemPoolSetAttribute", made, 4, FOREVER)
    first = call("cuMemAllocFromPoolAsync 10 MiB", "cuMemAllocFromPoolAsync", OUT, 10 * MIB, made, 0)
    second = call("cuMemAllocFromPoolAsync 1 GiB", "cuMemAllocFromPoolAsync", OUT, GIB, made, 0)
    for address in (first, second):
        call("cuMemFreeAsync", "cuMemFreeAsync", address, 0)
    call("cuCtxSynchronize", "cuCtxSynchronize")
    call("cuMemPoolTrimTo 0", "cuMemPoolTrimTo", made, 0)
    call("cuMemAllocFromPoolAsync 100 MiB", "cuMemAllocFromPoolAsync", OUT, 100 * MIB, made, 0)
    code = counting.user.call("cuMemAllocFromPoolAsync", OUT, SHARE, made, 0).code
    counting.look("cuMemAllocFromPoolAsync of the share", code)
    call("cuMemPoolDestroy", "cuMemPoolDestroy", made)
    call("cuCtxSynchronize", "cuCtxSynchronize")
    assert code == OUT_OF_MEMORY
    assert counting.over == []


def test_created_memory_is_counted_as_nvml_sees_it(share: Share) -> None:
    counting = Counting(share, "created memory, in MiB")
    call = counting.call
    handle = call("cuMemCreate 1 GiB", "cuMemCreate", OUT, GIB, created(), 0)
    address = call("cuMemAddressReserve", "cuMemAddressReserve", OUT, GIB, 0, 0, 0)
    call("cuMemMap", "cuMemMap", address, GIB, 0, handle, 0)
    call("cuMemRelease while mapped", "cuMemRelease", handle)
    again = call("cuMemRetainAllocationHandle", "cuMemRetainAllocationHandle", OUT, address)
    call("cuMemUnmap", "cuMemUnmap", address, GIB)
    call("cuMemRelease", "cuMemRelease", again)
    host = call("cuMemCreate 64 MiB of the host", "cuMemCreate", OUT, 64 * MIB, created(kind=ON_HOST), 0)
    call("cuMemRelease", "cuMemRelease", host)
    assert counting.user.call("cuMemCreate", OUT, SHARE, created(), 0).code == OUT_OF_MEMORY
    assert counting.over == []


def test_a_reset_gives_back_all(share: Share) -> None:
    counting = Counting(share, "the end of a context, in MiB")
    user = counting.user
    user.allocate(GIB)
    counting.look("cuMemAlloc 1 GiB")
    assert user.call("cuDevicePrimaryCtxReset_v2", 0).code == 0
    user.use()
    counting.look("cuDevicePrimaryCtxReset, and a context anew")
    assert abs(share.counted(user) - CONTEXT_MEMORY) < MIB


# How functions are found.


@pytest.mark.parametrize("way", ["ctypes", "dlsym", "v1", "v2", "itself", "itself-thread", "thread"])
def test_a_program_is_refused_at_its_share(way: str, share: Share) -> None:
    program: list[str] = []
    if way != "ctypes":
        built = Path(os.environ.get(BUILT, ""), "user")
        if not built.exists():
            pytest.skip(f"no program `user` was brought along in {BUILT}")
        program = [str(built), way]
    user = share.start(program=program).open()
    got = user.fill(step=256 * MIB)
    table = Table(
        f"functions found by {way}, in MiB", ("got", "NVML", "total it is told", "cuMemAlloc is in")
    )
    where = user.source_of("cuMemAlloc_v2") if program else "-"
    table.add(mib(got), mib(share.used(user)), mib(user.info()[1]), where)
    assert share.used(user) <= SHARE
    assert user.info()[1] == SHARE
    plain = share.start(program=program, hooked=False).open()
    for _ in range(2):
        plain.free(plain.allocate(MIB))
        plain.info()
    plain.call("cuMemAlloc_v2", OUT, 2**50)
    assert user.error_numbers <= plain.error_numbers, "the driver itself leaves some"


# What gets through: each is in NVML's figure.


def test_what_gets_through_is_seen_by_nvml(share: Share) -> None:
    table = Table("what gets through, in MiB", ("way", "it says"))
    scripts = {
        "module of 1 KiB": MODULE.format(ptx=_ptx(1024)),
        "module with an array of 1 GiB": MODULE.format(ptx=_ptx(GIB)),
        "capture of cuMemAllocAsync, 9 GiB, launched": GRAPH,
    }
    for name, script in scripts.items():
        done = share.run(script)
        table.add(name, done.stdout.strip(), done.stderr.strip()[-300:])
    folder = Path(os.environ.get(BUILT, ""))
    if (folder / "plugin").exists():
        program = [str(folder / "user"), "plugin", str(folder / "plugin")]
        plugin = share.start(program=program).open()
        plugin.allocate(SHARE)
        table.add("plug-in opened with RTLD_DEEPBIND, the share", f"NVML {mib(share.used(plugin))}")


def test_memory_of_another_process_is_counted_once(share: Share) -> None:
    table = Table("memory of another process, by cuIpc, in MiB", ("process", "it says"))
    owner = subprocess.Popen(
        [sys.executable, "-c", IPC_OWNER],
        env=dict(share.environment()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    handle, said = owner.stdout.readline().strip(), owner.stdout.readline().strip()
    table.add("owner of 1 GiB", said)
    done = share.run(IPC_USER.format(handle=handle))
    table.add("who opens it", done.stdout.strip(), done.stderr.strip()[-300:])
    owner.communicate(timeout=30)


def test_a_share_smaller_than_a_context_is_refused_in_order(share: Share) -> None:
    small = Share(share.card, share.hook, 256 * MIB, identity="e" * 32)
    user = small.start()
    table = Table("a share of 256 MiB", ("call", "code"))
    for symbol, arguments in (
        ("cuInit", [0]),
        ("cuDeviceTotalMem_v2", [OUT, 0]),
        ("cuDevicePrimaryCtxRetain", [OUT, 0]),
        ("cuCtxCreate_v2", [OUT, 0, 0]),
        ("cuMemGetInfo_v2", [OUT, OUT]),
    ):
        answer = user.call(symbol, *arguments)
        table.add(symbol, answer.code, *answer.values)
    table.add("NVML", mib(small.used(user)))
    assert small.used(user) == 0
    small.end()


def test_eight_threads_are_held_together(share: Share) -> None:
    built = Path(os.environ.get(BUILT, ""), "user")
    if not built.exists():
        pytest.skip(f"no program `user` was brought along in {BUILT}")
    user = share.start(program=[str(built), "v2"]).open()
    user.tell(f"threads 8 1000 {256 * MIB}")
    highest, deadline = 0, time.monotonic() + 10
    while time.monotonic() < deadline:
        highest = max(highest, share.used(user))
        time.sleep(POLL_SECONDS)
    _, _, refused, wrong = user.answer().split()
    table = Table("eight threads at random, in MiB", ("highest seen by NVML", "refused", "wrong"))
    table.add(mib(highest), refused, wrong)
    assert wrong == "0"
    assert highest <= SHARE


# What it costs.


def test_what_an_allocation_costs(share: Share) -> None:
    table = Table(
        "microseconds of an allocation and its free, in turns", ("bytes", "without", "with", "more")
    )
    users = {hooked: share.start(hooked=hooked).open() for hooked in (False, True)}
    for size, times in ((4096, 2000), (MIB, 500), (64 * MIB, 200), (GIB, 10)):
        seen: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(5):
            for hooked, user in users.items():
                code, _, cost = map(int, user.ask(f"cost {times} {size}").split())
                assert code == 0
                seen[hooked].append(cost / 1000)
        without, with_it = (statistics.median(seen[hooked]) for hooked in (False, True))
        table.add(f"{size:,}", f"{without:.2f}", f"{with_it:.2f}", f"{with_it - without:+.2f}")


def test_what_a_start_costs(share: Share) -> None:
    table = Table("milliseconds of a start, in turns (median)", ("program", "starts", "without", "with"))
    script = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); p = ctypes.c_void_p(); c.cuInit(0);"
    context = script + "c.cuDevicePrimaryCtxRetain(ctypes.byref(p), 0)"
    programs = {"true": (["true"], 200), "context": ([sys.executable, "-c", context], 12)}
    for name, (command, starts) in programs.items():
        seen: dict[bool, list[float]] = {False: [], True: []}
        share.write()
        for _ in range(starts):
            for hooked, times in seen.items():
                environment = dict(share.environment(hooked=hooked))
                begun = time.perf_counter()
                subprocess.run(command, env=environment, check=True)
                times.append((time.perf_counter() - begun) * 1000)
        table.add(name, starts, *(f"{statistics.median(seen[hooked]):.2f}" for hooked in (False, True)))


# The promise.


def test_eight_processes_of_two_shares_are_never_over_them(share: Share) -> None:
    other = Share(share.card, share.hook, SHARE // 2, identity="f" * 32)
    table = Table(
        "eight processes of two shares at random, in MiB", ("share", "highest seen by NVML", "refused")
    )
    users: dict[str, list[User]] = {}
    for of in (share, other):
        users[of.identity] = [of.start().open() for _ in range(4)]
    pids = {identity: {user.pid for user in started} for identity, started in users.items()}
    for number, user in enumerate(user for started in users.values() for user in started):
        user.tell(f"random {number} 3000 {256 * MIB}")
    highest = dict.fromkeys(users, 0)
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        now = share.card.processes()
        for identity, own in pids.items():
            highest[identity] = max(highest[identity], sum(now.get(pid, 0) for pid in own))
        time.sleep(POLL_SECONDS)
    for of in (share, other):
        answers = [user.answer().split() for user in users[of.identity]]
        assert {wrong for _, _, _, wrong in answers} == {"0"}
        refused = sum(int(refused) for _, _, refused, _ in answers)
        table.add(mib(of.size), mib(highest[of.identity]), refused)
        assert highest[of.identity] <= of.size
    other.end()


def test_killed_processes_give_back_all(share: Share) -> None:
    table = Table("killed near the limit, 5 times", ("seconds until the share is there again",))
    for _ in range(5):
        users = [share.start().open() for _ in range(3)]
        for user in users:
            user.allocate(GIB)
        for user in users:
            user.kill()
        begun = time.monotonic()
        fresh = share.start().open()
        assert fresh.info() == (SHARE - CONTEXT_MEMORY, SHARE)
        fresh.allocate(SHARE - CONTEXT_MEMORY - 64 * MIB)
        table.add(f"{time.monotonic() - begun:.2f}")
        fresh.kill()


# A framework.


@pytest.mark.parametrize(
    "allocator",
    ["", "expandable_segments:True", "backend:cudaMallocAsync"],
    ids=["plain", "expandable", "async"],
)
def test_pytorch_is_told_that_the_card_is_full(allocator: str, share: Share) -> None:
    if share.run("import torch", hooked=False).returncode:
        pytest.skip("no PyTorch here")
    done = share.run(TORCH, PYTORCH_CUDA_ALLOC_CONF=allocator, PYTORCH_ALLOC_CONF=allocator)
    table = Table(f"PyTorch, {allocator or 'its default'}, on {platform.machine()}", ("it says",))
    for line in [*done.stdout.splitlines(), *done.stderr.splitlines()[-3:]]:
        table.add(line)
    assert done.returncode == 0
    assert f"total {SHARE // MIB}" in done.stdout
    assert "OOM after" in done.stdout


def test_two_of_pytorch_at_once_are_held_together(share: Share) -> None:
    if share.run("import torch", hooked=False).returncode:
        pytest.skip("no PyTorch here")
    share.write()
    command = [sys.executable, "-c", TORCH_BESIDE]
    started = [
        subprocess.Popen(
            command,
            env=dict(share.environment()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    table = Table("two of PyTorch at once, in MiB", ("it says",))
    for process in started:
        assert process.stdout is not None
        table.add(process.stdout.readline().strip())
    now = share.card.processes()
    together = sum(now.get(process.pid, 0) for process in started)
    table.add(f"NVML, both: {mib(together)}")
    for process in started:
        process.communicate(timeout=60)
    assert together <= SHARE


def test_null_arguments_crash_nobody(share: Share) -> None:
    user = share.start().open()
    assert user.call("cuMemGetInfo_v2", NULL, OUT).value == SHARE
    assert user.call("cuMemAlloc_v2", NULL, GIB).code != 0
    assert user.call("cuDeviceTotalMem_v2", OUT, 0).value == SHARE
