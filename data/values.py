"""Numbers as they are written in answers: one function, used by answers, tool results and the sample's gold."""

from decimal import ROUND_HALF_EVEN, Context, Decimal

_EXACT = Context(prec=400)  # the digits of every float


def format_number(value: float | int | Decimal, unit: str = "") -> str:
    """Write a number with at most two decimals (half-even), no trailing zeros, no thousands separator, then the unit.

    >>> format_number(71.5, "bpm"), format_number(1200), format_number(2.675)
    ('71.5 bpm', '1200', '2.68')
    """
    rounded = Decimal(str(value)).quantize(Decimal("0.01"), rounding=ROUND_HALF_EVEN, context=_EXACT)
    text = f"{rounded:f}".rstrip("0").rstrip(".") if "." in f"{rounded:f}" else f"{rounded:f}"
    text = "0" if text in {"-0", ""} else text
    return f"{text} {unit}" if unit else text
