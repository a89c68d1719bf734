"""A program does not notice the hook: no output, errno kept, no system call that it is not prepared for."""

import shutil
import subprocess
import sys

import pytest
from tests.component.hook.share import SHARE
from tests.fakes.cuda_container import CONTEXT_MEMORY, Container
from tests.fakes.cuda_driver import GIB, MIB, compiled
from tests.fakes.cuda_user import OUT

SYSTEM_CALLS = {
    "x86_64": {"openat": 257, "open": 2, "flock": 73, "pread64": 17, "pwrite64": 18, "fstat": 5, "mmap": 9}
}
PROGRAMS = (
    [sys.executable, "-c", "import ctypes, ssl, sqlite3"],
    ["sh", "-c", "ls / > /dev/null"],
    ["env", "-i", "true"],
)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_programs_without_cuda_say_what_they_said(program: list[str], container: Container) -> None:
    done = subprocess.run(container.command(program), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not container.ledger.exists()


def test_errno_is_what_it_was(container: Container) -> None:
    user = container.user().open()
    for _ in range(3):
        address = user.allocate(GIB)
        assert user.refused(SHARE)
        user.info()
        user.free(address)
        user.call("cuMemFree_v2", 12345)
    assert user.error_numbers == set()


def test_descriptors_of_the_program_are_its_own(container: Container) -> None:
    """It has 0 to 2, whatever the hook opens meanwhile: a program that closes all of its own goes on."""
    script = f"""
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
def take(): return cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t({GIB}))
cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context)
codes = [take()]
kept = {{int(name) for name in os.listdir("/proc/self/fd")}} - {{0, 1, 2}}
for number in kept:
    path = f"/proc/self/fd/{{number}}"
    if os.path.exists(path) and "/state" not in os.readlink(path): os.close(number)
mine = [os.open("/opt/mine", os.O_RDWR | os.O_CREAT) for _ in range(8)]
codes += [take() for _ in range(4)]
print(codes, os.fstat(mine[0]).st_size)
"""
    done = subprocess.run(container.command([sys.executable, "-c", script]), capture_output=True, text=True)
    assert done.stdout == "[0, 0, 0, 2, 2] 0\n", done.stderr


@pytest.mark.skipif("not __import__('platform').machine() == 'x86_64'", reason="numbers of x86-64")
@pytest.mark.parametrize("name", SYSTEM_CALLS["x86_64"])
def test_a_system_call_that_is_denied_crashes_nobody(name: str, container: Container) -> None:
    user = container.user("linked").open()
    address = user.allocate(MIB)
    assert user.ask(f"deny {SYSTEM_CALLS['x86_64'][name]}") == "0 0"
    user.call("cuMemAlloc_v2", OUT, 4096)
    user.call("cuMemGetInfo_v2", OUT, OUT)
    user.call("cuMemFree_v2", address)
    assert user.ask("echo still here") == "still here"


def test_a_driver_that_is_closed_and_opened_again_is_found_again(container: Container) -> None:
    user = container.user("v2").open()
    user.allocate(GIB)
    user.tell("reopen")
    user.open()
    assert user.info()[1] == SHARE
    assert user.refused(SHARE)
    user.allocate(GIB)
    assert user.end() == ""


def test_children_forked_while_a_thread_allocates_find_the_loader_free(container: Container) -> None:
    user = container.user().open()
    assert user.ask(f"forks 200 5000 {64 * MIB}") == "0 0 0 0"


def test_lookups_that_miss_are_answered_as_without_the_hook(container: Container) -> None:
    script = """
import ctypes
own = ctypes.CDLL(None)
for name in ("cuMemAlloc_v2", "cuInit", "cuNothing", "printf"):
    print(name, hasattr(own, name))
cuda = ctypes.CDLL("libcuda.so.1")
print(hasattr(cuda, "cuNothing"), hasattr(cuda, "cuMemAlloc_v2"))
"""
    answers = []
    for _ in range(2):
        done = subprocess.run(
            container.command([sys.executable, "-c", script]), capture_output=True, text=True
        )
        answers.append(done.stdout)
        (container.folder / "etc/ld.so.preload").write_text("")
    assert answers[0] == answers[1]


def test_the_first_look_is_before_the_first_context(container: Container) -> None:
    user = container.user().open()
    assert user.info() == (SHARE - CONTEXT_MEMORY, SHARE)


def test_a_limit_for_the_size_of_files_kills_nobody(container: Container) -> None:
    """The kernel would, by SIGXFSZ, where the ledger is written. Python ignores it, and passes that on."""
    script = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
os.execv(sys.argv[1], sys.argv[1:])
"""
    linked = str(container.programs / "linked")
    user = container.user(program=[sys.executable, "-c", script, linked]).open()
    user.allocate(GIB)
    assert user.refused(SHARE)
    assert user.end() == ""


def test_standard_descriptors_that_a_program_has_closed_stay_closed(container: Container) -> None:
    script = f"""
import ctypes, os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
os.close(0)
context, address = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context)
codes = [cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t({GIB})) for _ in range(4)]
kept = os.open("/opt", os.O_PATH)
print(codes, kept)
"""
    done = subprocess.run(container.command([sys.executable, "-c", script]), capture_output=True, text=True)
    assert done.stdout == "[0, 0, 0, 2] 0\n", done.stderr


WRAPPER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
static int begun;
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *argument) {
    static int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (begun++) __builtin_trap();
    next = (__typeof__(next))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    begun = 0;
    return next(visit, argument);
}
static int count(struct dl_phdr_info *library, size_t size, void *argument) {
    return (void)library, (void)size, ++*(int *)argument, 0;
}
int main(void) {
    int libraries = 0;
    return dl_iterate_phdr(count, &libraries) || libraries < 2;
}
"""


def test_a_program_with_a_list_of_libraries_of_its_own_starts(container: Container) -> None:
    """Such as ThreadSanitizer's: it asks dlsym for the C library's, while the hook looks for the C library's
    dlsym."""
    source, program = container.folder / "wrapper.c", container.folder / "wrapper"
    source.write_text(WRAPPER)
    with compiled([source], ["-rdynamic"], libraries=["-ldl"]) as built:
        shutil.copy(built, program)
    done = subprocess.run(container.command([program]), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
