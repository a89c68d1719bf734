"""Proxies are found in the environment as by kubectl."""

import pytest

from gpushare_cli.login.environment_proxy import proxy_of_environment

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxy"),
    [
        ("https://api.example", "", PROXY),
        ("https://api.example", "other.example", PROXY),
        ("https://api.example", "api.example", None),
        ("https://api.example", "example", None),
        ("https://api.example", " .example , x", None),
        ("https://api.example", "*.example", None),
        ("https://example", ".example", PROXY),
        ("https://notexample", "example", PROXY),
        ("https://api.example:6443", "api.example:6443", None),
        ("https://api.example", "api.example:6443", PROXY),
        ("https://api.example", "*", None),
        ("https://10.1.2.3", "10.0.0.0/8", None),
        ("https://10.1.2.3", "10.1.2.3", None),
        ("https://11.1.2.3", "10.0.0.0/8", PROXY),
        ("https://127.0.0.1:6443", "", None),
        ("https://[::1]:6443", "", None),
        ("https://localhost", "", None),
    ],
)
def test_a_server_is_reached_directly_where_no_proxy_says_so(
    server: str, no_proxy: str, proxy: str | None
) -> None:
    found = proxy_of_environment(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy})
    assert found == proxy


def test_the_proxy_is_that_of_the_scheme() -> None:
    assert proxy_of_environment("http://api", {"HTTPS_PROXY": PROXY}) is None
    assert proxy_of_environment("http://api", {"http_proxy": "proxy:3128"}) == PROXY
