"""The image of our own kube-scheduler where a kubelet cannot get or run it, and what to do then."""

PULL_FAILURES = (
    "ErrImagePull",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "ImageInspectError",
    "InvalidImageName",
    "RegistryUnavailable",
    "SignatureValidationFailed",
)
"""Source: ``k8s.io/kubernetes/pkg/kubelet/images/types.go``."""
START_FAILURES = ("exec format error", "executable file not found")
"""Said where the image is for another architecture, or is not ours. Source: runc."""
WITHOUT_OUR_IMAGE = (
    "put an image for the node's architecture there, name another repository with the operator's"
    " option --engine-image, or set scheduler.engine to Extender, which does not need this image"
)


def cannot_be_pulled(why_waiting: str) -> bool:
    """Returns whether a container waits because its kubelet cannot get an image."""
    return why_waiting.partition(":")[0] in PULL_FAILURES


def cannot_be_run(why: str) -> bool:
    """Returns whether a container does not run because of its image: it cannot be pulled, or not started."""
    return cannot_be_pulled(why) or any(failure in why for failure in START_FAILURES)
