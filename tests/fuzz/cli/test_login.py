"""Kubeconfigs, what plugins and providers print, and proxies of the environment: usable, or refused with a
reason."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import encoded, mutated, odd_texts
from tests.fuzz.strategies.yaml_text import damaged_yaml
from tests.unit.cli.login.options import login_options

from gpushare_cli.login.cluster_login import cluster_login
from gpushare_cli.login.duration import MAX_SECONDS, read_duration
from gpushare_cli.login.environment_proxy import proxy_of_environment
from gpushare_cli.login.exec_plugin import VERSIONS, read_credential
from gpushare_cli.login.oidc import OidcDiscovery, OidcTokens, decoded_answer, expiry
from gpushare_cli.login.renewal import LoginCredential, RenewedLogin
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.tls import TlsParts
from gpushare_core.text.json_object import UNREADABLE_JSON

NOW = datetime(2026, 1, 1, tzinfo=UTC)
USERS = {
    "token": {"token": "t", "as": "a", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}},
    "password": {"username": "u", "password": "p"},
    "exec": {
        "exec": {
            "apiVersion": VERSIONS[0],
            "command": "no-such-program",
            "args": ["a"],
            "env": [{"name": "N", "value": "v"}],
            "interactiveMode": "Never",
            "provideClusterInfo": True,
            "installHint": "hint",
        }
    },
    "oidc": {
        "auth-provider": {
            "name": "oidc",
            "config": {"client-id": "c", "idp-issuer-url": "https://i", "id-token": "e30.e30.e30"},
        }
    },
}
CLUSTER = {
    "server": "https://127.0.0.1:1",
    "insecure-skip-tls-verify": True,
    "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"a": "b"}}],
}


def config(user: str) -> dict[str, object]:
    return {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x", "namespace": "n"}}],
        "clusters": [{"name": "x", "cluster": CLUSTER}],
        "users": [{"name": "x", "user": USERS[user]}],
    }


configs = st.sampled_from([*USERS]).flatmap(lambda user: encoded(mutated(config(user))))
texts = damaged_yaml(st.sampled_from([*USERS]).map(lambda user: json.dumps(config(user), indent=1)))


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "kubeconfig"


@fuzzes(cluster_login, few=60)
@given(configs | texts.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_a_kubeconfig_logs_in_or_is_refused_with_a_reason(kubeconfig: Path, content: bytes) -> None:
    kubeconfig.write_bytes(content)
    try:
        login = cluster_login(login_options("--kubeconfig", str(kubeconfig)), {"HTTPS_PROXY": "p:1"})
    except NoCredentialsError as error:
        assert str(error)
    else:
        assert isinstance(login.namespace, str)
        assert all(isinstance(text, str) for header in login.credentials.headers for text in header)


PRINTED = {
    "apiVersion": VERSIONS[0],
    "kind": "ExecCredential",
    "status": {
        "token": "t",
        "expirationTimestamp": "2026-01-01T01:00:00Z",
        "clientCertificateData": "c",
        "clientKeyData": "k",
    },
}


@fuzzes(read_credential)
@given(encoded(mutated(PRINTED)))
@example(
    json.dumps({**PRINTED, "status": {"token": "t", "expirationTimestamp": "0001-01-01T00:00:00Z"}}).encode()
)
@example(
    json.dumps({**PRINTED, "status": {"token": "t", "expirationTimestamp": "9999-12-31T23:59:59Z"}}).encode()
)
@example(json.dumps({**PRINTED, "status": {"token": "\ud800"}}).encode())
def test_what_a_plugin_prints_is_a_credential_or_refused_with_a_reason(content: bytes) -> None:
    try:
        credential = read_credential(content, VERSIONS[0])
    except ValueError as error:
        assert str(error)
    else:
        asyncio.run(_use(credential))


async def _use(credential: LoginCredential) -> None:
    async def get() -> LoginCredential:
        return credential

    login = RenewedLogin(
        get=get, trust=TlsParts(), server="https://api", who="u", advice="a", now=lambda: NOW
    )
    try:
        assert await login.prepared() == 1
        await login.prepared()
    except NoCredentialsError as error:
        assert str(error)


@fuzzes(expiry)
@given(encoded(mutated({"exp": 1.0})) | st.binary(max_size=9))
@example(b'{"exp": 1e300}')
@example(b'{"exp": -1e15}')
def test_when_an_id_token_expires_is_known_or_unknown(payload: bytes) -> None:
    from base64 import urlsafe_b64encode

    for text in (urlsafe_b64encode(payload).decode().rstrip("="), payload.decode(errors="replace")):
        found = expiry(f"a.{text}.b")
        assert found is None or found.tzinfo


@fuzzes(decoded_answer)
@given(encoded(mutated({"token_endpoint": "https://x", "id_token": "t"})), st.sampled_from([200, 400]))
def test_what_a_provider_answers_is_read_or_refused_with_a_reason(content: bytes, status: int) -> None:
    for shape in (OidcDiscovery, OidcTokens):
        try:
            decoded_answer(status, content, shape)
        except UNREADABLE_JSON as error:
            assert str(error)


@fuzzes(read_duration)
@given(odd_texts | st.text("0123456789.+-hmsnuµ", max_size=12))
def test_a_time_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        assert 0 <= read_duration(text) <= MAX_SECONDS
    except ValueError as error:
        assert str(error)


@fuzzes(proxy_of_environment)
@given(odd_texts, odd_texts | st.text("0123456789./:*,a", max_size=20))
def test_a_proxy_is_found_or_not(proxy: str, no_proxy: str) -> None:
    for server in ("https://api.example:6443", "https://10.0.0.1", "http://[::2]"):
        try:
            found = proxy_of_environment(server, {"HTTPS_PROXY": proxy, "NO_PROXY": no_proxy})
        except ValueError as error:
            assert "its proxy cannot be used" in str(error)
        else:
            assert found is None or "://" in found
