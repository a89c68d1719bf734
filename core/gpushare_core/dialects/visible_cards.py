"""Environment variables that choose cards, and who reads them: a container runtime, or an application.

A container runtime adds the cards to a container that its variable names, so a pod must not set it. An
application's variable chooses among the cards that the container has already: pods set it as they like.

manifests/admission-pods.yaml repeats what is here; a test compares the two.
"""

NVIDIA_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
NO_CARDS = frozenset({"", "void", "none"})
"""Values of ``NVIDIA_VARIABLE`` with which the runtime shows no card. Source: NVIDIA's container toolkit.

No document says what other vendors' runtimes do with these values.
"""
RUNTIME_SUFFIX = "_VISIBLE_DEVICES"
"""Ends the names that runtimes read: those of AMD, ASCEND, ENFLAME, HABANA, METAX, MTHREADS and others."""
RUNTIME_VARIABLES = frozenset({"DOCKER_RESOURCE_GPU"})
"""Other names that runtimes read: ``swarm-resource`` of NVIDIA's configuration."""
APPLICATION_VARIABLES = frozenset(
    {
        "ASCEND_RT_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "MACA_VISIBLE_DEVICES",
        "MLU_VISIBLE_DEVICES",
        "MUSA_VISIBLE_DEVICES",
        "NPU_VISIBLE_DEVICES",
        "QAIC_VISIBLE_DEVICES",
        "RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES",
        "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
        "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES",
        "RAY_EXPERIMENTAL_NOSET_RBLN_RT_VISIBLE_DEVICES",
        "RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "SDAA_VISIBLE_DEVICES",
        "SUPA_VISIBLE_DEVICES",
        "TOPS_VISIBLE_DEVICES",
        "TPU_VISIBLE_DEVICES",
        "TT_VISIBLE_DEVICES",
        "TXDA_VISIBLE_DEVICES",
        "XPU_VISIBLE_DEVICES",
    }
)
"""Names with ``RUNTIME_SUFFIX`` that only libraries inside a container read: the vendors', and Ray."""


def is_runtime_variable(name: str) -> bool:
    """Whether a container runtime may read the variable, and show a container the cards in it."""
    has_suffix = name.endswith(RUNTIME_SUFFIX) and name not in APPLICATION_VARIABLES
    return has_suffix or name in RUNTIME_VARIABLES


def hides_cards(name: str, value: str) -> bool:
    """Whether a runtime shows no card because of this variable."""
    return name == NVIDIA_VARIABLE and value in NO_CARDS
