"""The minors of Kubernetes that the local cluster can be built of."""

from pathlib import Path

import pytest

from gpushare_localcluster.build import module_files
from gpushare_localcluster.build.binary import LOCALCLUSTER, SCHEDULER, SOURCES, GoProgram
from gpushare_localcluster.build.minors import CHOICE, DEFAULT, MINORS, Minor, chosen_minor, minor_named
from gpushare_localcluster.errors import LocalClusterError


def test_the_default_is_one_of_them_and_the_oldest_comes_first() -> None:
    assert DEFAULT in MINORS
    assert list(MINORS) == sorted(MINORS)


def test_a_minor_says_its_versions() -> None:
    minor = Minor(1, 34, 4)
    assert (minor.name, minor.version, minor.staging_version) == ("1.34", "v1.34.4", "v0.34.4")


def test_the_environment_chooses() -> None:
    assert chosen_minor({}) == chosen_minor({CHOICE: ""}) == DEFAULT
    assert chosen_minor({CHOICE: "1.34"}) == minor_named("1.34")


@pytest.mark.parametrize("name", ["1.3", "v1.34", "1.34.4", "2.0", "new"])
def test_another_name_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(LocalClusterError, match=f"no Kubernetes '{name}'; it has .*1.36"):
        chosen_minor({CHOICE: name})


def test_files_for_older_minors_are_left_out_of_newer_ones() -> None:
    assert MINORS[-1].tags == []
    assert "before1.36" in minor_named("1.35").tags
    assert "before1.36" not in minor_named("1.36").tags


PROGRAMS = (LOCALCLUSTER, SCHEDULER)
EACH = [
    pytest.param(program, minor, id=f"{program.name} {minor.name}")
    for program in PROGRAMS
    for minor in program.minors
]


@pytest.mark.parametrize(("program", "minor"), EACH)
def test_each_module_file_is_of_its_minor_alone(program: GoProgram, minor: Minor) -> None:
    lines = (program.sources / minor.module_file).read_text().splitlines()
    assert lines[0] == f"module {program.module}"
    assert f"\tk8s.io/kubernetes {minor.version}" in lines
    replaced = [line.split()[-1] for line in lines if "=>" in line and "k8s.io/" in line]
    served = {
        version for (_, wanted), version in module_files.NEAREST.items() if wanted == minor.staging_version
    }
    assert len(replaced) >= 28
    assert set(replaced) == {minor.staging_version, *served}
    assert (program.sources / minor.sum_file).stat().st_size > 0


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_no_other_module_file_lies_about(program: GoProgram) -> None:
    files = {
        program.sources / file for minor in program.minors for file in (minor.module_file, minor.sum_file)
    }
    assert {*(program.sources / "kubernetes").iterdir()} == {
        file for file in files if file.parent.name == "kubernetes"
    }


def test_both_programs_have_the_default_minor() -> None:
    """Its module file is the one that Go's tools take without being told."""
    assert [program.minors[-1] for program in PROGRAMS] == [DEFAULT, DEFAULT]


def test_a_module_file_starts_from_what_kubernetes_own_one_says() -> None:
    own = """go 1.24.0

godebug default=go1.24

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubelet => ./staging/src/k8s.io/kubelet
)
"""
    text = module_files.first_text("gpushare.io/x", Minor(1, 34, 4), own)
    assert text.startswith("module gpushare.io/x\n")
    assert "godebug default=go1.24\n" in text
    assert "\nrequire k8s.io/kubernetes v1.34.4\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.34.4\n\tk8s.io/kubelet => k8s.io/kubelet v0.34.4\n)" in text


def test_one_that_is_not_served_is_replaced_by_the_nearest() -> None:
    own = "\tk8s.io/endpointslice => ./staging/src/k8s.io/endpointslice\n"
    assert "=> k8s.io/endpointslice v0.32.12\n" in module_files.first_text(
        "gpushare.io/x", Minor(1, 32, 13), own
    )


def test_an_unknown_minor_writes_no_module_file() -> None:
    with pytest.raises(LocalClusterError, match="no Kubernetes"):
        module_files.main(["1.12"])
    assert not Path(SOURCES, "kubernetes/1.12.mod").exists()
