"""The hook's table against the functions that CUDA 12 and 13 publish: a new version of one fails here.

The published list is in NVIDIA's wheels, which tests alone install.
"""

import re
from collections import defaultdict
from importlib.metadata import files
from pathlib import Path

import pytest
from tests.fakes.cuda_user import versions
from tests.fakes.hook_library import covered, known

WHEELS = ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime")

TAKES_OR_TELLS = re.compile(
    r"cu(?!Tex|Surf|Profiler|User|Event|Checkpoint|Coredump)\w*?"
    r"(Alloc(?!ation(Prop|Gran))|Create|Free|Release|Destroy|Retain|Reset|Detach|Attach|MemGetInfo|TotalMem|Map(?!ped)"
    r"|Unmap|Import|Load|Unload|Open|Close|GetProcAddress|Register|Trim|Instantiate|Upload|GraphMem|Prefetch)"
)
"""Names of functions that may take or give back memory, or tell how much there is."""

LEFT_OUT = {
    r"cu(Module|Library|Link|Kernel)\w+": "code and arrays of modules: their size is not told; NVML shows it",
    r"cu(Graph(?!ics)|StreamBeginCapture|Device\w*GraphMem)\w*": "of graphs, taken at launch; NVML shows it",
    r"cu(Ipc|Import|External|DestroyExternal|MemPoolImport)\w+": "another process's, which counts it",
    r"cuMem(HostAlloc|AllocHost|FreeHost|HostRegister|HostUnregister)": "memory of the host",
    r"cuMem(MapArrayAsync|AddressFree)": "addresses: what is mapped there cuMemCreate has counted",
    r"cu(Multicast|LogicalEndpoint)\w+": "a view of memory that cuMemCreate has counted",
    r"cu(Graphics|GL|VDPAU|EGL|D3D\w|WGL)\w+": "memory of graphics; NVML shows it",
    r"cu(Stream|Green\w*Stream|Tensor)\w+": "streams and descriptions: no memory that is told",
    r"cuMem(Prefetch|DiscardAndPrefetch|BatchDecompress)\w+": "managed memory: counted when allocated",
    r"cuCtxAttach": "a count of users: the context is there already",
    r"cuFunc\w+": "code: its size is not told; NVML shows it",
    r"cuCtxResetPersistingL2Cache|cuDevice(Unr|R)egisterAsyncNotification": "no memory",
    r"cuLogs\w+": "no memory of a card",
}


def published(wheel: str) -> dict[str, set[str]]:
    """Returns name -> exported symbols, one per version; a later one has a number."""
    found = defaultdict[str, set[str]](set)
    headers = [path.locate() for path in files(wheel) or () if path.name == "cudaTypedefs.h"]
    assert headers, f"{wheel} has no list of functions"
    listed = re.findall(r"\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", Path(str(headers[0])).read_text())
    order = defaultdict[tuple[str, str], set[int]](set)
    for name, version, per_thread in listed:
        order[name, per_thread].add(int(version))
    for name, version, per_thread in listed:
        place = sorted(order[name, per_thread]).index(int(version)) + 1
        found[name].add(name + (f"_v{place}" if place > 1 else "") + per_thread)
    return dict(found)


def why_left_out(symbol: str) -> str | None:
    return next(
        (why for pattern, why in LEFT_OUT.items() if re.fullmatch(rf"(?:{pattern})(_v\d)?(_ptsz)?", symbol)),
        None,
    )


@pytest.mark.parametrize("wheel", WHEELS)
def test_what_takes_memory_is_covered_or_left_out_for_a_reason(wheel: str) -> None:
    symbols = {
        symbol
        for name, exported in published(wheel).items()
        if TAKES_OR_TELLS.match(name)
        for symbol in exported
    }
    assert len(symbols) > 100
    unknown = {symbol for symbol in symbols - covered() if why_left_out(symbol) is None}
    assert unknown == set()


@pytest.mark.parametrize("wheel", WHEELS)
def test_every_version_of_a_covered_function_is_covered(wheel: str) -> None:
    for name, exported in published(wheel).items():
        if name in covered():
            assert exported <= covered(), name


def test_what_is_covered_is_published_and_in_the_tests_driver() -> None:
    everything = set[str]().union(*(exported for wheel in WHEELS for exported in published(wheel).values()))
    unpublished = {"cuCtxDetach", "cuGetProcAddress_v2_ptsz"}
    assert known() - everything <= unpublished
    assert known() <= set(versions())
