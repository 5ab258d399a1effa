"""Reads single values as people write them: numbers with units, dates, times of day, durations, truth values.

Every reader takes the text of `plain`, reads all of it or returns None, and never raises. What these readers decide:

Numbers. "1,200", "1 200", "1'200", "1,200.50", "1.200,50" and "1.200.300" have thousands separators; a single "1.200" is 1.2, and a
comma before any but three digits ("1,5") or after a lone 0 is a decimal comma. "3.5k" and "2 million" are multiplied out; "½" is .5.
"$", "€", "£", "₹" before or after the number are the units USD, EUR, GBP, INR, and so are currency codes. Ranges ("55..130"), bounds
("<5", "5+"), ratios ("5/10", "1/2"), ordinals and numbers of 10^15 or more are no numbers.

Dates need day, month and four-digit year. Of two numbers, one over 12 is the day; else `day_first` decides, and where it is None, "/"
puts the month first, "." and "-" the day. A clock time after an ISO date and a weekday before any date are read over.

Times of day: "7:30", "07:30:15", "7 pm", "7.30 pm", "19h30", "noon", "midnight"; without am or pm, of 24 hours.

Durations: numbers with units from weeks to milliseconds, longest first, of which the last may have decimals ("5 h 30 min", "5h30",
"5.5 hrs"), or "h:mm:ss"; "7:30" needs "h" or "min" after it, as it could be either. "m" means minutes here.
"""

import re
import unicodedata
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from dateutil.parser import parserinfo

from data.units import CURRENCY_CODES, CURRENCY_SYMBOLS, TIME, convert, is_unit, unit_key

CLOCK = "h:mm:ss"
"""The unit of durations written like 1:23:45."""
_LONGEST = 80  # characters of a value other than text
_LIMIT = 10**15  # beyond it floats no longer hold two decimals
_CHARACTERS = str.maketrans(
    {**dict.fromkeys("−‒–—", "-"), **dict.fromkeys("º˚", "°"), **dict.fromkeys("\u200b\u200e\u200f\ufeff\ufe0e\ufe0f"), "’": "'"}
    | {"٫": ".", "٬": ",", "٪": "%"}
)
_FRACTION = re.compile(r"(\d*)\s?([¼½¾⅐-⅞])")
_ABOUT = re.compile(r"(?:(?:about|around|approximately|approx\.?|roughly|circa|ca\.?)\s+|[~≈]\s*)", re.IGNORECASE)


def plain(text: str) -> str:
    """The text with ASCII digits, signs and single spaces (NFKC), without "about" before or "." after it; "" if it is no short value."""
    text = text.strip()
    if len(text) > _LONGEST:
        return ""
    text = _FRACTION.sub(lambda match: f"{match[1] or 0}{str(unicodedata.numeric(match[2]))[1:]}", text.translate(_CHARACTERS))
    if any(before.isdigit() and unicodedata.category(after) == "No" for before, after in pairwise(text)):
        return ""  # 10² is not 102
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    text = "".join(str(unicodedata.decimal(character, character)) for character in text).replace("° ", "°")
    about = _ABOUT.match(text)
    return text[about.end() if about else 0 :].rstrip(" .,;")


_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s?(?P<money>[$€£¥₹]|us\$|[a-z]{3}(?=[\s\d]))?\s?(?P<inner>[+-]?)(?P<digits>[0-9.](?:[0-9.,' ]*[0-9])?)"
    r"(?P<exponent>e[+-]?[0-9]{1,3}(?![^\W_]))?(?P<magnitude>k(?![^\W_]|/)|\s?(?:thousand|million|billion)\b)?\s?(?P<unit>.*)",
    re.IGNORECASE,
)
_POINT = re.compile(r"[0-9]+|[0-9]*\.[0-9]+|0,[0-9]+|[0-9]+,(?![0-9]{3}$)[0-9]+")
_GROUPED = re.compile(
    r"(?P<whole>[1-9][0-9]{0,2}(?P<separator>[,.' ])[0-9]{3}(?:(?P=separator)[0-9]{3})*)(?:(?!(?P=separator))[.,](?P<part>[0-9]+))?"
)
_MAGNITUDES = {"": 1, "k": 10**3, "thousand": 10**3, "million": 10**6, "billion": 10**9}


def written_number(text: str) -> tuple[float, str] | None:
    """A number and its unit as written ("" for none, the code for a currency sign)."""
    match = _NUMBER.fullmatch(text)
    digits = _digits(match["digits"]) if match else None
    if match is None or digits is None or (match["sign"] and match["inner"]):
        return None
    unit = CURRENCY_SYMBOLS.get(match["unit"].casefold(), match["unit"])
    if money := match["money"] or "":
        code = CURRENCY_SYMBOLS.get(money.casefold(), money)
        if (unit and unit_key(unit) != unit_key(code)) or (money.isalpha() and money.casefold() not in CURRENCY_CODES):
            return None
        unit = code
    if unit and unit not in CURRENCY_SYMBOLS.values() and not is_unit(unit):
        return None
    value = Decimal(f"{digits}{match['exponent'] or ''}") * _MAGNITUDES[(match["magnitude"] or "").strip().casefold()]
    if abs(value) >= _LIMIT:
        return None
    return float(-value if "-" in (match["sign"], match["inner"]) else value) + 0.0, unit  # no -0.0


def _digits(text: str) -> str | None:
    """The digits with a decimal point and no thousands separators."""
    if _POINT.fullmatch(text):
        return text.replace(",", ".")
    match = _GROUPED.fullmatch(text)
    return match and f"{match['whole'].replace(match['separator'], '')}.{match['part'] or 0}"


_NAMES = parserinfo()  # English names of months and weekdays
_NUMERIC_DATE = re.compile(r"(?P<first>[0-9]{1,2})\s?(?P<separator>[/.-])\s?(?P<second>[0-9]{1,2})\s?(?P=separator)\s?(?P<year>[0-9]{4})")
_YEAR_FIRST = re.compile(
    r"(?P<year>[0-9]{4})(?P<separator>[/.-])(?P<month>[0-9]{1,2})(?P=separator)(?P<day>[0-9]{1,2})"
    r"(?:(?:T|\s)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_NAMED_DATES = (
    re.compile(r"(?P<month>[a-z]+)\.?\s?(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?,?\s(?P<year>[0-9]{4})", re.IGNORECASE),
    re.compile(r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th|\.)?[\s-]?(?:of\s)?(?P<month>[a-z]+)\.?,?[\s-]?(?P<year>[0-9]{4})", re.IGNORECASE),
)
_WEEKDAY = re.compile(r"(?P<name>[a-z]+)\.?,?\s", re.IGNORECASE)


def written_date(text: str, day_first: bool | None) -> date | None:
    """A day of the years 1 to 9999."""
    if (weekday := _WEEKDAY.match(text)) and _NAMES.weekday(weekday["name"]) is not None:
        text = text[weekday.end() :]
    if match := _NUMERIC_DATE.fullmatch(text):
        known = _numbers_show_order(match)
        if known is None:
            known = match["separator"] != "/" if day_first is None else day_first
        day, month = ("first", "second") if known else ("second", "first")
        return _date(match["year"], int(match[month]), match[day])
    if match := _YEAR_FIRST.fullmatch(text):
        return _date(match["year"], int(match["month"]), match["day"])
    for pattern in _NAMED_DATES:
        if (match := pattern.fullmatch(text)) and (number := _NAMES.month(match["month"])):
            return _date(match["year"], number, match["day"])
    return None


def shown_order(text: str) -> bool | None:
    """Whether a date shows that its day comes first (True) or its month (False); None where it could be either."""
    match = _NUMERIC_DATE.fullmatch(text)
    return _numbers_show_order(match) if match else None


def _numbers_show_order(match: re.Match[str]) -> bool | None:
    first, second = int(match["first"]) > 12, int(match["second"]) > 12
    return first if first != second else None


def _date(year: str, month: int, day: str) -> date | None:
    try:
        return date(int(year), month, int(day))
    except ValueError:
        return None


_TIME = re.compile(
    r"(?P<hour>[0-9]{1,2})(?:(?P<separator>[:.h])(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9]))?)?\s?(?P<half>[ap]\.?\s?m)?",
    re.IGNORECASE,
)


def written_time(text: str) -> float | None:
    """Minutes of the day, 0 to under 1440."""
    if text.casefold() in {"noon", "midnight"}:
        return 720.0 if text.casefold() == "noon" else 0.0
    match = _TIME.fullmatch(text)
    if not match:
        return None
    hour, half = int(match["hour"]), (match["half"] or "").casefold()
    if half:
        if not 1 <= hour <= 12 or match["separator"] in {"h", "H"}:
            return None
        hour = hour % 12 + (12 if half[0] == "p" else 0)
    elif hour > 23 or match["separator"] in {".", None}:
        return None
    return hour * 60 + int(match["minute"] or 0) + int(match["second"] or 0) / 60


_CLOCK = re.compile(r"(?P<hours>[0-9]{1,4}):(?P<minutes>[0-5][0-9]):(?P<seconds>[0-5][0-9](?:\.[0-9]{1,9})?)")
_TWO_PARTS = re.compile(r"(?P<whole>[0-9]{1,4}):(?P<sixtieths>[0-5][0-9])\s?(?P<unit>[^\W\d_]+)")
_HOURS_MINUTES = re.compile(r"(?<=[0-9])\s?(h|hrs?|hours?)\s?([0-5]?[0-9])$", re.IGNORECASE)
_PART = re.compile(r"(?:^|,?\s?(?:\band\s)?)(?P<digits>[0-9.](?:[0-9.,']*[0-9])?)\s?(?P<unit>[^\W\d_]+)\.?")


def written_duration(text: str) -> tuple[float, str] | None:
    """Seconds, and the unit it is written in: that of its first part, or `CLOCK`."""
    sign = -1 if text.startswith("-") else 1
    text = text.removeprefix("-").lstrip()
    if match := _CLOCK.fullmatch(text):
        return sign * float(int(match["hours"]) * 3600 + int(match["minutes"]) * 60 + Decimal(match["seconds"])) + 0.0, CLOCK
    if match := _TWO_PARTS.fullmatch(text):
        parts = [(Fraction(int(match["whole"]) * 60 + int(match["sixtieths"]), 60), match["unit"])]
        if unit_key(match["unit"]) not in {(TIME, "hour"), (TIME, "minute")}:
            return None
    else:
        text = _HOURS_MINUTES.sub(r" \1 \2 min", text)
        parts = [(Fraction(_digits(part["digits"]) or -1), "min" if part["unit"] == "m" else part["unit"]) for part in _PART.finditer(text)]
        if not parts or _PART.sub("", text) or any(amount < 0 or amount % 1 for amount, _ in parts[:-1]) or parts[-1][0] < 0:
            return None
    sizes = [convert(1, unit, "s") or 0 for _, unit in parts]
    if 0 in sizes or any(longer <= shorter for longer, shorter in pairwise(sizes)):
        return None
    seconds = float(sum(amount * Fraction(size) for (amount, _), size in zip(parts, sizes, strict=True)))
    return (sign * seconds + 0.0, parts[0][1]) if seconds < _LIMIT else None


_YES, _NO = "yes y true on ✓ ✔ ☑ ✅", "no n false off ✗ ✘ ✕ ✖ ☒ ☐ ❌"
_TRUTHS = dict.fromkeys(_YES.split(), True) | dict.fromkeys(_NO.split(), False)


def written_boolean(text: str) -> bool | None:
    """Yes or no, y or n, true or false, on or off, a check mark or a cross."""
    return _TRUTHS.get(text.casefold())
