"""What the Kubernetes of the tests has, by the product's own table."""

import pytest

from gpushare_core.kubernetes_minors import FEATURES, KubernetesFeature, KubernetesMinor
from gpushare_localcluster.build.minors import Minor

MUTATING_POLICY = "MutatingAdmissionPolicy"
POD_LEVEL_RESOURCES = "PodLevelResources"
NOMINATION_ENDS = "End of a nomination"
STATUS_RATCHETING = "CRDValidationRatcheting of a status"


def feature(name: str) -> KubernetesFeature:
    features = (feature for area in FEATURES.values() for feature in area)
    (found,) = (feature for feature in features if feature.name == name)
    return found


def is_on(name: str, minor: Minor) -> bool:
    """Returns whether the feature is on where nobody has switched it."""
    return feature(name).is_on_in(KubernetesMinor(minor.major, minor.number))


def skip_unless_pods_are_pointed(minor: Minor) -> None:
    """Skips where the server has nothing that points pods at a scheduler of our own."""
    if not is_on(MUTATING_POLICY, minor):
        pytest.skip(f"{MUTATING_POLICY} is off in {minor.name}; test_kubernetes_upgrade switches it on")
