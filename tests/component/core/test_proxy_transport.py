"""What the client relies on in aiohttp beyond its documentation."""

import inspect

import aiohttp

from gpushare_core.kube.transport.proxy import new_session


async def test_aiohttp_still_has_the_switch_for_sending_again() -> None:
    """``new_session`` sets a private attribute. Where this fails, look in the changed
    ``aiohttp.client.ClientSession._request`` for how a request is repeated after a kept connection ended, and
    turn it off there: a PUT or DELETE that is sent twice was perhaps carried out the first time."""
    fresh = aiohttp.ClientSession()
    assert fresh._retry_connection is True, "ClientSession has no _retry_connection any more"
    assert "self._retry_connection" in inspect.getsource(aiohttp.ClientSession._request)
    ours = new_session(1)
    assert ours._retry_connection is False
    await fresh.close()
    await ours.close()
