"""Proxies are found in the environment as by kubectl."""

import pytest

from gpushare_cli.login.environment_proxy import proxy_of_environment

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_proxied"),
    [
        ("https://api.example", "", True),
        ("https://api.example", "other.example", True),
        ("https://api.example", "api.example", False),
        ("https://api.example", "example", False),
        ("https://api.example", " .example , x", False),
        ("https://api.example", "*.example", False),
        ("https://example", ".example", True),
        ("https://notexample", "example", True),
        ("https://api.example:6443", "api.example:6443", False),
        ("https://api.example", "api.example:6443", True),
        ("https://api.example", "*", False),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://10.1.2.3", "10.1.2.3", False),
        ("https://11.1.2.3", "10.0.0.0/8", True),
        ("https://127.0.0.1:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("https://localhost", "", False),
    ],
)
def test_a_server_is_reached_directly_where_no_proxy_says_so(
    server: str, no_proxy: str, is_proxied: bool
) -> None:
    found = proxy_of_environment(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy})
    assert found == (PROXY if is_proxied else None)


def test_the_proxy_is_that_of_the_scheme() -> None:
    assert proxy_of_environment("http://api", {"HTTPS_PROXY": PROXY}) is None
    assert proxy_of_environment("http://api", {"http_proxy": "proxy:3128"}) == PROXY
