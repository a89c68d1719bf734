"""What people see of problems."""

from tests.samples.drawn_pages import drawn, page_of_width

from gpushare_cli.decide.problems.facts import UnreadPart
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.views.problems import problem_view, unread_view

PART = "container main of pod team-a/serve-{} uses 9Gi of card 5 and asked for 8Gi"


def seen(detail: str, width: int = 200) -> str:
    problem = StatusProblem(
        severity=Severity.WARNING, reason="R", kind="node", names=("gpu-1",), sentence="s", detail=detail
    )
    page = page_of_width(width)
    return drawn(problem_view(problem, page), page)


def test_a_long_list_is_not_cut_in_a_word() -> None:
    text = seen("; ".join(PART.format(number) for number in range(9)))
    assert f"{PART.format(0)}, and 8 more: -o wide shows all" in text
    assert "..." not in text


def test_missing_rights_are_one_sentence() -> None:
    page = page_of_width(200)
    unread = [
        *(
            UnreadPart(part=part, reason=f'{part} is forbidden: User "u" cannot list')
            for part in ("a", "b", "c")
        ),
        UnreadPart(part="d", reason="late"),
    ]
    assert drawn(unread_view(unread), page).splitlines() == [
        "Unknown: you may not read a, b, c; -o json has what the API server says.",
        "Unknown: d could not be read: late",
    ]


def test_a_short_list_is_shown_whole() -> None:
    assert "one; two" in seen("one; two")
