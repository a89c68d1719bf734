"""The tree is one that a newcomer can walk: small folders with door plates, one name for one thing."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
PACKAGES = sorted(
    package
    for part in ("core", "operator", "plugin", "extender", "hostctl", "cli", "localcluster")
    for package in (ROOT / part).glob("gpushare_*")
    if package.is_dir()
)
GENERATED = re.compile(r"_pb2(_grpc)?\.py$")
MODULES = sorted(
    path for package in PACKAGES for path in package.rglob("*.py") if not GENERATED.search(path.name)
)
FOLDERS = sorted({path.parent for path in MODULES})
BENCH = ROOT / "bench"
"""Its top has what people start, and no ``__init__.py``."""
BENCH_FOLDERS = sorted({path.parent for path in BENCH.rglob("*.py")} - {BENCH})
MAX_MODULES = 13
MAX_ROWS = 25


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("folder", [*FOLDERS, BENCH, *BENCH_FOLDERS], ids=relative)
def test_a_folder_has_few_modules(folder: Path) -> None:
    written = [path.name for path in folder.glob("*.py") if not GENERATED.search(path.name)]
    assert len({*written} - {"__init__.py"}) <= MAX_MODULES


@pytest.mark.parametrize("folder", [*FOLDERS, *BENCH_FOLDERS], ids=relative)
def test_a_folder_says_which_question_it_answers(folder: Path) -> None:
    assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))


def test_a_class_name_exists_once() -> None:
    modules = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(relative(path))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}


def test_the_tree_says_most_by_itself() -> None:
    _, _, rest = ARCHITECTURE.partition("## Where to look")
    section, _, _ = rest.partition("\n## ")
    _header, *rows = re.findall(r"^\| (?!-).*$", section, re.MULTILINE)
    assert 0 < len(rows) <= MAX_ROWS


def test_the_modules_of_the_walks_are_there() -> None:
    _, _, rest = ARCHITECTURE.partition("## Three walks")
    section, _, _ = rest.partition("## Where to look")
    missing, program = [], ""
    for row in re.finditer(r"^\| (\w*) ?\| (.*?) \|", section, re.MULTILINE):
        program = row[1] or program
        for core, module in re.findall(r"(core )?`([\w/.]+)`", row[2]):
            package = "core" if core else program
            if not (ROOT / package / f"gpushare_{package}" / module).exists():
                missing.append(f"{package}: {module}")
    assert missing == []
