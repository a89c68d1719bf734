"""Which namespace, which proxy and which credentials a command has."""

import json
from pathlib import Path

import pytest
from tests.fakes.extender_keys import PAIRS
from tests.unit.cli.login.options import login_options

from gpushare_cli.login.cluster_login import cluster_login
from gpushare_core.kube.client import REQUEST_TIMEOUT
from gpushare_core.kube.credentials import NoCredentialsError

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": "/nowhere"}


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("of the pod")
    (tmp_path / "namespace").write_text("of-the-pod\n")
    (tmp_path / "ca.crt").write_bytes((PAIRS / "first" / "ca.pem").read_bytes())
    return tmp_path


def written(folder: Path, *, namespace: str = "", user: object = None, cluster: object = None) -> str:
    path = folder / "kubeconfig"
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
        "clusters": [{"name": "c", "cluster": cluster or {"server": "https://10.0.0.2"}}],
        "users": [{"name": "u", "user": user or {"token": "of a person"}}],
    }
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "of_context", "environment", "namespace"),
    [
        pytest.param(["-n", "mine"], "c", POD, "mine", id="argument"),
        pytest.param([], "c", POD, "c", id="context"),
        pytest.param([], "", POD, "of-the-pod", id="ServiceAccount"),
        pytest.param([], "", {**POD, "POD_NAMESPACE": "said"}, "said", id="variable of the pod"),
        pytest.param([], "", {"POD_NAMESPACE": "said"}, "default", id="no pod"),
    ],
)
def test_the_namespace_is_the_first_that_is_known(
    service_account: Path, arguments: list[str], of_context: str, environment: dict[str, str], namespace: str
) -> None:
    options = login_options("--kubeconfig", written(service_account, namespace=of_context), *arguments)
    assert cluster_login(options, environment, service_account=service_account).namespace == namespace


def test_in_a_pod_without_a_kubeconfig_it_is_the_service_account(service_account: Path) -> None:
    login = cluster_login(login_options("--as", "anna"), POD, service_account=service_account)
    assert (login.credentials.server, login.credentials.token()) == ("https://10.0.0.1:443", "of the pod")
    assert login.credentials.headers == (("Impersonate-User", "anna"),)
    assert login.namespace == "of-the-pod"


def test_nowhere_it_says_where_it_has_looked(tmp_path: Path) -> None:
    with pytest.raises(NoCredentialsError, match=r"looked for /nowhere/\.kube/config"):
        cluster_login(login_options(), {"HOME": "/nowhere"}, service_account=tmp_path)


@pytest.mark.parametrize(
    ("cluster", "proxy"),
    [
        pytest.param({"server": "https://10.0.0.2"}, "http://of-environment:1", id="environment"),
        pytest.param({"server": "https://10.0.0.2", "proxy-url": "http://own:1"}, "http://own:1", id="own"),
        pytest.param({"server": "https://127.0.0.1"}, None, id="this machine"),
    ],
)
def test_the_proxy_is_the_kubeconfigs_else_that_of_the_environment(
    tmp_path: Path, cluster: dict[str, str], proxy: str | None
) -> None:
    options = login_options("--kubeconfig", written(tmp_path, cluster=cluster))
    login = cluster_login(options, {"HTTPS_PROXY": "of-environment:1"}, service_account=tmp_path)
    assert login.credentials.proxy == proxy


def test_a_password_is_sent_as_basic_authentication(tmp_path: Path) -> None:
    options = login_options("--kubeconfig", written(tmp_path, user={"username": "u", "password": "p"}))
    login = cluster_login(options, {}, service_account=tmp_path)
    assert login.credentials.token() == "Basic dTpw"


@pytest.mark.parametrize(("time", "seconds"), [("0", REQUEST_TIMEOUT), ("2m", 120.0)])
def test_a_request_may_take_as_long_as_is_said(tmp_path: Path, time: str, seconds: float) -> None:
    options = login_options("--kubeconfig", written(tmp_path), "--request-timeout", time)
    assert cluster_login(options, {}, service_account=tmp_path).timeout == seconds


@pytest.mark.parametrize(
    ("user", "said"),
    [
        pytest.param(
            {"tokenFile": "gone"}, "user 'u' of context 'here' cannot be used: .*gone", id="no file"
        ),
        pytest.param({"token": 5}, "cannot be used: token is no text", id="a number"),
    ],
)
def test_a_user_that_cannot_be_used_is_named(tmp_path: Path, user: dict[str, object], said: str) -> None:
    with pytest.raises(NoCredentialsError, match=said):
        cluster_login(login_options("--kubeconfig", written(tmp_path, user=user)), {})
