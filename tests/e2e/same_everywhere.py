"""End-to-end tests that show the same on every version of Kubernetes, each with the reason.

``make matrix`` leaves them out, by the mark ``same_everywhere``; ``make test`` runs them, on one version.
"""

from collections.abc import Mapping
from pathlib import Path

SAME_EVERYWHERE: Mapping[str, str] = {
    "test_chaos": "looks for differences in our own books, at random and for minutes",
    "test_cli_inspect": "tables of what our own objects say",
    "test_cli_isolation": "sentences on what our own objects say",
    "test_cli_login": "kubeconfigs and programs that log in, on the client's side",
    "test_cli_simulate": "the placement is the extender's own code",
    "test_cli_undo": "does by a command what test_lifecycle does without",
    "test_client": "archives, wheels, krew and pip",
    "test_image::TestImage": "the image is files",
    "test_interruptions": "what a killed operator leaves to the next one is in our own objects",
    "test_isolation_driver": "NVIDIA's toolkit and driver below the container runtime",
    "test_isolation_evict": "the Eviction API's part is in test_preemption",
    "test_isolation_excess": "CUDA's functions in a container",
    "test_isolation_hook": "CUDA's functions in a container",
    "test_measured_use": "figures that our plugin reads and our operator shows",
    "test_monitoring": "Prometheus and what our programs tell it",
    "test_operator_replicas": "several operators and their Lease",
    "test_scheduler_reconnection": "when the operator edits again; the edits are those of test_lifecycle",
    "test_upgrade": "older programs of ours beside newer ones",
    "test_web": "the page shows what other commands read",
    "test_backends::test_volcanos_config_map_is_edited_repaired_and_restored": "a ConfigMap of Volcano's",
    "test_backends::test_volcanos_own_scheduler_chooses_cards_and_our_plugin_follows":
        "Volcano's scheduler has a Kubernetes of its own inside",
}  # fmt: skip
"""A module, or a test or class in it -> why no version of Kubernetes makes a difference."""


def reason(test: str) -> str | None:
    """Returns why ``test``, a name as pytest has it, is the same everywhere; None where it is not."""
    path, *parts = test.partition("[")[0].split("::")
    parts = [Path(path).stem, *parts]
    names = ("::".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((SAME_EVERYWHERE[name] for name in names if name in SAME_EVERYWHERE), None)
