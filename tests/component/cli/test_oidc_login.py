"""A user whom the auth-provider ``oidc`` logs in, against a provider on a real socket."""

import base64
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import PODS, FakeApi, fake_api, status
from tests.unit.cli.login.options import login_options

from gpushare_cli.login.cluster_login import ClusterLogin, cluster_login
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def id_token(minutes: float) -> str:
    """Expires in so many minutes. The issuer has characters that only base64 for URLs has."""
    claims = {"iss": "https://ï/~?", "exp": int((NOW + timedelta(minutes=minutes)).timestamp())}
    payload = base64.urlsafe_b64encode(json.dumps(claims, ensure_ascii=False).encode()).decode()
    return f"e30.{payload.rstrip('=')}.c2ln"


@dataclass
class Provider:
    """``answers``: those of the token endpoint, in order."""

    answers: list[Any] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    endpoint: str = ""

    async def discovery(self, _: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": self.endpoint or f"{self.url}/token"})

    async def token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append((request.headers.get("Authorization", ""), form))
        answer = self.answers.pop(0)
        return web.Response(status=answer) if isinstance(answer, int) else web.json_response(answer)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        yield fake


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    fake, app = Provider(), web.Application()
    app.router.add_get("/.well-known/openid-configuration", fake.discovery)
    app.router.add_post("/token", fake.token)
    async with TestServer(app) as server:
        fake.url = str(server.make_url("")).rstrip("/")
        yield fake


def written(folder: Path, api: FakeApi, provider: Provider, *lines: str) -> Path:
    """A kubeconfig with comments. ``lines`` are of the provider's configuration."""
    path = folder / "kubeconfig"
    config = "".join(f"        {line}\n" for line in (f"idp-issuer-url: {provider.url}/", *lines))
    path.write_text(
        f"""\
current-context: here  # and nowhere else
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{api.credentials().server}"}}}}]
users:
- name: other
  user: {{token: t}}
- name: u
  user:
    auth-provider:
      name: oidc
      config:
        client-id: kubernetes
{config}"""
    )
    return path


def logged_in(path: Path) -> ClusterLogin:
    return cluster_login(login_options("--kubeconfig", str(path)), {}, now=lambda: NOW)


async def get(login: ClusterLogin, times: int = 1) -> None:
    async with KubeClient(login.credentials) as client:
        for _ in range(times):
            await client.get(PODS)


def sent(api: FakeApi) -> list[str]:
    return [seen.token for seen in api.seen]


async def test_a_token_that_is_valid_is_sent_as_it_is(
    api: FakeApi, provider: Provider, tmp_path: Path
) -> None:
    valid = id_token(1)
    await get(logged_in(written(tmp_path, api, provider, f"id-token: {valid}")), times=2)
    assert (sent(api), provider.asked) == ([valid] * 2, [])


async def test_a_new_token_is_got_and_stored_with_all_else_as_it_was(
    api: FakeApi, provider: Provider, tmp_path: Path
) -> None:
    new = id_token(60)
    provider.answers = [{"id_token": new, "refresh_token": "second"}]
    lines = [f"id-token: {id_token(0)}", "refresh-token: first", "client-secret: s/"]
    path = written(tmp_path, api, provider, *lines)
    path.chmod(0o640)
    before = path.read_text()
    await get(logged_in(path), times=2)
    assert sent(api) == [new] * 2
    header, form = provider.asked[0]
    assert base64.b64decode(header.removeprefix("Basic ")) == b"kubernetes:s%2F"
    assert form == {"grant_type": "refresh_token", "refresh_token": "first"}
    assert path.read_text() == before.replace(id_token(0), new).replace("first", "second")
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["kubeconfig"]  # noqa: PTH208  in an async function


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone writes others' files")
async def test_a_kubeconfig_that_root_renews_stays_its_owners(
    api: FakeApi, provider: Provider, tmp_path: Path
) -> None:
    provider.answers = [{"id_token": id_token(60)}]
    path = written(tmp_path, api, provider, "refresh-token: first")
    os.chown(path, 1234, 1235)
    await get(logged_in(path))
    assert id_token(60) in path.read_text()
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


async def test_a_token_is_added_where_there_was_none(
    api: FakeApi, provider: Provider, tmp_path: Path
) -> None:
    provider.answers = [{"id_token": id_token(60)}]
    path = written(tmp_path, api, provider, "refresh-token: first")
    await get(logged_in(path))
    assert path.read_text().endswith(f"refresh-token: first\n        id-token: {id_token(60)}\n")
    assert provider.asked == [
        ("", {"grant_type": "refresh_token", "refresh_token": "first", "client_id": "kubernetes"})
    ]


async def test_a_secret_is_sent_in_the_form_where_the_header_is_refused(
    api: FakeApi, provider: Provider, tmp_path: Path
) -> None:
    provider.answers = [401, {"id_token": id_token(60)}]
    await get(logged_in(written(tmp_path, api, provider, "refresh-token: first", "client-secret: s")))
    assert "s" in provider.asked[1][1].values()


async def test_a_valid_token_that_is_refused_is_renewed_and_stored_again(
    api: FakeApi, provider: Provider, tmp_path: Path
) -> None:
    provider.answers = [{"id_token": id_token(60)}]
    api.fail("GET", PODS, status(401))
    path = written(tmp_path, api, provider, f"id-token: {id_token(1)}", "refresh-token: first")
    await get(logged_in(path))
    assert sent(api) == [id_token(1), id_token(60)]
    assert id_token(60) in path.read_text()


async def test_a_kubeconfig_that_somebody_else_writes_is_left_alone(
    api: FakeApi, provider: Provider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    provider.answers = [{"id_token": id_token(60)}]
    path = written(tmp_path, api, provider, "refresh-token: first")
    (tmp_path / "kubeconfig.lock").touch()
    before = path.read_text()
    await get(logged_in(path))
    assert (path.read_text(), sent(api)) == (before, [id_token(60)])
    assert "cannot write renewed tokens into" in caplog.text


@pytest.mark.parametrize(
    ("answers", "lines", "said"),
    [
        pytest.param([], ["id-token: a.b.c"], "no refresh-token to get a new one", id="no refresh token"),
        pytest.param([400], ["refresh-token: r"], "gives no new token: 400", id="refused"),
        pytest.param([{}], ["refresh-token: r"], "gives no ID token", id="no token"),
        pytest.param([[]], ["refresh-token: r"], "gives no new token: Expected `object`", id="a list"),
        pytest.param(
            [],
            ["refresh-token: r", "idp-certificate-authority-data: '!'"],
            "gives no new token: the certificate of the authority is empty",
            id="an authority that is none",
        ),
        pytest.param(
            [],
            ["refresh-token: r", "idp-certificate-authority: gone"],
            "gives no new token",
            id="no authority",
        ),
    ],
)
async def test_a_provider_that_gives_none_is_named(
    api: FakeApi, provider: Provider, tmp_path: Path, answers: list[Any], lines: list[str], said: str
) -> None:
    provider.answers = answers
    with pytest.raises(NoCredentialsError, match=said):
        await get(logged_in(written(tmp_path, api, provider, *lines)))
    assert api.seen == []


@pytest.mark.parametrize(
    ("provider_of_user", "said"),
    [
        ({"name": "gcp"}, "auth-provider 'gcp', which kubectl has no more either"),
        (["oidc"], "auth-provider None"),
        ({"name": "oidc"}, "without idp-issuer-url or client-id"),
        ({"name": "oidc", "config": {"client-id": 5}}, r"Expected `str`, got `int` - at `\$.client-id`"),
    ],
)
def test_another_auth_provider_is_refused(tmp_path: Path, provider_of_user: object, said: str) -> None:
    path = tmp_path / "kubeconfig"
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"auth-provider": provider_of_user}}],
    }
    path.write_text(json.dumps(config))
    with pytest.raises(NoCredentialsError, match=said):
        logged_in(path)
