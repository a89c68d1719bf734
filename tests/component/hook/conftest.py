"""Containers of a node whose driver keeps the truth: a test asks it, and never the hook, who has what."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.component.hook.share import FIRST, SECOND, SHARE
from tests.fakes.cuda_container import Container
from tests.fakes.cuda_driver import GIB, CudaDriver
from tests.fakes.cuda_user import make_programs
from tests.fakes.hook_library import compiled_hook

MakeContainer = Callable[..., Container]


@contextmanager
def folder_for_everybody() -> Iterator[Path]:
    """One that other users may enter: pytest's own it keeps for one user."""
    with tempfile.TemporaryDirectory(prefix="hook-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def programs() -> Iterator[Path]:
    with folder_for_everybody() as folder:
        make_programs(folder)
        yield folder


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_for_everybody() as folder:
        yield folder


@pytest.fixture
def driver(folder: Path) -> CudaDriver:
    """Of two cards."""
    (folder / "driver").mkdir()
    driver = CudaDriver(folder / "driver", cards=[(FIRST, 16 * GIB), (SECOND, 16 * GIB)])
    driver.install()
    return driver


@pytest.fixture
def make_container(folder: Path, driver: CudaDriver, programs: Path) -> Iterator[MakeContainer]:
    """Starts a container that has a share of the first card, where nothing else is given."""
    made: list[Container] = []

    def make(**options: Any) -> Container:
        own = folder / f"container{len(made)}"
        own.mkdir()
        given: dict[str, Any] = {"hook": compiled_hook(), "limits": {FIRST: SHARE}, "group": len(made)}
        container = Container(own, driver, programs=programs, **(given | options))
        made.append(container)
        container.start()
        return container

    yield make
    for container in made:
        container.stop()


@pytest.fixture
def container(make_container: MakeContainer) -> Container:
    return make_container()
