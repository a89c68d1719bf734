"""YAML texts: those that a reader must refuse cheaply, and right ones that somebody has damaged."""

from hypothesis import strategies as st

TAGS = (
    "!!int ''",
    "!!int abc",
    "!!float x",
    "!!bool perhaps",
    "!!timestamp never",
    "!!binary '***'",
    "!!null x",
    "!!set [a]",
    "!!omap {a: b}",
    "!!pairs x",
    "!!python/object/apply:os.system [id]",
    "!mine x",
    "!!str [a]",
    "!!map [a]",
    "!!seq {a: b}",
    "9" * 5000,
    "0x" + "f" * 5000,
    "1:2:3",
    ".nan",
    "2026-13-45",
    "2026-11-22T25:00:00Z",
    "0000-01-01",
    "? [a, b] : c",
    "{[a]: b}",
    "<<: 5",
    "{<<: [a, b]}",
    "&a [*a]",
    "&a {x: *a}",
    "*nobody",
    '"\\ud800"',
    '"\\0"',
    '"\\x85"',
    "|9\n x",
    "%YAML 9.9",
    "[" * 500,
    "{a: " * 500,
    "- " * 500 + "x",
    "\u2028",
    "\ufeff",
    "\x07",
)
"""Values at which one of PyYAML's constructors or its scanner stumbles, or that are more than they look."""


def laughs(levels: int, *, width: int = 9) -> str:
    """A few lines that stand for ``width ** levels`` words."""
    lists = (", ".join([f"*l{number}"] * width) for number in range(levels))
    above = (f"l{level}: &l{level} [{below}]" for level, below in enumerate(lists, start=1))
    return "\n".join(["l0: &l0 [lol]", *above, ""])


def merged_laughs(levels: int, *, width: int = 9) -> str:
    """The same by merge keys, which a reader unfolds before anybody sees the document."""
    lists = (", ".join([f"*l{number}"] * width) for number in range(levels))
    above = (f"l{level}: &l{level} {{<<: [{below}]}}" for level, below in enumerate(lists, start=1))
    return "\n".join(["l0: &l0 {k: lol}", *above, ""])


BOMBS = {
    "aliases": laughs(9),
    "merge keys": merged_laughs(9),
    "deep block": "".join(" " * depth + "a:\n" for depth in range(600)),
    "deep flow": "a: " + "[" * 20_000,
    "long scalar": "a: " + "x" * 3_000_000 + "\n",
    "many keys": "".join(f"k{number}: 1\n" for number in range(150_000)),
    "many documents": "---\na: 1\n" * 60_000,
    "many comments": "# c\n" * 400_000 + "a: 1\n",
    "one long line of brackets": "a: [" + "[]," * 300_000 + "]\n",
}
"""By name: texts that cost time or memory out of all proportion, or just much."""

damage = st.sampled_from(
    [
        "\n",
        "[",
        "{",
        "'",
        '"',
        "&a ",
        "*a",
        "- ",
        ": ",
        "#",
        "\t",
        "\r",
        "|",
        ">",
        "<<: ",
        "!!int ''",
        "\0",
        "\x85",
        "\u2028",
        "---\n",
        "...\n",
        "? ",
        "%",
        "@",
        "`",
        "\ufeff",
    ]
) | st.sampled_from(TAGS)


@st.composite
def damaged_yaml(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """``texts`` with up to three things inserted, replaced or cut."""
    text = draw(texts)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        end = draw(st.integers(place, min(len(text), place + 12)))
        text = text[:place] + draw(damage | st.just("")) + text[end:]
    return text
