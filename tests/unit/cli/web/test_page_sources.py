"""The page's files: plain modules that make no HTML of text, and are of the sizes that this project keeps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpushare_cli.web.page_files import FOLDER, page_files

ROOT = Path(__file__).parents[4]
SCRIPTS = sorted(FOLDER.rglob("*.js"))
PARSES_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|HTMLUnsafe"
    r"|srcdoc|\beval\b|new Function|setTimeout\(\s*[\"'`]|javascript:|\bon[a-z]+\s*=\s*[\"']"
)
FROM_ELSEWHERE = re.compile(r"https?://(?!demo\.invalid|www\.w3\.org/2000/svg)|\bimport\(|@import|url\(")
COMMENTS = re.compile(r"/\*.*?\*/|^\s*//[^\n]*", re.DOTALL | re.MULTILINE)
MAX_LINES = 500
MAX_MODULES = 13

each_script = pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in SCRIPTS])


@each_script
def test_no_text_becomes_html(path: Path) -> None:
    assert PARSES_HTML.findall(path.read_text()) == []


def test_the_check_finds_what_it_looks_for() -> None:
    for bad in ("a.innerHTML = b", "document.write(x)", 'setTimeout("x")', '<a onclick="x">', "eval(x)"):
        assert PARSES_HTML.search(bad), bad


def test_the_html_has_no_script_or_style_of_its_own() -> None:
    html = (FOLDER / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", html) == []
    assert re.findall(r"<style|\bstyle=|\bon[a-z]+=", html) == []


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in sorted(FOLDER.rglob("*.*"))])
def test_nothing_comes_from_another_server(path: Path) -> None:
    assert FROM_ELSEWHERE.findall(COMMENTS.sub("", path.read_text())) == []


@each_script
def test_a_module_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES


def test_a_folder_has_so_many_modules_at_most() -> None:
    folders = {path.parent for path in SCRIPTS}
    assert all(len([*folder.glob("*.js")]) <= MAX_MODULES for folder in folders)


def test_all_that_modules_import_is_served() -> None:
    served = page_files()
    for path in SCRIPTS:
        for name in re.findall(r'from "(\.[^"]+)"', path.read_text()):
            imported = (path.parent / name).resolve().relative_to(FOLDER.resolve()).as_posix()
            assert imported in served, f"{path.name} imports {name}"


def test_the_pure_modules_keep_their_promises() -> None:
    """Node's own test runner."""
    node = Path(sys.executable).with_name("node")
    tests = Path(__file__).with_name("page.test.mjs")
    done = subprocess.run([node, "--test", tests], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
