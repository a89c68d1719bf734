"""Where kube-scheduler is asked how it is."""

import pytest

from gpushare_hostctl.decide.scheduler import manifest
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint, find
from gpushare_hostctl.errors import NeedsPersonError

LATE = b"delayCacheUntilActive: true\n"


def endpoint_of(*flags: str, config: bytes | None = None) -> HealthEndpoint | None:
    words = "".join(f"    - '{flag}'\n" for flag in ("kube-scheduler", *flags))
    text = f"kind: Pod\nspec:\n  containers:\n  - command:\n{words}"
    return find(manifest.parse(text.encode()), config=config)


@pytest.mark.parametrize(
    ("flags", "url"),
    [
        pytest.param([], "https://127.0.0.1:10259/readyz", id="by default"),
        pytest.param(["--secure-port=1"], "https://127.0.0.1:1/readyz", id="another port"),
        pytest.param(["--bind-address=0.0.0.0"], "https://127.0.0.1:10259/readyz", id="any address"),
        pytest.param(["--bind-address=10.0.0.1"], "https://10.0.0.1:10259/readyz", id="one address"),
        pytest.param(["--bind-address=::"], "https://[::1]:10259/readyz", id="any IPv6 address"),
    ],
)
def test_the_address_follows_from_the_flags(flags: list[str], url: str) -> None:
    endpoint = endpoint_of(*flags)

    assert endpoint is not None
    assert endpoint.url == url


def test_without_https_there_is_no_endpoint() -> None:
    assert endpoint_of("--secure-port=0") is None


def test_a_scheduler_that_is_ready_only_as_leader_is_asked_whether_it_lives() -> None:
    endpoint = endpoint_of(config=LATE)

    assert endpoint is not None
    assert endpoint.path == "/livez"


@pytest.mark.parametrize(
    ("flag", "lasting"),
    [
        pytest.param("--v=2", False, id="in memory by default"),
        pytest.param("--tls-cert-file=/c", True, id="a file"),
        pytest.param("--cert-dir=/c", True, id="a folder"),
    ],
)
def test_certificates_from_files_outlast_a_process(flag: str, lasting: bool) -> None:  # noqa: FBT001
    endpoint = endpoint_of(flag)

    assert endpoint is not None
    assert endpoint.lasting_certificate is lasting


@pytest.mark.parametrize("port", ["x", "-1", "70000"])
def test_a_port_that_is_none_needs_a_person(port: str) -> None:
    with pytest.raises(NeedsPersonError, match="not a port"):
        endpoint_of(f"--secure-port={port}")
