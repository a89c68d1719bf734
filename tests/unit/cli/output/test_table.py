"""Tables fit the page, and say the same without colour."""

import io

from rich.console import Console, RenderableType
from rich.text import Text

from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import Cell, PageTable, Shrink, TableColumn

COLUMNS = (
    TableColumn(header="node"),
    TableColumn(header="free", is_number=True),
    TableColumn(header="model", shrink=Shrink.CROP, min_width=6),
    TableColumn(header="uuid", only_wide=True),
    TableColumn(header="reason", shrink=Shrink.FOLD, min_width=10),
)
ROWS: tuple[tuple[Cell, ...], ...] = (
    ("gpu-1", 4, "NVIDIA A100 80GB", "GPU-1", "none"),
    ("gpu-22", 128, "Tesla T4", "GPU-2", "the driver says that the card fell off the bus"),
)


def printed(table: RenderableType, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(table, crop=False)
    return captured.get()


def page(**changes: object) -> OutputPage:
    return OutputPage(**{"width": 200, **changes})  # type: ignore[arg-type]


def test_columns_align_and_no_line_ends_with_blanks() -> None:
    assert printed(PageTable(COLUMNS, ROWS, page=page())) == (
        "NODE    FREE  MODEL             REASON\n"
        "gpu-1      4  NVIDIA A100 80GB  none\n"
        "gpu-22   128  Tesla T4          the driver says that the card fell off the bus\n"
    )


def test_a_narrow_page_folds_and_crops_what_may_be() -> None:
    text = printed(PageTable(COLUMNS, ROWS, page=page(width=40, is_ascii=True)), 40)
    assert text == (
        "NODE    FREE  MODEL         REASON\n"
        "gpu-1      4  NVIDIA A1...  none\n"
        "gpu-22   128  Tesla T4      the driver\n"
        "                            says that\n"
        "                            the card\n"
        "                            fell off the\n"
        "                            bus\n"
    )


def test_names_stay_whole_on_any_page() -> None:
    text = printed(PageTable(COLUMNS, ROWS, page=page(width=10)), 10)
    assert "gpu-22   128" in text


def test_wide_has_all_columns() -> None:
    assert "GPU-2" in printed(PageTable(COLUMNS, ROWS, page=page(is_wide=True)))
    assert "GPU-2" not in printed(PageTable(COLUMNS, ROWS, page=page()))


def test_headers_can_be_left_out() -> None:
    text = printed(PageTable(COLUMNS, ROWS, page=page(has_headers=False)))
    assert text.startswith("gpu-1   ")


def test_what_controls_a_terminal_is_shown_and_not_obeyed() -> None:
    evil = PageTable([TableColumn(header="name")], [("\x1b[31m[red]x",)], page=page())
    assert printed(evil) == "NAME\n\\u001b[31m[red]x\n"


def test_styled_cells_keep_their_width() -> None:
    rows = [(Text("ok", "green"), "a"), (Text("wrong", "red"), "b")]
    table = PageTable([TableColumn(header="state"), TableColumn(header="x")], rows, page=page())
    assert printed(table) == "STATE  X\nok     a\nwrong  b\n"


def test_an_empty_table_is_its_headers() -> None:
    assert printed(PageTable(COLUMNS, (), page=page())) == "NODE  FREE  MODEL  REASON\n"
