"""Credentials that expire are made before a request that needs them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from gpushare_cli.login.renewal import LastingLogin, LoginCredential, RenewedLogin
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.tls import TlsParts

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Scene:
    """Tokens t1, t2 and so on, that last for ``lifetimes`` of seconds."""

    lifetimes: Sequence[float | None]
    time: datetime = BEGIN
    made: int = 0
    login: RenewedLogin = field(init=False)

    def __post_init__(self) -> None:
        self.login = RenewedLogin(
            get=self.credential,
            trust=TlsParts(),
            server="https://api",
            who="user 'u'",
            advice="do this",
            now=lambda: self.time,
        )

    async def credential(self) -> LoginCredential:
        await asyncio.sleep(0)
        seconds = self.lifetimes[self.made]
        self.made += 1
        expires = None if seconds is None else self.time + timedelta(seconds=seconds)
        return LoginCredential(token=f"t{self.made}", expires=expires)

    async def token_after(self, seconds: float) -> str | None:
        self.time += timedelta(seconds=seconds)
        await self.login.prepared()
        return self.login.token()


async def test_nothing_is_made_before_the_first_request() -> None:
    scene = Scene([None])
    assert (scene.made, scene.login.token()) == (0, None)
    with pytest.raises(ValueError, match="no credentials"):
        scene.login.tls()
    assert await scene.token_after(0) == "t1"
    assert scene.login.tls() is scene.login.tls()


async def test_a_token_is_renewed_before_it_expires() -> None:
    scene = Scene([600, 600])
    assert await scene.token_after(0) == "t1"
    assert await scene.token_after(569) == "t1"
    assert await scene.token_after(1) == "t2"


async def test_a_short_token_is_used_for_most_of_its_time() -> None:
    scene = Scene([60, 60])
    assert [await scene.token_after(0), await scene.token_after(53), await scene.token_after(1)] == [
        "t1",
        "t1",
        "t2",
    ]


async def test_a_token_that_seems_expired_is_tried() -> None:
    """The clock of whoever made it may be another one."""
    scene = Scene([-60, -60])
    assert [await scene.token_after(0), await scene.token_after(4), await scene.token_after(1)] == [
        "t1",
        "t1",
        "t2",
    ]


async def test_a_token_without_an_end_is_used_until_it_is_refused() -> None:
    scene = Scene([None, None])
    number = await scene.login.prepared()
    assert await scene.token_after(1e6) == "t1"
    await scene.login.refused(number)
    assert await scene.token_after(0) == "t2"


async def test_what_is_refused_again_at_once_is_the_end() -> None:
    scene = Scene([None, None])
    await scene.login.refused(await scene.login.prepared())
    with pytest.raises(
        NoCredentialsError, match=r"https://api does not accept the credentials of user 'u' .*401.*; do this"
    ):
        await scene.login.refused(await scene.login.prepared())


async def test_what_is_refused_again_later_is_made_again() -> None:
    scene = Scene([None, None, None])
    await scene.login.refused(await scene.login.prepared())
    assert await scene.token_after(61) == "t2"
    await scene.login.refused(await scene.login.prepared())
    assert await scene.token_after(0) == "t3"


async def test_many_requests_make_one_token() -> None:
    scene = Scene([None, None])
    numbers = await asyncio.gather(*(scene.login.prepared() for _ in range(5)))
    assert (numbers, scene.made) == ([1] * 5, 1)
    await asyncio.gather(*(scene.login.refused(1) for _ in range(5)))
    assert scene.made == 2


async def test_what_lies_in_a_file_is_not_renewed() -> None:
    login = LastingLogin("https://api", "user 'u'", "log in again")
    with pytest.raises(NoCredentialsError, match=r"401 Unauthorized.*; log in again"):
        await login.refused(await login.prepared())
