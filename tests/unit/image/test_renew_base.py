"""`make base` names the base by the digest of its tag, or leaves the Dockerfile as it is and says why."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.registry import Registry, digest_of, index, serving

ROOT = Path(__file__).resolve().parents[3]
PATH = "/v2/library/python/manifests/3.11-slim"
IMAGE = index("linux/amd64", "linux/arm64", "unknown/unknown")
DOCKERFILE = """# A word on the base.
ARG BASE={base}

FROM ${{BASE}} AS build
"""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry({PATH: IMAGE})) as running:
        yield running


@pytest.fixture
def dockerfile(tmp_path: Path, registry: Registry) -> Path:
    path = tmp_path / "Dockerfile"
    path.write_text(DOCKERFILE.format(base=f"{registry.host}/library/python:3.11-slim@sha256:{'0' * 64}"))
    return path


def renew(dockerfile: Path, *tag: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, ROOT / "image/renew_base.py", "--dockerfile", dockerfile, *tag],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )


def renamed(dockerfile: Path, *tag: str) -> str:
    """Returns what it says when it succeeds."""
    done = renew(dockerfile, *tag)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refused(dockerfile: Path, *tag: str) -> str:
    """Returns what it says when it leaves the file as it is."""
    before = dockerfile.read_bytes()
    done = renew(dockerfile, *tag)
    assert (done.returncode, done.stdout, dockerfile.read_bytes()) == (1, "", before)
    assert done.stderr.startswith("Dockerfile stays as it is: ")
    return done.stderr


@pytest.mark.parametrize("wants_token", [False, True], ids=["to everybody", "by a token"])
def test_the_line_names_the_digest_and_nothing_else_changes(
    registry: Registry, dockerfile: Path, *, wants_token: bool
) -> None:
    registry.wants_token = wants_token
    said = renamed(dockerfile)
    base = f"{registry.host}/library/python:3.11-slim@{digest_of(IMAGE)}"
    assert dockerfile.read_text() == DOCKERFILE.format(base=base)
    assert f"names {base} now, for linux/amd64, linux/arm64; it was " in said


def test_the_token_is_asked_for_as_the_registry_says(registry: Registry, dockerfile: Path) -> None:
    registry.wants_token = True
    renamed(dockerfile)
    assert registry.asked == [
        PATH,
        "/token?service=registry.test&scope=repository%3Alibrary%2Fpython%3Apull",
        PATH,
    ]


def test_one_that_is_current_is_said_to_be(dockerfile: Path) -> None:
    renamed(dockerfile)
    before = dockerfile.stat().st_mtime_ns
    assert "is current, for linux/amd64, linux/arm64" in renamed(dockerfile)
    assert dockerfile.stat().st_mtime_ns == before


def test_a_tag_that_has_moved_is_followed(registry: Registry, dockerfile: Path) -> None:
    renamed(dockerfile)
    newer = registry.manifests[PATH] = index("linux/amd64", note="newer")
    assert digest_of(IMAGE) in renamed(dockerfile), "what it was"
    assert digest_of(newer) in dockerfile.read_text()


def test_another_base_may_be_named(registry: Registry, dockerfile: Path) -> None:
    registry.manifests["/v2/mine/python/manifests/3.12"] = IMAGE
    renamed(dockerfile, f"{registry.host}/mine/python:3.12")
    assert f"ARG BASE={registry.host}/mine/python:3.12@{digest_of(IMAGE)}\n" in dockerfile.read_text()


def test_without_a_way_to_the_registry_it_says_what_to_do(dockerfile: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        host = f"127.0.0.1:{free.getsockname()[1]}"
    said = refused(dockerfile, f"{host}/library/python:3.11-slim")
    assert f"{host} cannot be reached" in said
    assert "https_proxy=..." in said
    assert "ARG BASE=image:tag@sha256:..." in said


@pytest.mark.parametrize(
    ("status", "what_to_do"),
    [
        (404, "is the tag right?"),
        (429, "in an hour"),
        (401, "wants an account"),
        (503, "later"),
        (599, "later"),
    ],
)
def test_a_refusal_says_what_to_do(
    registry: Registry, dockerfile: Path, status: int, what_to_do: str
) -> None:
    registry.refuses_with = status
    assert re.search(f"refuses .*: {status} .*{what_to_do}", refused(dockerfile))


@pytest.mark.parametrize(
    "challenge",
    [
        "Bearer",
        "Bearer realm=nowhere",
        'Bearer realm="file:///etc/hostname"',
        'Bearer service="a"',
        "Basic x",
    ],
)
def test_an_odd_way_to_a_token_is_not_gone(registry: Registry, dockerfile: Path, challenge: str) -> None:
    registry.wants_token, registry.challenge = True, challenge
    assert refused(dockerfile)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"schemaVersion": 2, "config": {}, "layers": []}', "is for one platform only"),
        (b"<html>", "is no manifest"),
        (b"[]", "is no manifest"),
        (b'{"manifests": [{}]}', "is no manifest"),
    ],
)
def test_what_is_no_image_for_several_platforms_is_refused(
    registry: Registry, dockerfile: Path, content: bytes, why: str
) -> None:
    registry.manifests[PATH] = content
    assert why in refused(dockerfile)


def test_content_that_is_not_what_it_says_it_is_is_refused(registry: Registry, dockerfile: Path) -> None:
    registry.told = f"sha256:{'1' * 64}"
    assert "is not what it says it is" in refused(dockerfile)


@pytest.mark.parametrize("text", ["python", "python:", "Python:3.11", "python:3.11@sha256:0", "a b:c", ":3"])
def test_what_is_no_tag_is_refused(dockerfile: Path, text: str) -> None:
    assert "is no image with a tag" in refused(dockerfile, text)


@pytest.mark.parametrize("line", ["", "ARG BASE=a:1\nARG BASE=b:2\n"])
def test_a_dockerfile_without_its_one_line_is_left_alone(dockerfile: Path, line: str) -> None:
    dockerfile.write_text(line + "FROM ${BASE}\n")
    assert "one line ARG BASE=image:tag" in refused(dockerfile)


def test_the_products_own_base_is_named_by_its_digest() -> None:
    (base,) = re.findall(r"^ARG BASE=(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"docker\.io/library/python:3\.11-slim@sha256:[0-9a-f]{64}", base)


def test_nobody_is_asked_in_the_open_on_the_way(registry: Registry, dockerfile: Path) -> None:
    registry.redirects_to = f"http://registry.test{PATH}"
    assert f"http://registry.test{PATH} is not encrypted; write the digest" in refused(dockerfile)
