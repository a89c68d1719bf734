"""Each distribution is recognized by what its nodes and pods show, and gets the backend that suits it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.preflight_facts import CLUSTERS, NO_PODS, RKE2_SCHEDULER, node, preflight_facts, scheduler

from gpushare_cli.decide.preflight.answer import Verdict
from gpushare_cli.decide.preflight.distributions import (
    BACKENDS_PAGE,
    DISTRIBUTIONS,
    KUBEADM,
    distribution_answer,
    recognized,
    recommended_backend,
)
from gpushare_cli.decide.preflight.facts import KubeletAnswers, PreflightFacts
from gpushare_cli.decide.preflight.scheduler import scheduler_answer
from gpushare_core.api.enums import Backend

PAGE = (Path(__file__).resolve().parents[4] / BACKENDS_PAGE).read_text()
SECTION = PAGE.partition("## On your distribution")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| ([^|`]+) \| `(\w+)`", SECTION, re.MULTILINE)
DOCUMENTED = {name: backend for names, backend in ROWS for name in names.split(", ")}
"""Distribution -> the backend that comes first in its row of the page that answers name."""
EDITABLE = {"kubeadm", "kind", "minikube"}


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_distribution_is_recognized(name: str) -> None:
    found = recognized(CLUSTERS[name])
    assert found is not None
    assert found.distribution.name == name
    assert found.sign


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_backend_is_the_one_that_can_work_there(name: str) -> None:
    backend = Backend.KUBE_SCHEDULER if name in EDITABLE else Backend.DEDICATED
    assert recommended_backend(CLUSTERS[name]) is backend


def test_every_distribution_of_the_table_has_a_cluster_here() -> None:
    assert {one.name for one in (*DISTRIBUTIONS, KUBEADM)} == set(CLUSTERS)


def test_the_page_has_a_section_on_every_distribution_and_the_same_backends() -> None:
    backends = {one.name: one.backend for one in (*DISTRIBUTIONS, KUBEADM)}
    assert DOCUMENTED.items() <= backends.items()
    assert [name for name in backends if name not in SECTION] == []


@pytest.mark.parametrize("name", ["k3s", "RKE2", "k0s", "EKS", "GKE"])
def test_a_control_plane_alone_is_recognized_by_its_version(name: str) -> None:
    found = recognized(replace(CLUSTERS[name], nodes=(), schedulers=()))
    assert found is not None
    assert found.distribution.name == name


def test_k3s_on_a_machine_of_a_cloud_is_k3s() -> None:
    cloud = node(provider="aws:///us-west-2a/i-0abc", kubeletVersion="v1.33.4+k3s1")
    found = recognized(preflight_facts(kubernetes="v1.33.4+k3s1", nodes=[cloud], schedulers=NO_PODS))
    assert found is not None
    assert found.distribution.name == "k3s"


def test_a_machine_of_a_cloud_alone_says_nothing_of_who_runs_the_control_plane() -> None:
    facts = preflight_facts(nodes=[node(provider="aws:///us-west-2a/i-0abc")])
    found = recognized(facts)
    assert found is not None
    assert found.distribution.name == "kubeadm"


@pytest.mark.parametrize("version", ["v1.33.4-eks-e386d34", "v1.33.4-gke.1134000"])
def test_a_cloud_that_runs_kube_scheduler_shows_none(version: str) -> None:
    """EKS Anywhere and Google Distributed Cloud have the versions of EKS and GKE."""
    facts = preflight_facts(kubernetes=version, nodes=[node(kubeletVersion=version)])
    assert distribution_answer(facts).found.startswith("kubeadm (flags of kube-scheduler-cp-1)")
    assert recommended_backend(facts) is Backend.KUBE_SCHEDULER
    assert recommended_backend(replace(facts, schedulers=())) is Backend.DEDICATED


def test_where_dedicated_suits_the_answer_says_how_to_install_it() -> None:
    answer = distribution_answer(CLUSTERS["EKS"])
    assert answer.verdict is Verdict.NOTE
    assert answer.found == "EKS (version v1.33.4-eks-e386d34): AWS runs kube-scheduler"
    assert answer.to_do.startswith("Take backend Dedicated, as in config/samples/managed-control-plane.yaml")
    assert answer.command.startswith("kubectl apply -k manifests/dedicated/ ")


def test_without_a_policy_that_points_pods_at_it_only_the_scheduler_is_installed() -> None:
    answer = distribution_answer(replace(CLUSTERS["EKS"], admission={}))
    assert answer.command.startswith("kubectl apply -k manifests/dedicated/scheduler/ ")


def test_an_unknown_distribution_gets_what_suits_the_kube_scheduler_that_is_seen() -> None:
    foreign = preflight_facts(schedulers=[RKE2_SCHEDULER])
    assert distribution_answer(foreign).verdict is Verdict.NOTE
    assert recommended_backend(foreign) is Backend.KUBE_SCHEDULER
    assert recommended_backend(replace(foreign, schedulers=())) is Backend.DEDICATED


KOPS_SCHEDULER = "--config=/var/lib/kube-scheduler/config.yaml"


@pytest.mark.parametrize(
    "facts",
    [
        preflight_facts(schedulers=[scheduler(KOPS_SCHEDULER)]),
        preflight_facts(kubelets=KubeletAnswers(static_pods={"cp-1": "/srv/manifests"})),
        preflight_facts(schedulers=[scheduler(), scheduler(node_name="cp-2", source="http")]),
    ],
)
def test_no_backend_is_recommended_that_cannot_edit_what_is_there(facts: PreflightFacts) -> None:
    answer = distribution_answer(facts)
    assert recommended_backend(facts) is Backend.DEDICATED
    assert answer.to_do.startswith("Take backend Dedicated")
    assert answer.command
    assert "cannot edit that" in scheduler_answer(facts).to_do


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v1.36.4-gke.100", "backend Dedicated needs none, and has engine Plugin here"),
        (
            "v1.33.4-gke.100",
            "needs none, and has engine Extender here: Plugin is for Kubernetes 1.35 to 1.37",
        ),
        ("", "backend Dedicated needs none"),
    ],
)
def test_which_engine_backend_dedicated_has_there_is_said(version: str, said: str) -> None:
    facts = preflight_facts(kubernetes=version, nodes=[node(kubeletVersion=version)], schedulers=NO_PODS)
    assert scheduler_answer(facts).found.endswith(said)


def test_on_rke2_another_folder_of_static_pods_is_no_obstacle() -> None:
    kubelets = KubeletAnswers(static_pods={"cp-1": "/var/lib/rancher/rke2/agent/pod-manifests"})
    assert scheduler_answer(replace(CLUSTERS["RKE2"], kubelets=kubelets)).verdict is Verdict.OK
