"""Row Driver: what a container is given, when a node is unable, and whether the limit is in force."""

from array import array

import pytest

from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.served import Problem
from gpushare_plugin.decide.held.checkpoint import GivenIsolation
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.isolation.driver import DRIVER, NOT_READ
from gpushare_plugin.decide.isolation.driver_cgroups import (
    LimitQuestion,
    NodeCgroups,
    driver_facts,
    limit_question,
    unnamed_cgroups,
    with_driver_use,
)
from gpushare_plugin.decide.isolation.kind import (
    CardLimit,
    DriverFacts,
    GrantedMemory,
    IsolatedShare,
    IsolationFacts,
)
from gpushare_plugin.decide.isolation.table import ISOLATION_KINDS
from gpushare_plugin.decide.use.cgroups import CgroupOwner
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse
from gpushare_plugin.devices.use import (
    NO_LIMIT,
    PROCESSES_UNKNOWN,
    CardCgroup,
    CgroupMemory,
    MemoryLimits,
)

GIB, MIB = 2**30, 2**20
UID = "5c1f3b0e-8a4d-4f0e-9d2a-7b6c5d4e3f21"
POD = PodName("default", "a")
MAIN, INIT = (ContainerShare(POD, UID, name, "GPU-a") for name in ("main", "init"))
X, SANDBOX, Y = (CgroupOwner(UID, letter * 64) for letter in "xsy")
NAMED = {X: "main", SANDBOX: ""}


def granted(*limits: int) -> GrantedMemory:
    cards = tuple(CardLimit(uuid=f"GPU-{place}", memory=memory) for place, memory in enumerate(limits))
    return GrantedMemory(numbers=(1, 2), limits=cards, context_memory=0, folder="")


@pytest.mark.parametrize(
    ("limits", "mebibytes"),
    [
        pytest.param([4 * GIB], "4096", id="one card"),
        pytest.param([8 * GIB, 6 * GIB], "6144", id="the smallest share"),
        pytest.param([GIB + MIB - 1], "1024", id="whole MiB, rounded down"),
    ],
)
def test_a_container_gets_two_variables_and_nothing_else(limits: list[int], mebibytes: str) -> None:
    equipment = DRIVER.equipment(granted(*limits))
    assert (equipment.mounts, equipment.files) == ((), {})
    assert equipment.variables == {
        "GPUSHARE_ISOLATION": "Driver",
        "NVIDIA_GPU_MEMORY_LIMIT": mebibytes,
        "NVIDIA_GPU_MEMORY_REQUEST": "0",
    }


def test_the_table_has_the_row() -> None:
    assert ISOLATION_KINDS[MemoryIsolation.DRIVER] is DRIVER


def isolated(*, given: int = 4 * GIB, memory: int = 4 * GIB) -> IsolatedShare:
    answered = GivenIsolation(kind=MemoryIsolation.DRIVER, memory=given)
    return IsolatedShare(share=MAIN, given=answered, numbers=array("I", [1]), memory=memory)


def facts(**driver: object) -> IsolationFacts:
    return IsolationFacts(driver=DriverFacts(**driver))  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [4 * GIB, GIB, 4 * GIB + 2 * MIB])
def test_the_given_limit_a_lower_or_a_rounded_one_is_in_force(limit: int) -> None:
    found = DRIVER.in_force(isolated(), facts(read_back={MAIN: limit}))
    assert (found.in_force, found.seen, found.limit) == (True, "", 4 * GIB)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        pytest.param(8 * GIB, "to 8Gi and not to 4Gi (does the pod set NVIDIA_GPU_MEMORY_LIMIT", id="higher"),
        pytest.param(
            NO_LIMIT, "no limit for it, and not 4Gi (NVIDIA's container toolkit is older", id="none"
        ),
    ],
)
def test_another_limit_is_told_with_what_to_do(limit: int, words: str) -> None:
    found = DRIVER.in_force(isolated(), facts(read_back={MAIN: limit}))
    assert found.in_force is False
    assert words in found.seen


def test_what_was_not_read_is_unknown_and_says_why() -> None:
    assert DRIVER.in_force(isolated(), facts()).seen == NOT_READ
    found = DRIVER.in_force(isolated(), facts(read_problem=Problem("X", "because")))
    assert (found.in_force, found.seen) == (None, "because")


def test_a_limit_that_nobody_knows_to_have_been_given_is_unknown() -> None:
    assert DRIVER.in_force(isolated(given=0), facts(read_back={MAIN: GIB})).in_force is None


def test_a_container_that_does_not_run_has_to_be_held_to_nothing() -> None:
    assert DRIVER.in_force(isolated(), facts(not_running=frozenset({MAIN}))).in_force is True


def test_a_share_that_is_larger_than_the_limit_is_told() -> None:
    found = DRIVER.in_force(isolated(memory=8 * GIB), facts(read_back={MAIN: 4 * GIB}))
    assert found.in_force is True
    assert "4Gi of a share of 8Gi" in found.seen


def node(**changes: object) -> NodeCgroups:
    containers = {X: ("/c/x",), SANDBOX: ("/c/s",)}
    return NodeCgroups(root="/c", **{"containers": containers, **changes})  # type: ignore[arg-type]


def asked(*cgroups: str) -> LimitQuestion:
    return LimitQuestion(cgroups={MAIN: (tuple(CardCgroup("GPU-a", cgroup) for cgroup in cgroups),)})


@pytest.mark.parametrize(
    ("limits", "cgroups", "has_hook", "reason", "words"),
    [
        pytest.param(MemoryLimits(supported=True), node(), None, "", "", id="able"),
        pytest.param(MemoryLimits(supported=True), node(), True, "", "", id="the hook is there"),
        pytest.param(
            MemoryLimits(version="580.159.04", supported=False),
            node(),
            None,
            "DriverTooOld",
            "driver 580.159.04 cannot limit the memory of containers: install one of the branch r615",
            id="an older driver",
        ),
        pytest.param(MemoryLimits(supported=False), node(), None, "DriverTooOld", "the NVIDIA driver cannot"),
        pytest.param(MemoryLimits(), node(), None, "DriverNotAsked", "CardsHealthy", id="no answer"),
        pytest.param(
            MemoryLimits(problem=Problem("DriverHung", "hung")), node(), None, "DriverHung", "hung", id="hung"
        ),
        pytest.param(
            MemoryLimits(supported=True, problem=Problem("LimitsUnknown", "one of them")),
            node(),
            None,
            "",
            "",
            id="one cgroup is unknown",
        ),
        pytest.param(
            MemoryLimits(supported=True),
            node(unified=False),
            None,
            "CgroupsOfVersion1",
            "systemd.unified_cgroup_hierarchy=1",
            id="cgroups of version 1",
        ),
        pytest.param(
            MemoryLimits(supported=True),
            node(),
            False,
            "ToolkitTooOld",
            "nvidia-ctk cdi generate",
            id="no hook in the specification",
        ),
    ],
)
def test_a_node_is_unable_with_a_reason_and_what_to_do(
    limits: MemoryLimits, cgroups: NodeCgroups, *, has_hook: bool | None, reason: str, words: str
) -> None:
    found = driver_facts(LimitQuestion(), limits, cgroups=cgroups, has_hook=has_hook)
    problem = DRIVER.unable(IsolationFacts(driver=found))
    assert (problem.reason if problem else "") == reason
    assert words in (problem.message if problem else "")


def test_of_a_containers_cgroup_and_the_one_below_the_lower_limit_counts() -> None:
    answers = {
        CardCgroup("GPU-a", "/c/x"): CgroupMemory(limit=NO_LIMIT),
        CardCgroup("GPU-a", "/c/x/container"): CgroupMemory(limit=4 * GIB, used=GIB),
    }
    limits = MemoryLimits(supported=True, cgroups=answers)
    found = driver_facts(asked("/c/x", "/c/x/container"), limits, cgroups=node(), has_hook=None)
    assert (found.read_back, found.used) == ({MAIN: 4 * GIB}, {MAIN: GIB})


def test_of_two_containers_of_one_name_the_higher_limit_counts_and_their_use_together() -> None:
    first, second = (CardCgroup("GPU-a", path) for path in ("/c/x", "/c/y"))
    question = LimitQuestion(cgroups={MAIN: ((first,), (second,))})
    answers = {
        first: CgroupMemory(limit=4 * GIB, used=GIB),
        second: CgroupMemory(limit=8 * GIB, used=2 * GIB),
    }
    limits = MemoryLimits(supported=True, cgroups=answers)
    found = driver_facts(question, limits, cgroups=node(), has_hook=None)
    assert (found.read_back, found.used) == ({MAIN: 8 * GIB}, {MAIN: 3 * GIB})


def test_a_limit_before_a_restart_says_nothing_of_the_container_after_it() -> None:
    first, second = (CardCgroup("GPU-a", path) for path in ("/c/x", "/c/y"))
    question = LimitQuestion(cgroups={MAIN: ((first,), (second,))})
    limits = MemoryLimits(supported=True, cgroups={first: CgroupMemory(limit=4 * GIB, used=GIB)})
    found = driver_facts(question, limits, cgroups=node(), has_hook=None)
    assert (found.read_back, found.used) == ({}, {})


def test_what_the_driver_does_not_say_is_missing() -> None:
    limits = MemoryLimits(supported=True, problem=Problem("LimitsUnknown", "why"))
    found = driver_facts(asked("/c/x"), limits, cgroups=node(), has_hook=None)
    assert (found.read_back, found.used, found.read_problem) == ({}, {}, limits.problem)


def test_a_container_is_asked_about_by_its_cgroups() -> None:
    cgroups = node(containers={X: ("/c/x", "/c/x/container"), SANDBOX: ("/c/s",)})
    question = limit_question([MAIN], cgroups, {}, NAMED)
    assert question.asked == [CardCgroup("GPU-a", "/c/x"), CardCgroup("GPU-a", "/c/x/container")]
    assert (question.problem, question.not_running) == (None, frozenset())


def test_a_container_that_ended_does_not_run() -> None:
    question = limit_question([MAIN, INIT], node(), {}, NAMED)
    assert (question.not_running, question.problem) == (frozenset({INIT}), None)


@pytest.mark.parametrize(
    ("containers", "names", "reason"),
    [
        pytest.param({}, {}, "CgroupsNotSeen", id="no cgroup of the pod"),
        pytest.param({X: ("/c/x",)}, {}, "ContainersNotNamed", id="the only cgroup has no name yet"),
        pytest.param(
            {X: ("/c/x",), SANDBOX: ("/c/s",), Y: ("/c/y",)},
            {X: "", SANDBOX: "", Y: "main"},
            "ContainersNotNamed",
            id="two that the pod does not list: one of them is no sandbox",
        ),
    ],
)
def test_a_container_whose_cgroup_is_not_known_is_not_one_that_does_not_run(
    containers: dict[CgroupOwner, tuple[str, ...]], names: dict[CgroupOwner, str], reason: str
) -> None:
    question = limit_question([INIT], node(containers=containers), {}, names)
    assert question.problem
    assert (question.problem.reason, question.not_running) == (reason, frozenset())
    assert "default/a" in question.problem.message


def test_a_static_pod_is_found_by_the_uid_that_the_kubelet_knows() -> None:
    owner = CgroupOwner("8f2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d", "a" * 64)
    cgroups, uids = node(containers={owner: ("/c/x",)}), {UID: owner.pod_uid}
    assert unnamed_cgroups([MAIN], cgroups, uids, {}) == {owner: POD}
    assert limit_question([MAIN], cgroups, uids, {owner: "main"}).asked == [CardCgroup("GPU-a", "/c/x")]


def test_a_containers_name_is_looked_up_once() -> None:
    assert unnamed_cgroups([MAIN], node(), {}, NAMED) == {}


def test_the_drivers_figure_counts_more_than_a_list_of_processes() -> None:
    other = ContainerShare(POD, UID, "other", "GPU-a")
    measured = MeasuredUse(
        cards={"GPU-a": 9 * GIB},
        containers={MAIN: GIB, other: 5 * GIB},
        requested={MAIN: 4 * GIB, other: 4 * GIB},
    )
    assert with_driver_use(measured, {MAIN: 3 * GIB}).containers == {MAIN: 3 * GIB, other: 5 * GIB}


@pytest.mark.parametrize(
    ("reason", "used", "stays"),
    [
        pytest.param(PROCESSES_UNKNOWN, {MAIN: GIB}, False, id="all containers are known"),
        pytest.param(PROCESSES_UNKNOWN, {}, True, id="one is not"),
        pytest.param("DriverHung", {MAIN: GIB}, True, id="another problem"),
    ],
)
def test_processes_are_missed_only_where_the_driver_does_not_know_a_container(
    reason: str, used: dict[ContainerShare, int], *, stays: bool
) -> None:
    measured = MeasuredUse(requested={MAIN: 4 * GIB}, problem=Problem(reason, "why"))
    assert (with_driver_use(measured, used).problem is not None) is stays
