"""Units as people write them: which spellings mean one unit, and conversion between units of one kind.

Only the spellings listed here convert, through pint's factors: pint's own reading of words would take points for typography and "cal"
for a thousandth of what a meal's label means. Every other unit is kept as written and converts only to itself; so do currencies,
"degrees" (of what?), "cal" and "calories" (of either size), and cups, spoons, pints and gallons (each country has its own).
"""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from dateutil.parser import parserinfo

if TYPE_CHECKING:
    import pint

TIME = "time"
"""The kind of unit that durations are in: milliseconds to weeks. Months and years differ in length and are a kind of their own."""

# kind -> unit as pint names it -> spellings, in the singular; those of one letter count only as they stand here
_CONVERTIBLE = {
    TIME: {"millisecond": "ms msec", "second": "s sec", "minute": "min", "hour": "h hr hrs", "day": "d", "week": "wk wks"},
    "calendar": {"month": "", "year": "yr yrs"},
    "mass": {
        "microgram": "μg mcg",
        "milligram": "mg",
        "gram": "g",
        "kilogram": "kg kgs kilo",
        "tonne": "t",
        "pound": "lb lbs",
        "ounce": "oz",
        "stone": "",
    },
    "length": {
        "millimeter": "mm",
        "centimeter": "cm",
        "meter": "m",
        "kilometer": "km kms",
        "inch": "in",
        "foot": "ft feet",
        "yard": "yd yds",
        "mile": "mi",
    },
    "area": {
        "meter**2": "m2 sqm square_meter",
        "kilometer**2": "km2 square_kilometer",
        "hectare": "ha",
        "acre": "",
        "foot**2": "ft2 sq_ft",
    },
    "volume": {"milliliter": "ml", "centiliter": "cl", "deciliter": "dl", "liter": "l L", "meter**3": "m3 cubic_meter"},
    "temperature": {
        "degree_Celsius": "°C C degC celsius deg_c degree_c degree_celsius",
        "degree_Fahrenheit": "°F F degF fahrenheit deg_f degree_f degree_fahrenheit",
    },
    "speed": {
        "kilometer/hour": "km/h kmh kph km_per_hour kilometer_per_hour",
        "mile/hour": "mph mi/h mile_per_hour",
        "meter/second": "m/s meter_per_second",
        "knot": "kn kt kts",
    },
    "energy": {"joule": "J", "kilojoule": "kJ", "kilocalorie": "kcal", "watt_hour": "Wh", "kilowatt_hour": "kWh", "megawatt_hour": "MWh"},
    "power": {"milliwatt": "mW", "watt": "W", "kilowatt": "kW", "megawatt": "MW"},
    "pressure": {"pascal": "Pa", "hectopascal": "hPa", "kilopascal": "kPa", "bar": "", "millibar": "mbar", "psi": "", "mmHg": "mm_Hg"},
}
_ONLY_SPELLINGS = {
    "percent": "% pct",
    "degree": "° deg",
    "bpm": "beat/min beat_per_min beat_per_minute",
    "rpm": "revolution_per_minute",
    "usd": "$ us$ dollar us_dollar",
    "eur": "€ euro",
    "gbp": "£",
    "inr": "₹ rupee",
    "jpy": "yen",
}
CURRENCY_SYMBOLS = {"$": "USD", "us$": "USD", "€": "EUR", "£": "GBP", "₹": "INR", "¥": "¥"}  # ¥ is that of two countries
_CODES = "usd eur gbp jpy chf cny inr cad aud nzd sek nok dkk pln czk huf krw brl mxn zar"
CURRENCY_CODES = frozenset(_CODES.split())
_OTHER_WORDS = "am pm st nd rd th a an the of out or and to than more less fewer plus minus ago at on for from with by is was"
_NO_UNITS = frozenset(_OTHER_WORDS.split())  # words after a number that are no unit: "5 or more", "3 pm", "2nd", "4 of them"
_MONTHS = parserinfo()  # neither is "May" in "12 May"
_WORD = re.compile(r"[^\W\d_]+[23]?(?:[/·-][^\W\d_]+[23]?)*")
_MOST_WORDS = 3
_LIMIT = 10**300  # leaves room for every factor


_PLURAL = re.compile(r"(?<=ss|ch|sh)es$|(?<=x)es$|(?<=[^\W\d_]{3})(?<!s)s$", re.IGNORECASE)


def _spelling(text: str) -> str:
    """A unit's text with American endings, each word in the singular, joined by "_"."""
    plain = unicodedata.normalize("NFKC", text).replace("° ", "°")
    words = [re.sub(r"(?<=met|lit)re(?=s?\b)", "er", word) for word in plain.split()]
    return "_".join(_PLURAL.sub("", word) for word in words)


def _tables() -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    """(kind, name) by spelling, and by casefolded spelling where only one unit is meant."""
    exact: dict[str, tuple[str, str]] = {}
    for kind, units in {**_CONVERTIBLE, "": _ONLY_SPELLINGS}.items():
        for name, spellings in units.items():
            for spelling in [name, *spellings.split()]:
                exact[_spelling(spelling.replace("_", " "))] = (kind, name)
    folded: dict[str, tuple[str, str]] = {}
    for spelling, key in exact.items():
        if len(spelling) > 1 and len({exact[other] for other in exact if other.casefold() == spelling.casefold()}) == 1:
            folded[spelling.casefold()] = key
    return exact, folded


_EXACT, _FOLDED = _tables()


@lru_cache(maxsize=10_000)
def unit_key(unit: str) -> tuple[str, str]:
    """What a unit measures ("" where nothing converts to it) and its one name; two spellings of a unit have one key."""
    spelling = _spelling(unit)
    return _EXACT.get(spelling) or _FOLDED.get(spelling.casefold()) or ("", spelling.casefold())


def is_unit(text: str) -> bool:
    """Whether what stands after a number can be its unit: a known one, or up to three words of letters like "bpm" or "heart points"."""
    if unit_key(text) in _EXACT.values():
        return True
    words = text.split()
    return 0 < len(words) <= _MOST_WORDS and all(map(_is_unit_word, words))


def _is_unit_word(word: str) -> bool:
    return bool(_WORD.fullmatch(word)) and word.casefold() not in _NO_UNITS and _MONTHS.month(word) is None


def convert(value: float | Fraction, source: str, target: str) -> float | None:
    """The value in another unit, rounded only to a float; None where the units are not of one kind or the value is not finite."""
    if not -_LIMIT < value < _LIMIT:  # NaN too
        return None
    (kind, name), (target_kind, target_name) = unit_key(source), unit_key(target)
    if (kind, name) == (target_kind, target_name):
        return float(value)
    if not kind or kind != target_kind:
        return None
    scale, offset = _line(name, target_name)
    return float(Fraction(str(value)) * scale + offset)  # of the digits as written: 98.6 is 986/10, not the nearest binary fraction


@lru_cache(maxsize=1000)
def _line(source: str, target: str) -> tuple[Fraction, Fraction]:
    """Scale and offset from one of pint's units to another."""
    zero, one = (_registry().Quantity(Fraction(value), source).to(target).magnitude for value in (0, 1))
    return one - zero, zero


@lru_cache(maxsize=1)
def _registry() -> "pint.UnitRegistry[Fraction]":
    import pint  # reading its definitions takes half a second, which only conversions need

    return pint.UnitRegistry(non_int_type=Fraction)
