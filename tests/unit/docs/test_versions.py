"""What documents claim of versions is what `make matrix` has run, and what it leaves out is there."""

import re
from pathlib import Path

import pytest
from matrix.documents import stale_documents
from matrix.report import load
from tests.e2e.same_everywhere import SAME_EVERYWHERE, reason

ROOT = Path(__file__).parents[3]
REPORT = load()
RUN = {row.versions["Kubernetes"] for row in REPORT.clean}
MINORS_RUN = {row.minor for row in REPORT.clean}


def row_of(document: str, first: str) -> list[str]:
    """Returns the cells of the first row of a table that begins with ``first``."""
    text = (ROOT / document).read_text()
    (line, *_) = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def versions(text: str) -> set[str]:
    return set(re.findall(r"1\.\d\d\.\d+", text))


def test_the_readme_claims_only_versions_on_which_every_test_passed() -> None:
    _, run, *_ = row_of("README.md", "Kubernetes")
    assert versions(run) == RUN
    assert {minor for minor in re.findall(r"\b1\.\d\d\b", run) if minor not in MINORS_RUN} == set()


def test_installing_claims_only_versions_on_which_every_test_passed() -> None:
    _, needed = row_of("docs/install.md", "Kubernetes")
    assert versions(needed) == RUN


@pytest.mark.parametrize(("first", "program"), [("container runtime", "containerd"), ("cgroups", "cgroups")])
def test_the_readme_claims_only_runtimes_that_were_run(first: str, program: str) -> None:
    _, claimed, *_ = row_of("README.md", first)
    known = {row.versions[program] for row in REPORT.clean}
    named = set(re.findall(rf"(?:{program}|version) ([\d.]+)", claimed))
    assert named == known


def test_the_page_of_versions_is_made_of_the_report() -> None:
    assert [str(path) for path in stale_documents(REPORT)] == []


@pytest.mark.parametrize("name", SAME_EVERYWHERE)
def test_what_the_matrix_leaves_out_is_there(name: str) -> None:
    module, _, test = name.partition("::")
    text = (ROOT / f"tests/e2e/{module}.py").read_text()
    assert not test or re.search(rf"^(def|class) {test}\b", text, re.MULTILINE)


def test_a_module_a_class_and_a_test_are_left_out_by_their_names() -> None:
    assert reason("tests/e2e/test_chaos.py::test_a[b.py::c/d]")
    assert reason("tests/e2e/test_image.py::TestImage::test_licences_are_in_it")
    assert not reason("tests/e2e/test_image.py::TestRealContainers::test_nothing_of_it_stays_on_the_host")
    assert not reason("tests/e2e/test_scenario.py::test_all_containers_of_a_pod_get_one_card")
