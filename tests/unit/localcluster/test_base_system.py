"""What no Debian is without, as dpkg's status file has it."""

import re

import pytest

from gpushare_localcluster.build.base_system import base_system


def stanza(name: str, *, status: str = "install ok installed", **fields: str) -> str:
    lines = [
        f"Package: {name}",
        f"Status: {status}",
        "Description: of a package",
        " Package: none of its own",
    ]
    return "\n".join([*lines, *(f"{key.replace('_', '-')}: {value}" for key, value in fields.items())]) + "\n"


BASE = (
    stanza("bash", Essential="yes", Pre_Depends="libc6 (>= 2.36), libtinfo6 (>= 6)", Depends="debianutils"),
    stanza("libc6", Architecture="amd64", Depends="libgcc-s1"),
    stanza("libgcc-s1"),
    stanza("libtinfo6"),
    stanza("debianutils", Depends="awk, usrmerge | usr-is-merged"),
    stanza("mawk", Provides="awk (= 1.3)"),
    stanza("usr-is-merged"),
)


def names(status: str) -> set[str]:
    return set(re.findall("^Package: (.*)", status, flags=re.MULTILINE))


def test_it_is_what_is_essential_and_what_that_needs() -> None:
    kept = base_system("\n".join(BASE))
    assert names(kept) == {
        *("bash", "libc6", "libgcc-s1", "libtinfo6", "debianutils", "mawk", "usr-is-merged")
    }
    assert base_system(kept) == kept


@pytest.mark.parametrize(
    "also",
    [
        pytest.param(stanza("runc", Depends="libc6, libseccomp2"), id="a program"),
        pytest.param(stanza("golang-github-containers-common"), id="the configuration of one"),
        pytest.param(stanza("containerd.io", Provides="runc", Conflicts="runc"), id="another vendor's"),
        pytest.param(stanza("libgcc-s1", status="deinstall ok config-files"), id="settings of a removed one"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_whatever_else_is_installed_it_is_the_same(also: str, first: bool) -> None:  # noqa: FBT001
    texts = [also, *BASE] if first else [*BASE, also]
    assert base_system("\n".join(texts)) == base_system("\n".join(BASE))


def test_what_needs_each_other_is_there_once() -> None:
    status = "\n".join([stanza("libc6", Depends="libgcc-s1"), stanza("libgcc-s1", Depends="libc6")])
    essential = status.replace("Package: libc6", "Essential: yes\nPackage: libc6")
    assert base_system(essential).count("Status:") == 2


def test_of_nothing_nothing_is_kept() -> None:
    assert names(base_system("")) == set()
