"""Dates and times in English text, resolved against the day on which something was said."""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
_MONTH_WORD = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_ISO = re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b")
_DAY_MONTH = re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH_WORD}(?:,?\s+(?P<year>\d{{4}}))?\b", re.IGNORECASE)
_MONTH_DAY = re.compile(
    rf"\b{_MONTH_WORD}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s*(?:min|kg|km|eur|%))(?:,?\s+(?P<year>\d{{4}}))?", re.IGNORECASE
)
_MONTH_YEAR = re.compile(
    rf"\b(?:in|during|of|for|early|late|mid|end of)\s+{_MONTH_WORD}(?:\s+(?P<year>\d{{4}}))?\b(?!\s+\d)", re.IGNORECASE
)
_RELATIVE = (
    (re.compile(r"\bday before yesterday\b", re.IGNORECASE), -2),
    (re.compile(r"\byesterday\b|\blast night\b", re.IGNORECASE), -1),
    (re.compile(r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b", re.IGNORECASE), 0),
    (re.compile(r"\btomorrow\b", re.IGNORECASE), 1),
)
_SPAN = r"(?P<count>\d{1,4}|a|one|two|three|four|five|six|seven|eight|nine|ten)\s+(?P<unit>day|week)s?"
_AGO = re.compile(rf"\b{_SPAN}\s+ago\b", re.IGNORECASE)
_IN_FUTURE = re.compile(rf"\bin\s+{_SPAN}\b", re.IGNORECASE)
_WEEKDAY = re.compile(rf"\b(?P<which>last|next|this|on)\s+(?P<name>{'|'.join(_WEEKDAYS)})\b", re.IGNORECASE)
_COUNTS = {
    name: value for value, name in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
} | {"a": 1}
CLOCK = re.compile(r"\b\d{1,2}:\d{2}(?:\s*[ap]\.?m\.?)?|\b\d{1,2}\s*[ap]\.?m\b\.?", re.IGNORECASE)


@dataclass(frozen=True)
class DateRange:
    """A day, or the days of a month, that a text names. ``first`` and ``last`` are included."""

    first: date
    last: date

    def holds(self, iso: str) -> bool:
        """Whether an ISO day lies in the range; an unreadable one does not."""
        day = parse_iso(iso)
        return day is not None and self.first <= day <= self.last


@lru_cache(maxsize=10_000)
def parse_iso(text: str) -> date | None:
    """The date of ``YYYY-MM-DD``, or None."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@lru_cache(maxsize=50_000)
def named_days(text: str, said_on: str) -> tuple[str, ...]:
    """The ISO days that a text names in full, or by day and month (the year of ``said_on`` is then meant), in order."""
    year = said_on[:4] if said_on[:4].isdecimal() else ""
    found: list[tuple[int, str]] = []
    for pattern in (_ISO, _DAY_MONTH, _MONTH_DAY):
        for match in pattern.finditer(text):
            named_year = match["year"] or year
            day = _day(named_year, match["month"], match["day"]) if named_year else None
            if day:
                found.append((match.start(), day.isoformat()))
    return tuple(dict.fromkeys(day for _, day in sorted(found)))


@lru_cache(maxsize=50_000)
def happened_on(text: str, said_on: str) -> str:
    """The ISO day of what a sentence tells: named, relative to the day it was said, or that day itself."""
    named = named_days(text, said_on)
    base = parse_iso(said_on)
    if named or base is None:
        return named[0] if named else said_on
    try:
        return (base + timedelta(days=_days_away(text, base))).isoformat()
    except OverflowError:  # before year 1 or after 9999: not a date that was meant
        return said_on


def _days_away(text: str, base: date) -> int:
    """Days from ``base`` to the day that a text names relative to it; 0 if it names none."""
    for pattern, days in _RELATIVE:
        if pattern.search(text):
            return days
    for pattern, sign in ((_AGO, -1), (_IN_FUTURE, 1)):
        if match := pattern.search(text):
            count = _COUNTS.get(match["count"].casefold()) or int(match["count"])
            return sign * count * (7 if match["unit"].casefold() == "week" else 1)
    if (match := _WEEKDAY.search(text)) and match["which"].casefold() in {"last", "next"}:
        distance = (_WEEKDAYS.index(match["name"].casefold()) - base.weekday()) % 7
        return distance - 7 if match["which"].casefold() == "last" else distance or 7
    return 0


def asked_ranges(question: str, years: frozenset[str]) -> tuple[DateRange, ...]:
    """The days or months that a question names; where it gives no year, each of ``years`` (four digits) is meant."""
    ranges: list[DateRange] = []
    for year in sorted(years) or ["2000"]:
        ranges += [DateRange(day, day) for text in named_days(question, f"{year}-01-01") if (day := parse_iso(text))]
    if ranges:
        return tuple(dict.fromkeys(ranges))
    for match in _MONTH_YEAR.finditer(question):
        for year in [match["year"]] if match["year"] else sorted(years):
            first = _day(year, match["month"], "1")
            if first:
                ranges.append(DateRange(first, first.replace(day=monthrange(first.year, first.month)[1])))
    return tuple(ranges)


def without_dates(text: str) -> str:
    """The text with dates and clock times blanked, so that their digits are not read as quantities."""
    for pattern in (_ISO, _DAY_MONTH, _MONTH_DAY, CLOCK):
        text = pattern.sub(lambda match: " " * len(match.group()), text)
    return text


def _day(year: str, month: str, day: str) -> date | None:
    number = (
        int(month) if month.isdecimal() else next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(month.casefold()[:3]))
    )
    try:
        return date(int(year), number, int(day))
    except ValueError:
        return None
