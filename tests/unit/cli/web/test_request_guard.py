"""Which requests are answered."""

import pytest

from gpushare_cli.web.request_guard import SECURITY_HEADERS, RequestGuard

GUARD = RequestGuard("secret", 8899)
HOST = {"Host": "127.0.0.1:8899"}


def test_the_address_has_the_token() -> None:
    assert GUARD.url == "http://127.0.0.1:8899/secret/"


def test_browsers_leave_out_the_port_of_http() -> None:
    guard = RequestGuard("secret", 80)
    headers = {"Host": "127.0.0.1", "Origin": "http://127.0.0.1"}
    assert (guard.url, guard.refusal("GET", "/secret/", headers)) == ("http://127.0.0.1/secret/", None)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param(HOST, None, id="ours"),
        pytest.param({**HOST, "Origin": "http://127.0.0.1:8899"}, None, id="our own script"),
        pytest.param({**HOST, "Sec-Fetch-Site": "same-origin"}, None, id="our own page"),
        pytest.param({}, 421, id="no Host"),
        pytest.param({"Host": "127.0.0.1:8899.evil.example"}, 421, id="a Host that begins as ours"),
        pytest.param({**HOST, "Origin": "http://127.0.0.1:8900"}, 403, id="another port"),
        pytest.param({**HOST, "Origin": "https://127.0.0.1:8899"}, 403, id="another scheme"),
        pytest.param({**HOST, "Origin": ""}, 403, id="an empty origin"),
        pytest.param({**HOST, "Sec-Fetch-Site": "cross-site"}, 403, id="another site"),
    ],
)
def test_host_and_origin(headers: dict[str, str], status: int | None) -> None:
    refusal = GUARD.refusal("GET", "/secret/", headers)
    assert (refusal and refusal.status) == status


@pytest.mark.parametrize(
    "path", ["/", "/secre/", "/secret1/", "/SECRET/", "//secret/", "/x/secret/", "/\u017fecret/"]
)
def test_another_token_is_no_page(path: str) -> None:
    refusal = GUARD.refusal("POST", path, HOST)
    assert refusal
    assert refusal.status == 404


def test_the_policy_lets_nothing_in_but_our_own_files() -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in SECURITY_HEADERS["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert (policy["trusted-types"], policy["require-trusted-types-for"]) == ("'none'", "'script'")
