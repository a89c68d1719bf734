"""Whom ``kubectl gpushare`` logs in as, beside the kubectl of the cluster with the same kubeconfigs."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.observe import CALL_SECONDS
from tests.fakes.exec_plugin import credential, kubeconfig, plugin, printing
from tests.fakes.interrupts import takes_interrupts
from tests.unit.cli.login.options import login_options

from gpushare_cli.login.cluster_login import ClusterLogin, cluster_login
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
PROGRAM = Path(sys.executable).parent / "kubectl-gpushare"
NAMESPACE = "login-of-people"


@pytest.fixture(scope="module")
def person(cluster: LocalCluster) -> Iterator[str]:
    """The token of a ServiceAccount, as an exec plugin of a cloud gets one."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("create", "serviceaccount", "person", "-n", NAMESPACE)
    account = f"--serviceaccount={NAMESPACE}:person"
    cluster.kubectl("create", "clusterrolebinding", NAMESPACE, "--clusterrole=cluster-admin", account)
    yield cluster.kubectl("create", "token", "person", "-n", NAMESPACE).strip()
    cluster.kubectl("delete", "clusterrolebinding", NAMESPACE)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture
def server(cluster: LocalCluster) -> dict[str, Any]:
    """The cluster's part of its kubeconfig."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    part: dict[str, Any] = config["clusters"][0]["cluster"]
    return part


@pytest.fixture
def three_files(cluster: LocalCluster, server: dict[str, Any], person: str, tmp_path: Path) -> str:
    """``$KUBECONFIG`` of four files, one of which is not there. They contradict each other."""
    admin = yaml.safe_load(cluster.kubeconfig.read_text())["users"][0]["user"]
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "token").write_text(person)
    contents = {
        "first": {
            "contexts": [
                {
                    "name": "of-admin",
                    "context": {"cluster": "c", "user": "admin", "namespace": "kube-system"},
                },
                {"name": "of-person", "context": {"cluster": "c", "user": "person"}},
            ],
        },
        "second/config": {
            "current-context": "of-person",
            "contexts": [
                {"name": "of-admin", "context": {"cluster": "none", "user": "none"}},
                {"name": "as-anna", "context": {"cluster": "c", "user": "anna"}},
            ],
            "users": [
                {"name": "person", "user": {"tokenFile": "token"}},
                {"name": "anna", "user": {**admin, "as": "anna", "as-groups": ["a"], "as-uid": "7"}},
            ],
        },
        "third": {
            "current-context": "of-admin",
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": "person", "user": {"token": "never"}}, {"name": "admin", "user": admin}],
        },
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(yaml.safe_dump(content))
    return os.pathsep.join(str(tmp_path / name) for name in ("first", "gone", "second/config", "third"))


async def _whoami(login: ClusterLogin) -> Any:
    async with KubeClient(login.credentials, timeout=CALL_SECONDS) as client:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        return (await client.create(REVIEWS, review))["status"]["userInfo"]


def of_kubectl(cluster: LocalCluster, environment: dict[str, str], *arguments: str) -> Any:
    command = [str(cluster.binary.kubectl), *arguments, "-o", "json"]
    return json.loads(subprocess.check_output(command, env=environment, text=True, timeout=240))


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="the current context"),
        pytest.param(["--context", "of-admin"], id="another context"),
        pytest.param(["--user", "admin"], id="another user"),
        pytest.param(["--context", "as-anna"], id="somebody else by the kubeconfig"),
        pytest.param(
            ["--context", "as-anna", "--as=bob", "--as-group=b"], id="another than by the kubeconfig"
        ),
        pytest.param(["--context=of-admin", "--as=anna"], id="as somebody else"),
        pytest.param(
            [
                *("--context=of-admin", "--as=anna", "--as-group=a", "--as-group=b", "--as-uid=7"),
                *("--as-user-extra=Of/x=1", "--as-user-extra=Of/x=2"),
            ],
            id="as somebody of groups",
        ),
    ],
)
def test_server_namespace_and_user_are_those_of_kubectl(
    cluster: LocalCluster, three_files: str, arguments: list[str]
) -> None:
    environment = {"KUBECONFIG": three_files, "PATH": os.environ["PATH"], "HOME": "/nowhere"}
    login = cluster_login(login_options(*arguments), environment)
    context = [argument for argument in arguments if not argument.startswith("--as")]
    view = of_kubectl(cluster, environment, "config", "view", "--minify", *context)
    assert login.credentials.server == view["clusters"][0]["cluster"]["server"]
    assert login.namespace == view["contexts"][0]["context"].get("namespace", "default")
    mine = asyncio.run(_whoami(login))
    theirs = of_kubectl(cluster, environment, "auth", "whoami", *arguments)["status"]["userInfo"]
    mine.get("extra", {}).pop("authentication.kubernetes.io/credential-id", None)
    theirs.get("extra", {}).pop("authentication.kubernetes.io/credential-id", None)
    assert mine == theirs


def gpushare(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [PROGRAM, *arguments, "--kubeconfig", config]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False
    )


def test_an_exec_plugin_logs_in(server: dict[str, Any], person: str, tmp_path: Path) -> None:
    plugin(tmp_path, printing(credential(person)))
    config = kubeconfig(tmp_path, server, command="./plugin")
    login = cluster_login(login_options("--kubeconfig", str(config)), {**os.environ})
    assert asyncio.run(_whoami(login))["username"] == f"system:serviceaccount:{NAMESPACE}:person"
    done = gpushare(config, "version")
    assert done.stderr == ""
    assert "Kubernetes" in done.stdout


def test_a_client_certificate_of_a_plugin_logs_in(
    cluster: LocalCluster, server: dict[str, Any], tmp_path: Path
) -> None:
    scheduler = yaml.safe_load(
        cluster.node_path("control-plane-1", "/etc/kubernetes/scheduler.conf").read_text()
    )
    user = scheduler["users"][0]["user"]
    if "client-certificate-data" not in user:
        pytest.skip("kube-scheduler has no client certificate here")
    decoded = {
        field: subprocess.check_output(["base64", "-d"], input=user[name].encode()).decode()
        for field, name in (
            ("clientCertificateData", "client-certificate-data"),
            ("clientKeyData", "client-key-data"),
        )
    }
    plugin(tmp_path, printing(credential(**decoded)))
    config = kubeconfig(tmp_path, server, command="./plugin")
    login = cluster_login(login_options("--kubeconfig", str(config)), {**os.environ})
    assert asyncio.run(_whoami(login))["username"] == "system:kube-scheduler"


@pytest.mark.parametrize(
    ("lines", "config", "patience", "said"),
    [
        pytest.param(
            ["echo session over >&2", "exit 4"], {}, "60s", "status 4 and printed: session over", id="fails"
        ),
        pytest.param(["sleep 300"], {}, "500ms", "did not end within 0.5 s", id="hangs"),
        pytest.param([":"], {"interactiveMode": "Always"}, "60s", "standard input is no terminal", id="asks"),
        pytest.param(
            [printing(credential("wrong"))],
            {},
            "60s",
            "does not accept the credentials of user 'u'",
            id="is refused",
        ),
    ],
)
def test_a_plugin_that_does_not_log_in_is_named(
    server: dict[str, Any],
    tmp_path: Path,
    lines: Sequence[str],
    config: dict[str, str],
    patience: str,
    said: str,
) -> None:
    plugin(tmp_path, *lines)
    done = gpushare(
        kubeconfig(tmp_path, server, command="./plugin", **config), "version", "--request-timeout", patience
    )
    assert (done.returncode, done.stdout) == (ExitStatus.CANNOT_LOOK, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


class Terminal:
    """A command that somebody runs at a terminal of its own."""

    def __init__(self, *command: str | Path) -> None:
        self.file, self._end = pty.openpty()
        os.set_blocking(self.file, False)
        # The first terminal that the leader of a session opens is the one that controls it.
        opening = ["/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(self._end), *command]
        self.process = subprocess.Popen(
            opening,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=takes_interrupts,
        )
        self.text = ""

    def await_text(self, text: str) -> None:
        wait_until(f"the terminal shows {text!r}", lambda: text in self.read(), interval=0.05)

    def read(self) -> str:
        with suppress(BlockingIOError):
            while more := os.read(self.file, 4096):
                self.text += more.decode(errors="replace")
        return self.text

    def type(self, text: str) -> None:
        os.write(self.file, text.encode())

    def status(self) -> int:
        status = self.process.wait(timeout=240)
        self.read()
        os.close(self.file)
        os.close(self._end)
        return status


def test_a_plugin_may_ask_at_a_terminal(server: dict[str, Any], person: str, tmp_path: Path) -> None:
    plugin(tmp_path, "printf 'Code: ' >&2", "read code", 'test "$code" = 42', printing(credential(person)))
    config = kubeconfig(tmp_path, server, command="./plugin", interactiveMode="Always")
    terminal = Terminal(PROGRAM, "version", "--kubeconfig", config)
    terminal.await_text("Code: ")
    terminal.type("42\n")
    assert terminal.status() in (ExitStatus.GOOD, ExitStatus.CANNOT_LOOK)  # without the product
    assert "Kubernetes" in terminal.text


def test_a_plugin_that_hangs_is_ended_by_an_interruption(server: dict[str, Any], tmp_path: Path) -> None:
    plugin(tmp_path, "echo $$ >&2", "echo waiting >&2", "sleep 300")
    terminal = Terminal(PROGRAM, "version", "--kubeconfig", kubeconfig(tmp_path, server, command="./plugin"))
    terminal.await_text("waiting")
    process = int(terminal.text.split()[0])
    terminal.type("\x03")
    assert terminal.status() == ExitStatus.INTERRUPTED
    wait_until("the plugin has ended", lambda: not runs(process))


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
