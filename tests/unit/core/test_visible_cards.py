"""Which variables of an environment choose cards, and for whom."""

import pytest

from gpushare_core.audit.readers import read_pod
from gpushare_core.dialects.visible_cards import is_runtime_variable

RUNTIMES = [
    "NVIDIA_VISIBLE_DEVICES",
    "AMD_VISIBLE_DEVICES",
    "ASCEND_VISIBLE_DEVICES",
    "AWS_NEURON_VISIBLE_DEVICES",
    "ENFLAME_VISIBLE_DEVICES",
    "HABANA_VISIBLE_DEVICES",
    "ILUVATAR_COREX_VISIBLE_DEVICES",
    "METAX_VISIBLE_DEVICES",
    "MTHREADS_VISIBLE_DEVICES",
    "OF_A_VENDOR_TO_COME_VISIBLE_DEVICES",
    "DOCKER_RESOURCE_GPU",
]
APPLICATIONS = [
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_RBLN_RT_VISIBLE_DEVICES",
    "SDAA_VISIBLE_DEVICES",
    "TT_VISIBLE_DEVICES",
]
OTHERS = [
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "HABANA_VISIBLE_MODULES",
    "NEURON_RT_VISIBLE_CORES",
    "PATH",
]


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_runtime_reads_it(name: str) -> None:
    assert is_runtime_variable(name)


@pytest.mark.parametrize("name", [*APPLICATIONS, *OTHERS])
def test_only_an_application_reads_it(name: str) -> None:
    assert not is_runtime_variable(name)


def test_what_a_pod_s_author_sets_of_a_runtime_s_variables_is_read_from_all_its_containers() -> None:
    env = [{"name": name, "value": "0"} for name in (RUNTIMES[2], APPLICATIONS[0], "GPUSHARE_CARD")]
    containers = {kind: [{"name": kind, "env": env}] for kind in ("initContainers", "containers")}
    pod = read_pod({"metadata": {"namespace": "a", "name": "b", "uid": "c"}, "spec": containers})
    expected = {RUNTIMES[2]: "0", "GPUSHARE_CARD": "0"}
    assert pod.variables == {"initContainers": expected, "containers": expected}
