"""The names that the programs write into a cluster or read from it, collected from their source: conditions
and their reasons, Events, labels, annotations, variables.

Texts are followed through constants, imports and local variables. An expression that cannot be followed is
not passed over: it raises, until ``SPELLED_OUT`` says what its texts are.
"""

import ast
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.names import ISOLATION_IN_FORCE, ISOLATION_READY, SHARE_TOO_SMALL
from gpushare_extender.decide.waiting.unserved_pods import Waiting
from gpushare_operator.backends.volcano.condition import STATES
from gpushare_operator.decide.unavailable_plugins import DOUBTED
from gpushare_operator.evictions import EVENT_REASONS
from gpushare_operator.policies import conditions
from gpushare_operator.status.nodes.node_facts import OVER, FactKind
from gpushare_plugin.decide.isolation.conditions import NOT_IN_FORCE
from gpushare_plugin.decide.report.annotation_repairs import ANNOTATIONS_FULL, OTHER_CARD

ROOT = Path(__file__).parents[3]
PROGRAMS = ("core", "operator", "plugin", "extender", "hostctl", "cli")
"""The folders of what runs in a cluster or beside it."""

CONDITION_CALLS = ("condition_true", "condition_false", "condition_unknown", "state")
"""Functions with a condition's type and reason; ``state`` is what a variable with one of them is called."""
PROBLEM_CALLS = ("Problem", "_Fault", "_FaultError", "_Symptom", "RegistrationState")
"""Functions with a reason that later becomes that of a condition, or of a fault of a card."""
EVENT_CALLS = ("new_event", "_policy_event", "PodEvent", "PreemptionEvent", "Notice")
POSITION_OF_EVENT_REASON = {"PreemptionEvent": 1, "Notice": 0}

FORWARDED = {"reason", "type"}
"""Attributes of what has been collected where it was made."""
SPELLED_OUT: Mapping[tuple[str, str], Collection[str]] = {
    ("notices", "reason"): {*FactKind, *(reason for reason, _ in OVER.values())},
    ("evictions", "EVENT_REASONS[outcome]"): EVENT_REASONS.values(),
    ("events", "reason"): (),
    ("events", "condition.type if event_type == 'Normal' else condition.reason"): (),
    ("unserved_pods", "self.reason"): {*Waiting},
    ("condition", "reason"): {
        *(reason for reason, _ in STATES.values()),
        *(conditions.NEEDS_ATTENTION, conditions.RESTORING, conditions.RESTORED),
    },
    ("condition", "conditions.NEEDS_ATTENTION if needs_person else reason"): {
        *(conditions.NEEDS_ATTENTION, conditions.INSTALL_FAILED, conditions.RESTORE_FAILED),
    },
    ("unit_change_blocked", "reason"): {conditions.PODS_HOLD_UNITS},
    ("unavailable_plugins", "type_"): DOUBTED,
    ("conditions", "type_"): {ISOLATION_READY, ISOLATION_IN_FORCE},
    ("conditions", "isolation.asked.value"): {*MemoryIsolation} - {MemoryIsolation.NONE},
    ("conditions", "reason"): {NOT_IN_FORCE, SHARE_TOO_SMALL},
    ("annotation_repairs", "reason"): {ANNOTATIONS_FULL, OTHER_CARD},
    ("source", "reason"): (),
    ("card_health", "f'Xid{event.xid}'"): {"Xid79"},
}
"""Module and expression -> its texts; none where they have been collected where the variable got them."""


class UnknownTextError(Exception):
    """An expression that is not followed: spell out its texts."""


@dataclass
class Module:
    """One file, and what its names stand for."""

    path: Path
    tree: ast.Module
    texts: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for statement in ast.walk(self.tree):
            if isinstance(statement, ast.ImportFrom) and statement.module:
                for name in statement.names:
                    self.imported[name.asname or name.name] = (statement.module, name.name)
        for statement in self.tree.body:
            self.texts.update(_assigned(statement))


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        yield statement.target.id, statement.value
    if not isinstance(statement, ast.Assign):
        return
    (target, *_), value = statement.targets, statement.value
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        names = (name.id for name in target.elts if isinstance(name, ast.Name))
        yield from zip(names, value.elts, strict=False)


@cache
def modules() -> dict[str, Module]:
    """Returns every module of the programs by its dotted name."""
    found = {}
    for program in PROGRAMS:
        for path in sorted((ROOT / program).rglob("*.py")):
            if "_pb2" not in path.name:
                name = ".".join(path.relative_to(ROOT / program).with_suffix("").parts)
                found[name.removesuffix(".__init__")] = Module(path, ast.parse(path.read_text()))
    return found


def texts(expression: ast.expr, module: Module, function: ast.AST | None = None) -> set[str]:
    """Returns the texts that ``expression`` may have."""
    match expression:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.JoinedStr(values=parts):
            every = [texts(part, module, function) for part in parts]
            return {"".join(some) for some in itertools.product(*every)}
        case ast.FormattedValue(value=inner):
            return texts(inner, module, function)
        case ast.IfExp(body=one, orelse=other) | ast.BoolOp(values=[one, other]):
            return texts(one, module, function) | texts(other, module, function)
        case ast.Name(id=name):
            return _of_name(name, expression, module, function)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in module.imported:
            owner = ".".join(module.imported[name])
            if owner in modules():
                return _of_name(attribute, expression, modules()[owner], None)
    return _forwarded(expression, module)


def _of_name(name: str, expression: ast.expr, module: Module, function: ast.AST | None) -> set[str]:
    for statement in ast.walk(function) if function else ():
        if isinstance(statement, ast.stmt) and name in (local := dict(_assigned(statement))):
            return texts(local[name], module, function)
    if name in module.texts:
        return texts(module.texts[name], module)
    if name in module.imported and (origin := modules().get(module.imported[name][0])):
        return _of_name(module.imported[name][1], expression, origin, None)
    return _forwarded(expression, module)


def _forwarded(expression: ast.expr, module: Module) -> set[str]:
    if isinstance(expression, ast.Attribute) and expression.attr in FORWARDED:
        return set()
    where = f"{module.path.relative_to(ROOT)}:{expression.lineno}"
    raise UnknownTextError(f"{where}: {ast.unparse(expression)}")


def _calls(names: Collection[str]) -> Iterator[tuple[str, ast.Call, Module, ast.AST]]:
    """Yields each call of a function with one of ``names``, but for the command line: it reads conditions."""
    for module in modules().values():
        if module.path.is_relative_to(ROOT / "cli"):
            continue
        functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)]
        for function in (module.tree, *functions):
            for node in _own_nodes(function):
                if isinstance(node, ast.Call) and (name := _called(node)) in names:
                    yield name, node, module, function


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yields what is in ``function`` and in no function inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own_nodes(child)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _argument(call: ast.Call, position: int | None, keyword: str) -> ast.expr | None:
    named = next((given.value for given in call.keywords if given.arg == keyword), None)
    if named is None and position is not None and len(call.args) > position:
        return call.args[position]
    return named


def _arguments(names: Collection[str], positions: Mapping[str, int], keyword: str) -> set[str]:
    found: set[str] = set()
    for name, call, module, function in _calls(names):
        argument = _argument(call, positions.get(name), keyword)
        if argument is not None:
            found |= _texts_or_spelled_out(argument, module, function)
    return found


def _texts_or_spelled_out(argument: ast.expr, module: Module, function: ast.AST) -> set[str]:
    spelled_out = SPELLED_OUT.get((module.path.stem, ast.unparse(argument)))
    try:
        return texts(argument, module, function) or {str(text) for text in spelled_out or ()}
    except UnknownTextError:
        if spelled_out is None:
            raise
        return {str(text) for text in spelled_out}


def condition_types() -> set[str]:
    return _arguments(CONDITION_CALLS, dict.fromkeys(CONDITION_CALLS, 0), "type_")


def condition_reasons() -> set[str]:
    of_problems = _arguments(PROBLEM_CALLS, dict.fromkeys(PROBLEM_CALLS[:4], 0), "reason")
    registration = modules()["gpushare_plugin.decide.report.conditions"]
    (default,) = (
        texts(value, registration)
        for class_ in ast.walk(registration.tree)
        if isinstance(class_, ast.ClassDef) and class_.name == "RegistrationState"
        for statement in class_.body
        for name, value in _assigned(statement)
        if name == "reason"
    )
    return _arguments(CONDITION_CALLS, dict.fromkeys(CONDITION_CALLS, 1), "reason") | of_problems | default


def event_reasons() -> set[str]:
    """Returns the reasons of Events that are no conditions' reasons."""
    return _arguments(EVENT_CALLS, POSITION_OF_EVENT_REASON, "reason")


KEY = re.compile(r"(?:[a-z0-9-]+\.)*gpushare\.io(?:\.node-restriction\.kubernetes\.io)?/[a-z][a-z0-9-]*")


def keys() -> set[str]:
    """Returns labels, annotations, resources and API versions below our group."""
    found = {text for text in _all_texts() if KEY.fullmatch(text)}
    for path in sorted((ROOT / "manifests").rglob("*.yaml")):
        found |= set(KEY.findall(path.read_text()))
    return found


VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
OF_A_CONTAINER = re.compile(r"- name: ([A-Z][A-Z0-9_]*)$", re.MULTILINE)


def variables() -> set[str]:
    """Returns what looks like the name of a variable anywhere in the programs, what they read from their
    environment, and what manifests set."""
    named = {text for text in _all_texts() if VARIABLE.fullmatch(text)}
    for path in sorted((ROOT / "manifests").rglob("*.yaml")):
        named |= set(OF_A_CONTAINER.findall(path.read_text()))
    return named | {text for module in modules().values() for text in _read_from_environment(module)}


def _read_from_environment(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(name)), *_]
            ):
                pass
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))):
                pass
            case _:
                continue
        if ast.unparse(owner).endswith(("environ", "environment")):
            yield name


def _all_texts() -> Iterator[str]:
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr) and "GROUP" in ast.unparse(node):
                try:
                    yield from texts(node, module)
                except UnknownTextError:
                    continue
