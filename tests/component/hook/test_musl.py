"""One file for every C library: musl loads the hook that glibc loads."""

from pathlib import Path

import pytest
from tests.component.hook.share import SHARE
from tests.fakes.cuda_container import CONTEXT_MEMORY, PRELOAD, Container
from tests.fakes.cuda_driver import GIB, CudaDriver
from tests.fakes.cuda_musl import make_musl_programs
from tests.fakes.cuda_user import User

from gpushare_localcluster.errors import LocalClusterError


@pytest.fixture(scope="session")
def musl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("musl")
    try:
        make_musl_programs(folder)
    except LocalClusterError as error:
        pytest.skip(f"no musl here: {error}")
    return folder


def user_of_musl(container: Container, musl: Path, way: str, preload: str) -> User:
    variables = [f"LD_LIBRARY_PATH={musl}", f"LD_PRELOAD={preload}"]
    folder = {"CUDA_STUB_FOLDER": str(container.driver.folder)}
    return container.user(program=["env", *variables, musl / "user", way], environment=folder).open()


@pytest.mark.parametrize("way", ["dlsym", "v1", "v2", "itself", "thread"])
def test_it_holds_programs_that_are_told_to_load_it(way: str, container: Container, musl: Path) -> None:
    user = user_of_musl(container, musl, way, PRELOAD)
    assert user.info() == (SHARE - CONTEXT_MEMORY, SHARE)
    user.allocate(GIB)
    assert user.refused(SHARE)
    assert container.user().open().info()[0] == SHARE - GIB - 2 * CONTEXT_MEMORY
    assert user.error_numbers == set()
    assert user.end() == ""


def test_a_program_of_musl_does_not_read_the_loaders_file(
    container: Container, musl: Path, driver: CudaDriver
) -> None:
    """The documentation says so: it runs, and is measured."""
    user = user_of_musl(container, musl, "dlsym", "")
    user.allocate(2 * SHARE)
    assert driver.used() > 2 * SHARE
    assert user.end() == ""
