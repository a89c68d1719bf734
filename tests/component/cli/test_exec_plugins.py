"""A user whom an exec plugin logs in: real programs, and an API server that looks at what they print."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, FakeApi, fake_api, status
from tests.fakes.exec_plugin import VERSION, credential, is_running, kubeconfig, plugin, printing
from tests.fakes.extender_keys import PAIRS
from tests.unit.cli.login.options import login_options

from gpushare_cli.login.cluster_login import ClusterLogin, cluster_login
from gpushare_cli.login.plugin_process import NOBODY, run_plugin
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.process.clock import utc_now

TOKEN = printing(credential("one"))


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        yield fake


def sent(api: FakeApi) -> list[str]:
    """The tokens of all requests."""
    return [seen.token for seen in api.seen]


def logged_in(
    api: FakeApi,
    folder: Path,
    *arguments: str,
    command: str = "",
    now: Callable[[], datetime] = utc_now,
    **config: Any,
) -> ClusterLogin:
    cluster = {"server": api.credentials().server}
    path = kubeconfig(folder, cluster, command=command or str(folder / "plugin"), **config)
    options = login_options("--kubeconfig", str(path), "--request-timeout", "60s", *arguments)
    return cluster_login(options, {**os.environ}, now=now)


@asynccontextmanager
async def client_of(login: ClusterLogin) -> AsyncIterator[KubeClient]:
    async with KubeClient(login.credentials, timeout=login.timeout) as client:
        yield client


async def refusal(login: ClusterLogin) -> str:
    async with client_of(login) as client:
        with pytest.raises(NoCredentialsError) as refused:
            await client.get(PODS)
        return str(refused.value)


async def test_its_token_is_sent_with_every_request(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, f"echo run >> {tmp_path}/runs", TOKEN)
    login = logged_in(api, tmp_path)
    assert login.namespace == "n"
    assert not (tmp_path / "runs").exists()
    async with client_of(login) as client:
        for _ in range(3):
            await client.get(PODS)
    assert sent(api) == ["one"] * 3
    assert (tmp_path / "runs").read_text() == "run\n"


async def test_it_has_its_arguments_its_variables_and_what_it_is_told(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, f'echo "$1 $2 $MINE $KUBERNETES_EXEC_INFO" > {tmp_path}/told', TOKEN)
    login = logged_in(
        api,
        tmp_path,
        args=["get", "token"],
        env=[{"name": "MINE", "value": "mine"}],
        provideClusterInfo=True,
    )
    async with client_of(login) as client:
        await client.get(PODS)
    first, second, mine, information = (tmp_path / "told").read_text().split(maxsplit=3)
    assert (first, second, mine) == ("get", "token", "mine")
    assert json.loads(information) == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": api.credentials().server}},
    }


async def test_a_path_begins_at_the_kubeconfig(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, TOKEN)
    async with client_of(logged_in(api, tmp_path, command="./plugin")) as client:
        await client.get(PODS)
    assert sent(api) == ["one"]


async def test_a_refused_token_is_renewed_and_the_request_repeated(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, f"echo >> {tmp_path}/runs", f'cat "{tmp_path}/$(wc -l < {tmp_path}/runs)"')
    (tmp_path / "1").write_text(credential("one"))
    (tmp_path / "2").write_text(credential("two"))
    api.fail("GET", PODS, status(401))
    async with client_of(logged_in(api, tmp_path)) as client:
        assert (await client.get(PODS))["items"] == []
    assert sent(api) == ["one", "two"]


async def test_a_token_that_is_always_refused_is_named(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, TOKEN)
    api.fail("GET", PODS, status(401), status(401))
    said = await refusal(logged_in(api, tmp_path))
    assert f"{api.credentials().server} does not accept the credentials of user 'u' of context 'here'" in said
    assert "may have no access to this cluster" in said


async def test_its_token_is_renewed_before_it_expires(api: FakeApi, tmp_path: Path) -> None:
    moments = [datetime(2026, 1, 1, tzinfo=UTC)]
    plugin(tmp_path, printing(credential("one", expirationTimestamp="2026-01-01T00:10:00Z")))
    async with client_of(logged_in(api, tmp_path, now=lambda: moments[-1])) as client:
        for minutes in (0, 9, 9.5):
            moments.append(moments[0] + timedelta(minutes=minutes))
            await client.get(PODS)
            plugin(tmp_path, printing(credential("two")))
    assert sent(api) == ["one", "one", "two"]


async def test_a_client_certificate_may_be_what_it_prints(api: FakeApi, tmp_path: Path) -> None:
    pair = PAIRS / "first"
    certificate, key = (pair / "client.pem").read_text(), (pair / "client.key").read_text()
    printed = credential(clientCertificateData=certificate, clientKeyData=key)
    (tmp_path / "printed").write_text(printed)
    plugin(tmp_path, f"cat {tmp_path}/printed")
    login = logged_in(api, tmp_path)
    async with client_of(login) as client:
        await client.get(PODS)
    assert sent(api) == [""]
    assert login.credentials.tls() is login.credentials.tls()


async def test_as_somebody_else_for_every_request(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, TOKEN)
    names: list[list[str]] = []

    async def look(request: web.Request) -> None:
        names.append(request.headers.getall("Impersonate-Group"))

    api.fail("GET", PODS, look)
    login = logged_in(api, tmp_path, "--as", "anna", "--as-group", "a", "--as-group", "b")
    async with client_of(login) as client:
        await client.get(PODS)
    assert names == [["a", "b"]]


FAILURES = [
    pytest.param(
        ["echo no session, sign in >&2", "exit 3"],
        "ended with status 3 and printed: no session, sign in",
        id="fails",
    ),
    pytest.param(["exit 3"], "ended with status 3 and printed no reason", id="fails without a word"),
    pytest.param(
        ["printf '\\033[31mred\\n\\n lines\\n' >&2", "exit 1"],
        r"printed: \u001b[31mred lines",
        id="colours",
    ),
    pytest.param(["kill -9 $$"], "was killed", id="is killed"),
    pytest.param(["echo my-token"], "printed 9 bytes that are no ExecCredential", id="no JSON"),
    pytest.param([":"], "printed 0 bytes that are no ExecCredential", id="nothing"),
    pytest.param(["echo {}"], "printed '' of '' where the kubeconfig wants", id="something else"),
    pytest.param(
        [printing(credential("x", version="client.authentication.k8s.io/v1beta1"))],
        "of 'client.authentication.k8s.io/v1beta1' where the kubeconfig wants an ExecCredential of"
        " 'client.authentication.k8s.io/v1'",
        id="another version",
    ),
    pytest.param([printing(credential())], "printed neither a token nor a client certificate", id="empty"),
    pytest.param([printing(credential(clientKeyData="x"))], "and not both", id="half a certificate"),
    pytest.param(
        [printing(credential(clientKeyData="x", clientCertificateData="y"))],
        "cannot use the certificates for user 'u'",
        id="a certificate that is none",
    ),
    pytest.param([printing(credential("x", expirationTimestamp="soon"))], "that is no time", id="no time"),
    pytest.param(["yes", "exit 0"], "printed more than 1024 KiB", id="without end"),
]


@pytest.mark.parametrize(("lines", "said"), FAILURES)
async def test_one_that_fails_is_named_with_what_it_says(
    api: FakeApi, tmp_path: Path, lines: list[str], said: str
) -> None:
    plugin(tmp_path, *lines)
    text = await refusal(logged_in(api, tmp_path))
    assert said in text
    assert "plugin`" in text or "user 'u'" in text
    assert "my-token" not in text
    assert api.seen == []


async def test_one_that_is_not_there_is_named_with_how_to_install_it(api: FakeApi, tmp_path: Path) -> None:
    login = logged_in(
        api, tmp_path, command="no-such-tool", args=["token", "--secret", "s"], installHint="See\n\nhttps://x"
    )
    said = "the kubeconfig logs in by `no-such-tool token ...`, and there is no such program. See https://x"
    assert await refusal(login) == said


async def test_one_that_cannot_be_run_is_named(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path)
    (tmp_path / "plugin").write_text("#!/no/such/shell\n")
    assert "cannot run `" in await refusal(logged_in(api, tmp_path))


@pytest.mark.parametrize("path", ["", ".", "bin"])
async def test_one_in_the_folder_where_somebody_is_is_not_run(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Nor is one by kubectl: in that folder it may be anybody's."""
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        plugin(folder, TOKEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    assert "there is no such program" in await refusal(logged_in(api, tmp_path, command="plugin"))


async def test_its_name_is_fit_for_a_terminal(api: FakeApi, tmp_path: Path) -> None:
    login = logged_in(api, tmp_path, command="\x1b[31mno-such-tool", args=["\x1b[2J"])
    assert "\x1b" not in await refusal(login)


async def test_one_that_needs_a_terminal_is_named_where_there_is_none(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, TOKEN)
    text = await refusal(logged_in(api, tmp_path, interactiveMode="Always"))
    assert "asks for something (interactiveMode: Always), and the standard input is no terminal" in text


async def test_one_that_hangs_is_ended_with_all_that_it_started(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, "trap '' TERM", f"sleep 300 & echo $! > {tmp_path}/child", "wait")
    text = await refusal(logged_in(api, tmp_path, "--request-timeout", "3s"))
    assert "did not end within 3 s, and nobody is at a terminal to answer it; it was stopped" in text
    await until_gone(int((tmp_path / "child").read_text()))


def test_nobody_waits_for_it_after_an_interruption(tmp_path: Path) -> None:
    plugin(tmp_path, f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/plugin-id", "sleep 300")
    asyncio.run(_interrupted(tmp_path))
    assert not is_running(int((tmp_path / "plugin-id").read_text()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_a_signal_ends_it_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    plugin(tmp_path, f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/plugin-id", "exec sleep 300")
    path = kubeconfig(tmp_path, {"server": "https://127.0.0.1:1"}, command="./plugin")
    command = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("kubectl-gpushare"),
        "pods",
        "--kubeconfig",
        path,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    await until("the plugin runs", (tmp_path / "plugin-id").exists)
    command.send_signal(number)
    assert await asyncio.wait_for(command.wait(), 30) == ExitStatus.INTERRUPTED
    await until_gone(int((tmp_path / "plugin-id").read_text()))


def test_nothing_is_left_of_it_where_the_end_is_interrupted_too(tmp_path: Path) -> None:
    plugin(
        tmp_path,
        "trap '' TERM",
        f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/plugin-id",
        "sleep 300",
    )

    async def run() -> None:
        terminal = NOBODY._replace(grace=250.0)
        command = asyncio.create_task(
            run_plugin(
                [str(tmp_path / "plugin")],
                {**os.environ},
                name="it",
                terminal=terminal,
                is_interactive=False,
                seconds=300,
            )
        )
        await until("the plugin runs", (tmp_path / "plugin-id").exists)
        command.cancel()
        await asyncio.sleep(0.1)
        command.cancel()
        await asyncio.wait([command], timeout=60)

    asyncio.run(run())
    assert not is_running(int((tmp_path / "plugin-id").read_text()))


async def _interrupted(folder: Path) -> None:
    """The command ends while the plugin runs."""
    async with fake_api() as api, client_of(logged_in(api, folder)) as client:
        request = asyncio.create_task(client.get(PODS))
        await until("the plugin runs", (folder / "plugin-id").exists)
        request.cancel()


async def test_what_fails_for_one_request_fails_for_all_that_wait(api: FakeApi, tmp_path: Path) -> None:
    plugin(tmp_path, f"echo run >> {tmp_path}/runs", "exit 1")
    async with client_of(logged_in(api, tmp_path)) as client:
        failed = await asyncio.gather(*(client.get(PODS) for _ in range(5)), return_exceptions=True)
    assert {type(error) for error in failed} == {NoCredentialsError}
    assert (tmp_path / "runs").read_text() == "run\n"


async def until_gone(process: int) -> None:
    await until(f"process {process} has ended", lambda: not is_running(process))


async def until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"waited 60 s until {what}"
        await asyncio.sleep(0.02)


UNUSABLE = [
    pytest.param({"command": ""}, "without a command", id="no command"),
    pytest.param(
        {"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "let your provider's command", id="too old"
    ),
    pytest.param({"interactiveMode": None}, "without interactiveMode", id="no interactiveMode"),
    pytest.param({"interactiveMode": "Sometimes"}, "Invalid enum value 'Sometimes'", id="another mode"),
    pytest.param({"args": [5]}, r"\$\.args\[0\]", id="a number for an argument"),
    pytest.param({"env": [{"value": "x"}]}, "missing required field `name`", id="a variable without a name"),
]


@pytest.mark.parametrize(("config", "said"), UNUSABLE)
async def test_one_that_kubectl_refuses_is_refused(
    api: FakeApi, tmp_path: Path, config: dict[str, Any], said: str
) -> None:
    cluster = {"server": api.credentials().server}
    path = kubeconfig(tmp_path, cluster, **{"command": "x", **config})
    with pytest.raises(NoCredentialsError, match=said):
        cluster_login(login_options("--kubeconfig", str(path)), {})


async def test_a_beta_needs_no_mode(api: FakeApi, tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1beta1"
    plugin(tmp_path, printing(credential("one", version=version)))
    async with client_of(logged_in(api, tmp_path, apiVersion=version, interactiveMode=None)) as client:
        await client.get(PODS)
    assert sent(api) == ["one"]


async def test_a_token_beside_it_takes_precedence(api: FakeApi, tmp_path: Path) -> None:
    user = {"token": "stored", "exec": {"apiVersion": VERSION, "command": "no-such-tool"}}
    async with client_of(logged_in(api, tmp_path, user=user)) as client:
        await client.get(PODS)
    assert sent(api) == ["stored"]
