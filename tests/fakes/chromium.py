"""A headless Chromium, driven by the DevTools protocol: what a page does in a real browser.

Debian's package, from this machine or unpacked into the cache, where it is installed nowhere.
"""

import asyncio
import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from gpushare_localcluster.build.packages import ensure_packages
from gpushare_localcluster.errors import LocalClusterError

PACKAGES = ("chromium", "fonts-dejavu-core")
STARTED_WITHIN = 60.0
WITHIN = 60.0
FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-sandbox",  # tests run as root in containers; the only page is our own
    "--enable-precise-memory-info",
    "--hide-scrollbars",
    "--window-size=1440,900",
)
KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "End": 35, "Tab": 9}


class ChromiumProgram(NamedTuple):
    path: str
    environment: Mapping[str, str]


def find_chromium() -> ChromiumProgram:
    """Raises ``LocalClusterError`` where there is none, and Debian's cannot be fetched."""
    if installed := shutil.which("chromium"):
        return ChromiumProgram(installed, os.environ)
    root = ensure_packages(PACKAGES, report=lambda text: print(text, file=sys.stderr))
    libraries = sorted({str(path.parent) for path in root.glob("usr/lib/**/*.so*")})
    return ChromiumProgram(
        str(root / "usr/lib/chromium/chromium"),
        {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), "FONTCONFIG_FILE": str(_fonts(root))},
    )


def _fonts(root: Path) -> Path:
    """The package's own file names folders of a machine on which it is installed."""
    file = root.with_name(f"{root.name}.fonts.conf")
    file.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">'
        f"<fontconfig><dir>{root}/usr/share/fonts</dir><cachedir>{root}.fonts</cachedir></fontconfig>"
    )
    return file


@contextmanager
def running_chromium() -> Iterator[str]:
    """Yields the address of its DevTools. Raises as ``find_chromium``."""
    program = find_chromium()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [program.path, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            env={**program.environment, "HOME": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            yield _devtools(process, Path(folder, "DevToolsActivePort"))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stderr
            process.stderr.close()


def _devtools(process: "subprocess.Popen[bytes]", file: Path) -> str:
    deadline = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError, ValueError):
            port, path = file.read_text().split()
            return f"ws://127.0.0.1:{port}{path}"
        if process.poll() is not None:
            assert process.stderr
            raise LocalClusterError(f"Chromium ended: {process.stderr.read().decode()[-2000:]}")
        time.sleep(0.05)
    raise LocalClusterError(f"Chromium has not started within {STARTED_WITHIN:.0f} s")


@dataclass(slots=True)
class Devtools:
    """A connection: commands, their results, and events."""

    socket: aiohttp.ClientWebSocketResponse
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    waiting: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    async def read(self) -> None:
        async for message in self.socket:
            found = json.loads(message.data)
            future = self.waiting.pop(found.get("id", 0), None)
            if future is None:
                self.events.append(found)
            elif not future.done():
                future.set_result(found)

    async def send(self, method: str, session: str = "", **params: Any) -> Any:
        number = next(self.numbers)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        target = {"sessionId": session} if session else {}
        await self.socket.send_json({"id": number, "method": method, "params": params, **target})
        answer = await asyncio.wait_for(self.waiting[number], 60)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]


@dataclass(slots=True)
class Tab:
    devtools: Devtools
    session: str

    async def send(self, method: str, **params: Any) -> Any:
        return await self.devtools.send(method, self.session, **params)

    async def open(self, url: str) -> None:
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def evaluate(self, script: str) -> Any:
        """Returns the value of an expression, awaited."""
        done = await self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    async def until(self, condition: str, within: float = WITHIN) -> None:
        """Waits until an expression is true, as JavaScript has it."""
        deadline = time.monotonic() + within
        while not await self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < deadline, f"waited {within:g} s for {condition}; {self.complaints()}"
            await asyncio.sleep(0.05)

    async def text(self, selector: str) -> str:
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    async def click(self, selector: str) -> None:
        """As a mouse does: what lies above an element gets the click."""
        box = await self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        await self.click_at(*box)

    async def click_at(self, x: float, y: float) -> None:
        await self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key]
            )

    async def type(self, text: str) -> None:
        await self.send("Input.insertText", text=text)

    async def resize(self, width: int, height: int) -> None:
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def prefer(self, scheme: str) -> None:
        """``scheme``: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def picture(self) -> bytes:
        """PNG."""
        return base64.b64decode((await self.send("Page.captureScreenshot", format="png"))["data"])

    async def heap(self) -> int:
        """Bytes that JavaScript keeps, after what is garbage has been collected."""
        await self.send("HeapProfiler.collectGarbage")
        return int((await self.send("Runtime.getHeapUsage"))["usedSize"])

    async def memory(self) -> int:
        """Bytes of the largest process that draws pages: all that it alone has."""
        found = await self.devtools.send("SystemInfo.getProcessInfo")
        renderers = [one["id"] for one in found["processInfo"] if one["type"] == "renderer"]
        return max(_private(pid) for pid in renderers)

    def complaints(self) -> list[str]:
        """Returns exceptions, errors of the console, and what the page's policy has refused."""
        found = []
        for event in self.devtools.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    found.append(str(params["exceptionDetails"].get("exception", {}).get("description")))
                case "Log.entryAdded" if params["entry"]["level"] == "error":
                    found.append(params["entry"]["text"])
        return found


def _private(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


@asynccontextmanager
async def new_tab(address: str) -> AsyncIterator[Tab]:
    """Yields a tab of a browser context of its own, with nothing remembered. ``address``: of the DevTools."""
    async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
        devtools = Devtools(socket)
        reading = asyncio.create_task(devtools.read())
        context = (await devtools.send("Target.createBrowserContext"))["browserContextId"]
        created = await devtools.send("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await devtools.send("Target.attachToTarget", targetId=created["targetId"], flatten=True)
        tab = Tab(devtools, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log"):
            await tab.send(f"{domain}.enable")
        try:
            yield tab
        finally:
            await devtools.send("Target.disposeBrowserContext", browserContextId=context)
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
