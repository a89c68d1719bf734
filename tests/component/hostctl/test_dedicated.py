"""gpushare-hostctl as it prepares a pod with a kube-scheduler of our own and its extender."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from gpushare_hostctl.main import main

PROFILE = ("--scheduler-name", "gpushare-scheduler", "--lease-namespace", "gpushare-system")
EXTENDER = (
    "--extender-url",
    "https://127.0.0.1:22766/gpushare",
    "--managed-resource",
    "gpushare.io/memory",
    "--prioritize-verb",
    "prioritize",
)


def prepare(folder: Path) -> int:
    return main(["dedicated", "--folder", str(folder), *PROFILE, *EXTENDER])


def test_the_configuration_names_one_profile_its_lease_and_the_extender(tmp_path: Path) -> None:
    assert prepare(tmp_path) == 0
    document = yaml.safe_load((tmp_path / "kube-scheduler.yaml").read_text())
    (extender,) = document.pop("extenders")
    assert document == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceName": "gpushare-scheduler",
            "resourceNamespace": "gpushare-system",
        },
        "podMaxBackoffSeconds": 300,
        "profiles": [{"schedulerName": "gpushare-scheduler", "percentageOfNodesToScore": 100}],
    }
    client, authorities = str(tmp_path / "client.pem"), str(tmp_path / "authorities.pem")
    assert extender["tlsConfig"] == {"certFile": client, "keyFile": client, "caFile": authorities}
    assert extender["urlPrefix"] == "https://127.0.0.1:22766/gpushare"
    assert (extender["ignorable"], extender["bindVerb"], extender["enableHTTPS"]) == (False, "bind", True)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raises ``ssl.SSLError`` when one of the two does not trust the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    at_client = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    at_server = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (at_client, at_server) * 2:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    at_server.do_handshake()


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_cert_chain(folder / "client.pem")
    for context in (server, client):
        context.load_verify_locations(folder / "authorities.pem")
    return server, client


def test_both_sides_trust_each_other_and_no_pod_of_before(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        assert prepare(tmp_path / name) == 0
    server, client = contexts(tmp_path / "one")
    handshake(server, client)
    _, stranger = contexts(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, stranger)


def test_the_keys_outlast_any_pod_and_are_their_readers_only(tmp_path: Path) -> None:
    assert prepare(tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "authorities.pem",
        "client.pem",
        "kube-scheduler.yaml",
        "server.pem",
    }
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    in_nine_years = datetime.now(UTC) + timedelta(days=9 * 365)
    for name in ("client.pem", "server.pem", "authorities.pem"):
        certificate = x509.load_pem_x509_certificate((tmp_path / name).read_bytes())
        assert certificate.not_valid_after_utc > in_nine_years


def test_a_container_that_starts_again_makes_all_anew(tmp_path: Path) -> None:
    assert prepare(tmp_path) == 0
    before = (tmp_path / "client.pem").read_bytes()
    assert prepare(tmp_path) == 0
    assert (tmp_path / "client.pem").read_bytes() != before
    handshake(*contexts(tmp_path))


def test_a_folder_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare(tmp_path / "missing") == 1
    assert "cannot write what kube-scheduler and extender of this pod need" in capsys.readouterr().err
