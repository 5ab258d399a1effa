"""Text from data as it is shown to people: what would steer a terminal, or what no document may hold, is written out."""

import regex  # type: ignore[import-untyped]  # the package has no type information

_UNSHOWABLE = regex.compile(r"[[\p{Cc}\p{Cs}\p{Bidi_Control}\p{Noncharacter_Code_Point}]--[\t\n\r]]", regex.V1)


def visible(text: str) -> str:
    r"""Escape control characters, unpaired surrogates and marks that reorder text; tabs and line ends stay.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return str(_UNSHOWABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text))


def one_line(text: str) -> str:
    """The same in one line, white space folded."""
    return visible(" ".join(text.split()))
