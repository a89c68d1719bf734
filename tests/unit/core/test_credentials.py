"""How the API server is found, and what is said when it cannot be."""

import base64
import json
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes.extender_keys import PAIRS

from gpushare_core.kube.credentials import (
    NoCredentialsError,
    find_credentials,
    from_kubeconfig,
    in_cluster,
)
from gpushare_core.text.json_object import Json


def kubeconfig(*, cluster: Json | None = None, user: Json | None = None) -> Json:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }


def written(folder: Path, content: str) -> Path:
    path = folder / "kubeconfig"
    path.write_text(content)
    return path


def test_a_kubeconfig_names_the_server_and_the_token(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(kubeconfig(user={"token": "secret"})))
    found = find_credentials(path)
    assert (found.server, found.token()) == ("https://127.0.0.1:6443", "secret")
    assert found.tls().verify_mode is ssl.CERT_REQUIRED


def test_a_kubeconfig_may_name_a_proxy_and_what_the_certificate_says(tmp_path: Path) -> None:
    cluster = {"tls-server-name": "kubernetes", "proxy-url": "http://127.0.0.1:3128"}
    found = find_credentials(written(tmp_path, json.dumps(kubeconfig(cluster=cluster))))
    assert (found.server_name, found.proxy) == ("kubernetes", "http://127.0.0.1:3128")


def test_files_in_a_kubeconfig_are_named_from_where_it_lies(tmp_path: Path) -> None:
    shutil.copy(PAIRS / "first" / "ca.pem", tmp_path / "ca.pem")
    (tmp_path / "token").write_text("in a file")
    user = {"token": "beside it", "tokenFile": "token"}
    path = written(tmp_path, json.dumps(kubeconfig(cluster={"certificate-authority": "ca.pem"}, user=user)))
    found = from_kubeconfig(path)
    assert found.token() == "in a file"
    assert len(found.tls().get_ca_certs()) == 1


def test_a_kubeconfig_may_have_many_clusters(tmp_path: Path) -> None:
    here = kubeconfig(user={"token": "secret"})
    others = [{"name": f"other-{number}", "user": {"token": "x" * 5000}} for number in range(60)]
    path = written(tmp_path, json.dumps({**here, "users": [*here["users"], *others]}))
    assert from_kubeconfig(path).token() == "secret"


def test_a_kubeconfig_of_json_is_read_without_the_library_for_yaml(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(kubeconfig(user={"token": "secret"})))
    asked = (
        "import sys; from pathlib import Path; from gpushare_core.kube.credentials import from_kubeconfig;"
        f"print(from_kubeconfig(Path({str(path)!r})).token(), 'yaml' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", asked], text=True).split() == ["secret", "False"]


def test_a_kubeconfig_in_the_style_of_json_that_is_yaml_alone_is_read(tmp_path: Path) -> None:
    flow = json.dumps(kubeconfig(user={"token": "secret"})).replace('"current-context"', "current-context")
    assert from_kubeconfig(written(tmp_path, flow)).token() == "secret"


def test_a_server_is_trusted_blindly_only_where_the_kubeconfig_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(kubeconfig(cluster={"insecure-skip-tls-verify": True})))
    assert from_kubeconfig(path).tls().verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize("name", ["server", "proxy-url"])
def test_a_password_in_a_url_is_not_said(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, json.dumps(kubeconfig(cluster={name: "ftp://me:secret@host"})))
    with pytest.raises(NoCredentialsError, match=r"ftp://\.\.\.@host") as refused:
        from_kubeconfig(path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="a list"),
        pytest.param("{", id="no YAML"),
        pytest.param("a: b", id="nothing of what is needed"),
        pytest.param(json.dumps({**kubeconfig(), "current-context": "there"}), id="no such context"),
        pytest.param(
            json.dumps(kubeconfig(cluster={"certificate-authority-data": "x"})), id="authority no base64"
        ),
        pytest.param(
            json.dumps(kubeconfig(cluster={"certificate-authority-data": "eHl6"})), id="authority no PEM"
        ),
        pytest.param(json.dumps(kubeconfig(user={"client-certificate": "/no/such"})), id="no certificate"),
        pytest.param(json.dumps(kubeconfig(cluster={"server": None})), id="no server"),
        pytest.param(json.dumps(kubeconfig(cluster={"server": "10.0.0.1:6443"})), id="no scheme"),
        pytest.param(json.dumps(kubeconfig(cluster={"server": "https://[::1"})), id="no host"),
        pytest.param(json.dumps(kubeconfig(cluster={"server": "https://api:x"})), id="no port"),
        pytest.param(json.dumps(kubeconfig(cluster={"server": "https://a..b"})), id="no name of a host"),
        pytest.param(json.dumps(kubeconfig(cluster={"tls-server-name": ".a"})), id="no name of a server"),
        pytest.param(
            json.dumps(kubeconfig(cluster={"proxy-url": "socks5://127.0.0.1:1"})), id="a proxy of SOCKS"
        ),
        pytest.param(
            json.dumps(kubeconfig(cluster={"insecure-skip-tls-verify": "false"})), id="trust that is a text"
        ),
        pytest.param(
            json.dumps(
                kubeconfig(
                    cluster={
                        "insecure-skip-tls-verify": True,
                        "certificate-authority-data": base64.b64encode(
                            (PAIRS / "first" / "ca.pem").read_bytes()
                        ).decode(),
                    }
                )
            ),
            id="an authority that nobody asks",
        ),
    ],
)
def test_an_unusable_kubeconfig_is_named(tmp_path: Path, content: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(NoCredentialsError, match=f"{path} is no usable kubeconfig"):
        from_kubeconfig(path)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoCredentialsError, match="no usable kubeconfig"):
        find_credentials(tmp_path / "missing")


@pytest.mark.parametrize(
    ("environment", "files", "told"),
    [
        pytest.param({}, ["token", "ca.crt"], "give --kubeconfig", id="no address"),
        pytest.param({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, [], "give --kubeconfig", id="no token"),
        pytest.param({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ["token"], "ca.crt", id="no authority"),
        pytest.param(
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ["token", "ca.crt"], "ca.crt", id="empty authority"
        ),
    ],
)
def test_a_pod_without_a_usable_service_account_is_told(
    tmp_path: Path, environment: dict[str, str], files: list[str], told: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(NoCredentialsError, match=told):
        in_cluster(environment, tmp_path)
