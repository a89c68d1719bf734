"""The server of the page: whom it answers, what it sends, and what it does where nobody answers it."""

import asyncio
import json
import socket
from itertools import pairwise

import aiohttp
import pytest
from tests.component.web.served import WITHIN, served, stream
from tests.fakes.web_cluster import WebCluster
from tests.samples.shared_cards import card, pending_pod_object, share, share_node_object

from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import PodScope
from gpushare_cli.web import server
from gpushare_cli.web.gathering import Publication
from gpushare_cli.web.request_guard import SECURITY_HEADERS
from gpushare_cli.web.server import MAX_CLIENTS, PageServer, serving
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import PODS, POLICIES, SHARE_NODES
from gpushare_core.process.clock import utc_now

BUSY = share_node_object("gpu-2", card(0, 16, share("team-b/new", 4), node="gpu-2"))


async def get(page: PageServer, path: str = "", method: str = "GET", **headers: str) -> tuple[int, str]:
    """Returns status and text; looks at the headers that every response has."""
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{page.guard.url}{path}", headers=headers) as response,
    ):
        for name, value in SECURITY_HEADERS.items():
            assert response.headers[name] == value, name
        return response.status, await response.text()


async def test_the_page_and_its_files_are_served(cluster: WebCluster) -> None:
    async with served(cluster) as page:
        status, text = await get(page)
        assert (status, 'src="main.js"' in text) == (200, True)
        status, text = await get(page, "state/model.js")
        assert (status, "class Cluster" in text) == (200, True)
        assert (await get(page, "state/../main.js"))[0] == 200, "the client takes it out"
        assert (await get(page, "state%2F..%2F..%2Fserver.py"))[0] == 404
        assert (await get(page, "other"))[0] == 404


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        pytest.param("POST", {}, 405, id="it changes nothing"),
        pytest.param("HEAD", {}, 405, id="nor HEAD"),
        pytest.param("GET", {"Host": "rebinding.example:80"}, 421, id="a name that resolves to this machine"),
        pytest.param("GET", {"Host": "127.0.0.1"}, 421, id="without the port"),
        pytest.param("GET", {"Host": "localhost"}, 421, id="another name of this machine"),
        pytest.param("GET", {"Origin": "https://evil.example"}, 403, id="another site's script"),
        pytest.param("GET", {"Origin": "null"}, 403, id="a frame without an origin"),
        pytest.param("GET", {"Sec-Fetch-Site": "cross-site"}, 403, id="another site's link"),
        pytest.param("GET", {"Sec-Fetch-Site": "same-site"}, 403, id="another port of this machine"),
        pytest.param("GET", {"Sec-Fetch-Site": "none"}, 200, id="typed into the address bar"),
    ],
)
@pytest.mark.parametrize("path", ["", "snapshot", "why?namespace=team-b&pod=large"])
async def test_whom_it_answers(
    cluster: WebCluster, path: str, method: str, headers: dict[str, str], status: int
) -> None:
    async with served(cluster) as page:
        assert (await get(page, path, method, **headers))[0] == status


async def test_a_guessed_token_gets_nothing(cluster: WebCluster) -> None:
    async with served(cluster) as page, aiohttp.ClientSession() as session:
        for path in (
            "",
            page.guard.token[:-1] + "/",
            f"{page.guard.token}x/snapshot",
            f"x/{page.guard.token}/",
        ):
            async with session.get(f"http://{page.guard.host}/{path}") as response:
                assert response.status == 404
                assert "gpu-1" not in await response.text()
        assert len(page.guard.token) >= 32


async def test_it_listens_on_this_machine_alone(cluster: WebCluster) -> None:
    async with served(cluster) as page:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.2", page.guard.port)
        with pytest.raises(OSError, match=r"."):
            await asyncio.open_connection("::1", page.guard.port)


async def test_a_port_that_is_taken_is_said(cluster: WebCluster) -> None:
    async with served(cluster) as page, KubeClient(cluster.credentials()) as client:
        with pytest.raises(CannotLookError, match=f"port {page.guard.port} of 127.0.0.1 cannot be had"):
            async with serving(client, page.publication, port=page.guard.port, now=utc_now):
                pass


async def test_a_snapshot_has_all_that_the_page_shows(cluster: WebCluster) -> None:
    async with served(cluster, rack_label="topology.kubernetes.io/rack") as page:
        snapshot = json.loads((await get(page, "snapshot"))[1])
    assert snapshot["whole"]
    first, second = sorted(snapshot["nodes"], key=lambda node: node["name"])
    assert first["groups"] == {"topology.kubernetes.io/rack": "rack-1"}
    assert [found["state"] for found in first["cards"] if "state" in found] == ["Sick"]
    assert first["cards"][0]["holders"][0]["name"] == "train-1"
    assert second["cards"][0]["freeUnits"] == 16
    parts = snapshot["parts"]
    assert parts["title"]["rackLabel"] == "topology.kubernetes.io/rack"
    assert [(pod["name"], pod["asks"]) for pod in parts["waiting"]["pods"]] == [
        ("large", {"gpushare.io/memory": 17})
    ]
    assert "CardSick" in {problem["reason"] for problem in parts["problems"]}
    assert parts["freshness"]["trouble"] == ""


async def test_a_pod_that_starts_is_one_node_of_a_message(cluster: WebCluster) -> None:
    async with served(cluster) as page, stream(page) as messages:
        assert len(messages.snapshot["nodes"]) == 2
        cluster.put(SHARE_NODES, BUSY)
        while not (message := await messages.message())["nodes"]:
            pass
        assert not message["whole"]
        (node,) = message["nodes"]
        assert (node["name"], node["cards"][0]["heldUnits"]) == ("gpu-2", 4)
        cluster.put(PODS, pending_pod_object("team-b/bound", 2, node="gpu-2", card="GPU-gpu-2-0"))
        while not (message := await messages.message())["nodes"]:
            pass
        assert message["nodes"][0]["cards"][0]["holders"][0]["state"] == "NotStarted"


async def test_a_node_that_is_gone_is_said(cluster: WebCluster) -> None:
    async with served(cluster) as page, stream(page) as messages:
        cluster.delete(SHARE_NODES, "gpu-2")
        while not (message := await messages.message())["removed"]:
            pass
        assert message["removed"] == ["gpu-2"]


async def test_a_page_is_sent_one_message_a_second_at_most(
    cluster: WebCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the times when they are sent: on a busy machine one may come late, and the next one in time."""
    times, next_message = [], PageServer._next

    async def noted(page: PageServer, version: int) -> tuple[bytes, int]:
        found = await next_message(page, version)
        times.append(asyncio.get_running_loop().time())
        return found

    monkeypatch.setattr(PageServer, "_next", noted)
    async with served(cluster, between=1.0) as page, stream(page) as messages:
        for number in range(3):
            page.publication.publish(extra=str(number).encode())
            version = page.publication.state.version
            while (await messages.message())["version"] < version:
                pass
    assert len(times) >= 3
    assert min(after - before for before, after in pairwise(times)) >= 0.99


async def test_what_changes_while_a_page_reads_is_one_message(cluster: WebCluster) -> None:
    async with served(cluster, between=0.5) as page, stream(page) as messages:
        before = page.publication.state.version
        for number in range(50):
            page.publication.publish(extra=str(number).encode())
        while (message := await messages.message())["version"] <= before:
            pass  # a round that ended as the stream was opened
        assert message["version"] >= before + 50
        assert message["parts"]["extra"] == 49


@pytest.mark.parametrize("since", ["0", "123456789", "-1", "", "1e3", "9" * 30])
async def test_a_version_that_is_none_is_told_to_begin_anew(cluster: WebCluster, since: str) -> None:
    async with (
        served(cluster) as page,
        aiohttp.ClientSession() as session,
        session.get(f"{page.guard.url}events?since={since}") as response,
    ):
        async with asyncio.timeout(WITHIN):
            assert await response.content.readline() == b"event: reset\n"


async def test_a_hundred_pages_are_served_by_one_gathering(cluster: WebCluster) -> None:
    async with (
        served(cluster) as page,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        version = page.publication.state.version
        url = f"{page.guard.url}events?since={version}"
        pages = [await session.get(url) for _ in range(MAX_CLIENTS)]
        async with session.get(url) as one_more:
            assert (one_more.status, "100 pages are open" in await one_more.text()) == (503, True)
        cluster.asked.clear()
        cluster.put(SHARE_NODES, BUSY)
        begun = asyncio.get_running_loop().time()
        for found in pages:
            async with asyncio.timeout(WITHIN):
                while b'"heldUnits":4' not in await found.content.readline():
                    pass
        rounds = (asyncio.get_running_loop().time() - begun) / 0.1 + 2
        assert cluster.asked.count(POLICIES) <= rounds
        pages.pop().close()
        async with asyncio.timeout(WITHIN):
            while (again := await session.get(url)).status != 200:
                again.close()
                page.publication.publish(extra=str(asyncio.get_running_loop().time()).encode())
                await asyncio.sleep(0.05)
        for found in [*pages, again]:
            found.close()


async def test_a_slow_page_is_dropped_and_others_go_on(cluster: WebCluster) -> None:
    async with served(cluster) as page:
        page.slow = 5.0  # the page that does read has as long, on a busy machine too
        with socket.create_connection(("127.0.0.1", page.guard.port)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            request = f"GET /{page.guard.token}/events?since=1 HTTP/1.1\r\nHost: {page.guard.host}\r\n\r\n"
            slow.sendall(request.encode())
            async with stream(page) as messages:
                for number in range(6):
                    page.publication.publish(extra=json.dumps(str(number) * (2**22 - 999)).encode())
                    async with asyncio.timeout(WITHIN):
                        while "extra" not in (await messages.message())["parts"]:
                            pass
                async with asyncio.timeout(WITHIN):
                    while page._clients > 1:  # noqa: ASYNC110  a number alone says it
                        await asyncio.sleep(0.05)


async def test_without_a_page_nothing_is_read(cluster: WebCluster) -> None:
    async with served(cluster) as page:
        async with stream(page):
            pass
        page.quiet = 0.05
        async with asyncio.timeout(WITHIN):
            while page.publication.wanted.is_set():
                page.publication.publish(extra=str(asyncio.get_running_loop().time()).encode())
                await asyncio.sleep(0.05)
        async with asyncio.timeout(WITHIN):
            while cluster.asked:  # a round that goes on may ask for more
                cluster.asked.clear()
                await asyncio.sleep(0.5)


async def test_an_api_server_that_is_gone_is_said_and_comes_back(cluster: WebCluster) -> None:
    async with served(cluster) as page, stream(page) as messages:
        await cluster.stop()
        gone = await messages.until_part("freshness", "trouble", "Unreachable")
        freshness = gone["parts"]["freshness"]
        assert freshness["readAt"] >= messages.snapshot["parts"]["freshness"]["readAt"]
        assert "the API server is not reached" in freshness["message"]
        assert not gone["nodes"], "the figures stay"
        cluster.put(SHARE_NODES, BUSY)
        await cluster.start()
        message = await messages.until_part("freshness", "trouble", "")
        assert [node["name"] for node in message["nodes"]] == ["gpu-2"], "what happened meanwhile is there"


async def test_an_expired_login_is_said_and_a_new_one_found(cluster: WebCluster) -> None:
    async with served(cluster) as page, stream(page) as messages:
        cluster.refused = 401
        expired = await messages.until_part("freshness", "trouble", "Login")
        assert expired["parts"]["freshness"]["message"].endswith("log in again")
        cluster.refused = 0
        await messages.until_part("freshness", "trouble", "")


async def test_nodes_that_are_no_longer_listed_are_no_missing_answer(cluster: WebCluster) -> None:
    async with served(cluster) as page, stream(page) as messages:
        cluster.refused = 403
        refused = await messages.until_part("freshness", "trouble", "Unread")
        assert "gpusharenodes: 403" in refused["parts"]["freshness"]["message"]


async def test_a_round_that_takes_long_is_said(cluster: WebCluster) -> None:
    async with served(cluster, late=0.3, timeout=5.0) as page, stream(page) as messages:
        cluster.silent = True
        late = await messages.until_part("freshness", "trouble", "Late")
        assert "a login waits for you in the terminal" in late["parts"]["freshness"]["message"]
        await messages.until_part("freshness", "trouble", "Unreachable")
        cluster.silent = False
        await messages.until_part("freshness", "trouble", "")


async def test_figures_from_before_a_time_without_pages_are_called_old(cluster: WebCluster) -> None:
    async with served(cluster, late=0.2) as page:
        async with asyncio.timeout(WITHIN):
            while True:
                snapshot = json.loads((await get(page, "snapshot"))[1])
                if snapshot["parts"]["freshness"]["trouble"] == "Paused":
                    break
                await asyncio.sleep(0.05)
        async with stream(page) as messages:
            await messages.until_part("freshness", "trouble", "")


async def test_what_cannot_be_read_is_not_shown_as_nothing(cluster: WebCluster) -> None:
    cluster.forbidden = frozenset({PODS})
    async with served(cluster) as page:
        parts = json.loads((await get(page, "snapshot"))[1])["parts"]
        assert parts["title"]["incomplete"] == ["waiting", "problems"]
        assert parts["waiting"]["total"] == 0
        assert "Pods that wait could not be read: refused." in parts["title"]["unread"]
        cluster.forbidden = frozenset({POLICIES})
        async with stream(page) as messages:
            message = await messages.until_part("title", "incomplete", ["problems"])
            assert "waiting" in message["parts"]
            cluster.forbidden = frozenset()
            await messages.until_part("title", "incomplete", [])


async def test_who_may_list_pods_of_one_namespace_sees_those_of_it_wait(cluster: WebCluster) -> None:
    cluster.put(PODS, pending_pod_object("team-c/hidden", 17))
    cluster.forbidden = frozenset({PODS})
    async with served(cluster, scope=PodScope(own="team-b")) as page:
        parts = json.loads((await get(page, "snapshot"))[1])["parts"]
        assert [pod["name"] for pod in parts["waiting"]["pods"]] == ["large"]
        assert parts["title"]["incomplete"] == ["waiting", "problems"], "others may wait"
        assert "Pods of other namespaces that wait could not be read: refused." in parts["title"]["unread"]
        assert [problem["names"] for problem in parts["problems"] if problem["kind"] == "pod"] == [
            ["team-b/large"]
        ]


async def test_the_first_round_after_a_time_without_pages_that_takes_long_is_said(
    cluster: WebCluster,
) -> None:
    async with served(cluster, late=0.2) as page:
        async with asyncio.timeout(WITHIN):
            while page.publication.share_nodes is not None:  # noqa: ASYNC110  nothing is set then
                await asyncio.sleep(0.05)
        cluster.silent = True
        async with stream(page) as messages:
            assert messages.snapshot["parts"]["freshness"]["trouble"] == "Paused"
            await messages.until_part("freshness", "trouble", "Late")


async def test_why_does_not_answer_from_old_figures(cluster: WebCluster) -> None:
    async with served(cluster, late=0.1) as page:
        async with asyncio.timeout(WITHIN):
            while page.publication.share_nodes is not None:  # noqa: ASYNC110  nothing is set then
                await asyncio.sleep(0.05)
        assert "no card has 17 units" in (await get(page, "why?namespace=team-b&pod=large"))[1]
        cluster.put(SHARE_NODES, share_node_object("gpu-2", card(0, 40, memory="40Gi", node="gpu-2")))
        assert "no card has 17 units" not in (await get(page, "why?namespace=team-b&pod=large"))[1]


async def test_a_page_that_is_closed_leaves_its_place_at_once(cluster: WebCluster) -> None:
    """Though nothing is published, so that nothing is written to it."""
    publication = Publication()
    publication.publish(title=b"{}")
    async with (
        KubeClient(cluster.credentials()) as client,
        serving(client, publication, port=0, now=utc_now) as page,
    ):
        page.quiet = 20 * WITHIN
        async with stream(page):
            assert page._clients == 1
        async with asyncio.timeout(WITHIN):
            while page._clients:  # noqa: ASYNC110  a number alone says it
                await asyncio.sleep(0.05)


async def test_what_is_no_http_is_not_said_in_the_terminal(
    cluster: WebCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(cluster) as page:
        for line in (b"GET /\xff HTTP/1.1", f"GET /{page.guard.token}/?{'x' * 20_000} HTTP/1.1".encode()):
            reader, writer = await asyncio.open_connection("127.0.0.1", page.guard.port)
            writer.write(line + b"\r\n\r\n")
            async with asyncio.timeout(WITHIN):
                head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
            assert head.partition("\r\n")[0].endswith(" 400 Bad Request")
            for name, value in SECURITY_HEADERS.items():
                assert f"\r\n{name}: {value}" in head
            assert "x" * 10 not in body
            writer.close()
            await writer.wait_closed()
    assert [record for record in caplog.records if record.exc_info] == []


async def test_a_body_that_cannot_be_unpacked_is_not_said_in_the_terminal(
    cluster: WebCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(cluster) as page:
        reader, writer = await asyncio.open_connection("127.0.0.1", page.guard.port)
        head = f"Host: {page.guard.host}\r\nContent-Encoding: gzip\r\nContent-Length: 4"
        writer.write(f"POST / HTTP/1.1\r\n{head}\r\n\r\nabcd".encode())
        async with asyncio.timeout(WITHIN):
            assert b"404 Not Found" in await reader.readline()
            writer.write_eof()
            await reader.read()
        writer.close()
        await writer.wait_closed()
    assert [record for record in caplog.records if record.exc_info] == []


async def test_a_mistake_of_ours_is_said_in_the_terminal(
    cluster: WebCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "why_answer", lambda *_arguments, **_more: 1 // 0)
    async with (
        served(cluster) as page,
        aiohttp.ClientSession() as session,
        session.get(f"{page.guard.url}why?namespace=a&pod=b") as response,
    ):
        assert response.status == 500
        for name, value in SECURITY_HEADERS.items():
            assert response.headers[name] == value
    assert "ZeroDivisionError" in caplog.text


async def test_a_connection_that_asks_for_nothing_is_ended(
    cluster: WebCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "SILENT_SECONDS", 0.2)
    async with served(cluster) as page:
        for said in (b"", b"GET / HTTP/1.1\r\nHost: "):
            reader, writer = await asyncio.open_connection("127.0.0.1", page.guard.port)
            writer.write(said)
            async with asyncio.timeout(WITHIN):
                assert await reader.read() == b""
            writer.close()


async def test_why_is_what_the_command_says(cluster: WebCluster) -> None:
    async with served(cluster) as page:
        status, text = await get(page, "why?namespace=team-b&pod=large")
        answer = json.loads(text)
        assert (status, answer["state"]) == (200, "Waiting")
        headings = [line["text"] for line in answer["lines"] if line["kind"] == "heading"]
        assert "Asks for" in headings
        status, text = await get(page, "why?namespace=team-b&pod=other")
        assert (status, "there is no pod other in namespace team-b" in text) == (502, True)
        assert (await get(page, "why?namespace=team-b"))[0] == 400


async def test_too_many_questions_at_a_time_are_refused(
    cluster: WebCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def slow(*_arguments: object, **_more: object) -> None:
        await gate.wait()
        raise CannotLookError("enough")

    monkeypatch.setattr(server, "why_answer", slow)
    async with served(cluster) as page:
        asking = [asyncio.create_task(get(page, "why?namespace=a&pod=b")) for _ in range(server.MAX_WHY + 1)]
        done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED, timeout=WITHIN)
        assert [found.result()[0] for found in done] == [429]
        gate.set()
        assert sorted(status for status, _ in await asyncio.gather(*asking)) == [429, *[502] * server.MAX_WHY]
