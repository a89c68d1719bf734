"""Environment variables that choose cards, and who reads them: a container runtime, or an application.

A container runtime adds the cards to a container that its variable names, so a pod must not set it. An
application's variable chooses among the cards that the container has already: pods set it as they like.

manifests/admission-pods.yaml repeats what is here; a test compares the two.
"""

NVIDIA_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
NO_CARDS = frozenset({"", "void", "none"})
"""With one of these in ``NVIDIA_VARIABLE`` the runtime shows no card. Source: NVIDIA's container toolkit.

Of other vendors' runtimes no document says what they make of these values.
"""
RUNTIME_SUFFIX = "_VISIBLE_DEVICES"
"""Ends the names that runtimes read: those of AMD, ASCEND, ENFLAME, HABANA, METAX, MTHREADS and others."""
RUNTIME_VARIABLES = frozenset({"DOCKER_RESOURCE_GPU"})
"""Names of another shape that runtimes read. This one is ``swarm-resource`` of NVIDIA's configuration."""
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
        "ROCR_VISIBLE_DEVICES",
        "SUPA_VISIBLE_DEVICES",
        "TOPS_VISIBLE_DEVICES",
        "TPU_VISIBLE_DEVICES",
        "TXDA_VISIBLE_DEVICES",
        "XPU_VISIBLE_DEVICES",
    }
)
"""Names with ``RUNTIME_SUFFIX`` that only the vendors' libraries inside a container read."""
APPLICATION_PREFIX = "RAY_EXPERIMENTAL_NOSET_"
"""Begins switches of Ray, such as RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES; they name no cards."""


def is_runtime_variable(name: str) -> bool:
    """Whether a container runtime may read the variable ``name`` and show a container the cards in it."""
    if name in RUNTIME_VARIABLES:
        return True
    return name.endswith(RUNTIME_SUFFIX) and not is_application_variable(name)


def is_application_variable(name: str) -> bool:
    """Whether ``name`` has the shape of a runtime's variable, and is known to be an application's."""
    return name in APPLICATION_VARIABLES or name.startswith(APPLICATION_PREFIX)


def hides_cards(name: str, value: str) -> bool:
    """Whether a container with this variable sees no card by it."""
    return name == NVIDIA_VARIABLE and value in NO_CARDS
