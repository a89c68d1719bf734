"""Who the operator is at the API server."""

import ssl
from pathlib import Path

import pytest
import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException
from tests.fakes.operator_server import kubeconfig_for

from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.text.json_object import Json
from gpushare_operator import main as operator
from gpushare_operator.process.login import credentials_of, login


def test_a_token_that_was_renewed_is_used_for_the_next_request() -> None:
    tokens = iter(["Bearer first", "Bearer second"])

    def refresh(configuration: Configuration) -> None:
        configuration.api_key["BearerToken"] = next(tokens)

    configuration = Configuration(host="https://10.0.0.1")
    configuration.refresh_api_key_hook = refresh
    credentials = credentials_of(configuration)
    assert [credentials.token(), credentials.token()] == ["first", "second"]


def test_a_token_that_cannot_be_read_for_the_moment_leaves_the_one_before() -> None:
    """It ended whatever asked for the request, as nothing that a call may end with."""

    def refresh(_: Configuration) -> None:
        raise ConfigException("Token file exists but empty.")

    configuration = Configuration(host="https://10.0.0.1")
    configuration.api_key["BearerToken"] = "Bearer before"
    configuration.refresh_api_key_hook = refresh
    assert credentials_of(configuration).token() == "before"


async def test_a_kubeconfig_gives_server_token_and_trust(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"server": "https://10.0.0.1:6443", "insecure-skip-tls-verify": True}
    config = {**kubeconfig_for("it"), "clusters": [{"name": "it", "cluster": cluster}]}
    kubeconfig.write_text(yaml.safe_dump(config))
    credentials = await login(kubeconfig)
    assert (credentials.server, credentials.token()) == ("https://10.0.0.1:6443", "secret")
    assert credentials.tls().verify_mode is ssl.CERT_NONE


def test_a_password_is_sent_as_it_is() -> None:
    configuration = Configuration(host="https://10.0.0.1")
    configuration.api_key["BearerToken"] = "Basic dTpw"
    assert credentials_of(configuration).token() == "Basic dTpw"


def test_the_certificate_may_have_to_name_another_server() -> None:
    configuration = Configuration(host="https://10.0.0.1")
    configuration.tls_server_name = "kubernetes"
    assert credentials_of(configuration).server_name == "kubernetes"


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"client-certificate-data": "eHl6", "client-key-data": "eHl6"}, id="client certificate"),
        pytest.param({}, id="authority"),
    ],
)
async def test_certificates_that_cannot_be_used_are_named(tmp_path: Path, user: Json) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"server": "https://10.0.0.1:6443", **({} if user else {"certificate-authority-data": "eHl6"})}
    users = [{"name": "it", "user": user}]
    clusters = [{"name": "it", "cluster": cluster}]
    kubeconfig.write_text(yaml.safe_dump({**kubeconfig_for("it"), "users": users, "clusters": clusters}))
    with pytest.raises(NoCredentialsError, match=r"certificates for https://10\.0\.0\.1:6443"):
        await login(kubeconfig)


@pytest.mark.parametrize(
    ("named", "environment", "proxy"),
    [
        pytest.param("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:1", id="kubeconfig"),
        pytest.param(None, "http://127.0.0.1:2", "http://127.0.0.1:2", id="environment"),
        pytest.param(None, "", None, id="none"),
    ],
)
def test_a_proxy_comes_from_the_kubeconfig_or_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, named: str | None, environment: str, proxy: str | None
) -> None:
    monkeypatch.setenv("https_proxy", environment)
    monkeypatch.setenv("no_proxy", "10.0.0.2")
    configuration = Configuration(host="https://10.0.0.1")
    configuration.proxy = named
    assert credentials_of(configuration).proxy == proxy
    elsewhere = Configuration(host="https://10.0.0.2")
    assert credentials_of(elsewhere).proxy is None


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("a: [", id="no YAML"),
        pytest.param("current-context: it", id="no contexts"),
    ],
)
async def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, content: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(content)
    with pytest.raises(NoCredentialsError, match=f"{kubeconfig} is no usable kubeconfig"):
        await login(kubeconfig)


async def test_outside_a_cluster_without_a_kubeconfig_nobody_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NoCredentialsError):
        await login(None)


def test_the_program_says_why_it_cannot_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(operator, "configure_logging", lambda _: None)
    assert operator.main([]) == 1
    assert "not in a pod with a ServiceAccount, give --kubeconfig" in caplog.text
