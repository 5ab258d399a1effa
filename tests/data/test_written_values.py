"""Single values as people write them: what is read as which type, and what is not."""

from datetime import date

import pytest

from data.typed_values import TypedValue, read_value


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("5.5", 5.5, ""),
        ("-3", -3, ""),
        ("−3", -3, ""),
        ("+3", 3, ""),
        (".5", 0.5, ""),
        ("-0.0", 0, ""),
        ("1041", 1041, ""),
        ("  61   bpm. ", 61, "bpm"),
        ("61bpm", 61, "bpm"),
        ("72 %", 72, "%"),
        ("72%", 72, "%"),
        ("5.5 hrs", 5.5, "hrs"),
        ("12.4 km/h", 12.4, "km/h"),
        ("0.8 K/h", 0.8, "K/h"),
        ("14.5 degrees", 14.5, "degrees"),
        ("20.5 °C", 20.5, "°C"),
        ("20.5 º C", 20.5, "°C"),
        ("14°", 14, "°"),
        ("12 m³", 12, "m3"),
        ("98 points", 98, "points"),
        ("40 Songs", 40, "Songs"),
        ("72 beats per minute", 72, "beats per minute"),
        # money
        ("$1,200.50", 1200.5, "USD"),
        ("US$ 5", 5, "USD"),
        ("€5", 5, "EUR"),
        ("5 €", 5, "EUR"),
        ("£ 7.20", 7.2, "GBP"),
        ("-$5", -5, "USD"),
        ("$-5", -5, "USD"),
        ("1200 EUR", 1200, "EUR"),
        ("EUR 1200", 1200, "EUR"),
        ("$5 USD", 5, "USD"),
        ("¥500", 500, "¥"),
        # separators
        ("1,200", 1200, ""),
        ("1,200,300", 1200300, ""),
        ("1.200,50", 1200.5, ""),
        ("1.200.300", 1200300, ""),
        ("1 200,5 kg", 1200.5, "kg"),
        ("1\u00a0200", 1200, ""),
        ("1’200", 1200, ""),
        ("1.200", 1.2, ""),
        ("1,5", 1.5, ""),
        ("12,25 EUR", 12.25, "EUR"),
        ("0,125", 0.125, ""),
        ("1,2345", 1.2345, ""),
        # magnitudes
        ("3.5k", 3500, ""),
        ("12K steps", 12000, "steps"),
        ("1.2 million dollars", 1200000, "dollars"),
        ("2 thousand", 2000, ""),
        ("10 km", 10, "km"),
        ("10 K", 10, "K"),
        ("1e3", 1000, ""),
        ("5e-3 g", 0.005, "g"),
        # fractions and approximations
        ("½", 0.5, ""),
        ("1½ cups", 1.5, "cups"),
        ("2 ¾ kg", 2.75, "kg"),
        ("about 5", 5, ""),
        ("~5 kg", 5, "kg"),
        ("Approx. 5 kg", 5, "kg"),
        # other scripts
        ("１２．５％", 12.5, "%"),
        ("٥٫٥ kg", 5.5, "kg"),
        ("१२ km", 12, "km"),
    ],
)
def test_numbers(text: str, value: float, unit: str) -> None:
    assert read_value(text, "number") == TypedValue("number", value, unit)


def test_there_is_one_zero() -> None:
    assert [str(read_value(text, "number").value) for text in ("-0", "-1e-400")] == ["0.0", "0.0"]  # type: ignore[union-attr]
    assert str(read_value("-0 min", "duration").value) == "0.0"  # type: ignore[union-attr]


NO_NUMBERS = (
    "abc | bpm | 55..130 | 5-10 | 5 – 10 | 55 to 130 | <5 | >= 5 | 5+ | over 5 | 5 or more | 5/10 | 1/2 | 120/80 mmHg | "
    "5 out of 10 | 2nd | 4th | 12 March | 7 pm | 7:30 | 12.03.2026 | 5 h 30 min | 12,34,567 | 1,200.300.5 | 1,200,30 | 0.200.300 | "
    "--5 | +-5 | -$-5 | $5 EUR | ABC 5 | #5 | No. 5 | 10² | 5① | 5 kg (net) | 5 kg 3 | 5 a 6 | 1.2.3 | . | 5 one two three four | "
    "1e999 | -1e999 | 1e- | nan | inf | -Infinity | 1000000000000000 | 五 | 555-1234"
)


@pytest.mark.parametrize("text", [*NO_NUMBERS.split(" | "), "", " ", "9" * 79, "9" * 5000, "5 \ud800", "\ud8005"])
def test_no_numbers(text: str) -> None:
    assert read_value(text, "number") is None


MARCH_12, DECEMBER_3 = date(2026, 3, 12), date(2026, 12, 3)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-03-12", MARCH_12),
        ("2026/3/12", MARCH_12),
        ("2026-03-12T07:30:00Z", MARCH_12),
        ("2026-03-12 07:30", MARCH_12),
        ("March 12, 2026", MARCH_12),
        ("march 12th 2026", MARCH_12),
        ("Mar. 12, 2026", MARCH_12),
        ("12 Mar 2026", MARCH_12),
        ("12-Mar-2026", MARCH_12),
        ("12th of March, 2026", MARCH_12),
        ("12. March 2026", MARCH_12),
        ("Thursday, March 12, 2026", MARCH_12),
        ("Thu 2026-03-12.", MARCH_12),
        ("Sept 3 2026", date(2026, 9, 3)),
        ("12/03/2026", DECEMBER_3),  # month first
        ("12.03.2026", MARCH_12),  # day first
        ("12-03-2026", MARCH_12),
        ("25/03/2026", date(2026, 3, 25)),  # 25 is no month
        ("03.25.2026", date(2026, 3, 25)),
        ("29 Feb 2028", date(2028, 2, 29)),
        ("٢٠٢٦-٠٣-١٢", MARCH_12),
    ],
)
def test_dates(text: str, day: date) -> None:
    assert read_value(text, "date") == TypedValue("date", day)


def test_the_order_can_be_said() -> None:
    assert read_value("12/03/2026", "date", day_first=True) == TypedValue("date", MARCH_12)
    assert read_value("12.03.2026", "date", day_first=False) == TypedValue("date", DECEMBER_3)
    assert read_value("25/03/2026", "date", day_first=False) == TypedValue("date", date(2026, 3, 25))


NO_DATES = (
    "March 12 | 12 March | March 2026 | 2026 | 12/03 | 12/03/26 | 12/03-2026 | 31/02/2026 | 29 Feb 2026 | 0/1/2026 | 13/13/2026 | "
    "2026-13-01 | 0000-01-01 | 12 Foo 2026 | 7:30 | tomorrow | Thursday | on 2026-03-12 | 12 March 20261 | 2026-03-12 noon"
)


@pytest.mark.parametrize("text", [*NO_DATES.split(" | "), "", "\ud800"])
def test_no_dates(text: str) -> None:
    assert read_value(text, "date") is None


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("7:30", 450),
        ("07:30 pm", 1170),
        ("7 pm", 1140),
        ("7PM", 1140),
        ("7 p.m.", 1140),
        ("7.30 pm", 1170),
        ("19h30", 1170),
        ("0:00", 0),
        ("23:59", 1439),
        ("12 am", 0),
        ("12:15 pm", 735),
        ("noon", 720),
        ("Midnight", 0),
        ("07:30:15", 450.25),
        ("about 7:30", 450),
    ],
)
def test_times_of_day(text: str, minutes: float) -> None:
    assert read_value(text, "time") == TypedValue("time", minutes)


NO_TIMES = "7 | 7.30 | 24:00 | 7:60 | 13 pm | 0 am | 7:3 | 7h30 pm | 7h | 7:30-8:00 | 1:23:60 | 7:30 h"


@pytest.mark.parametrize("text", [*NO_TIMES.split(" | "), ""])
def test_no_times_of_day(text: str) -> None:
    assert read_value(text, "time") is None


@pytest.mark.parametrize(
    ("text", "seconds", "unit"),
    [
        ("5 h 30 min", 19800, "h"),
        ("5h30m", 19800, "h"),
        ("5h30", 19800, "h"),
        ("1 hr 20", 4800, "hr"),
        ("5 hours and 30 minutes", 19800, "hours"),
        ("1 hr., 5 min., 3 sec.", 3903, "hr"),
        ("5.5 hrs", 19800, "hrs"),
        ("0.1 h", 360, "h"),
        ("1½ h", 5400, "h"),
        ("45 min", 2700, "min"),
        ("45 m", 2700, "min"),
        ("about 45 minutes", 2700, "minutes"),
        ("90 s", 90, "s"),
        ("28.1 s", 28.1, "s"),
        ("90 ms", 0.09, "ms"),
        ("2 days", 172800, "days"),
        ("1 week 2 d", 777600, "week"),
        ("0 h 30 min", 1800, "h"),
        ("1 h 90 min", 9000, "h"),
        ("1,200 s", 1200, "s"),
        ("-5 min", -300, "min"),
        ("1:23:45", 5025, "h:mm:ss"),
        ("0:05:09.5", 309.5, "h:mm:ss"),
        ("-1:00:00", -3600, "h:mm:ss"),
        ("7:30 h", 27000, "h"),
        ("23:45 min", 1425, "min"),
    ],
)
def test_durations(text: str, seconds: float, unit: str) -> None:
    assert read_value(text, "duration") == TypedValue("duration", seconds, unit)


NO_DURATIONS = (
    "61 | 7:30 | 7:30 s | 7:30 kg | 30 min 5 h | 5 h 3 h | 1.5 h 30 min | 3 months | 2 years | 61 bpm | 5 h or so | 5 h - 6 h | h | "
    "min 5 | 1:60:00 | 1e999 s | 1.2.3 h | - 5 - h"
)


@pytest.mark.parametrize("text", [*NO_DURATIONS.split(" | "), "", "9" * 40 + " weeks", "9" * 5000 + " h", "5 \ud800", "5 h\ud800"])
def test_no_durations(text: str) -> None:
    assert read_value(text, "duration") is None


def test_a_number_without_a_unit_is_in_the_given_one() -> None:
    assert read_value("61", "duration", unit="min") == TypedValue("duration", 3660, "min")
    assert read_value("1 h", "duration", unit="min") == TypedValue("duration", 3600, "h")
    assert read_value("61", "duration", unit="bpm") is None
    assert read_value("61 bpm", "duration", unit="min") is None
    assert read_value("61", "number", unit="bpm") == TypedValue("number", 61, "bpm")
    assert read_value("61 kg", "number", unit="bpm") == TypedValue("number", 61, "kg")


@pytest.mark.parametrize("text", ["yes", "Y", "TRUE", "on", "✓", "✔️", "☑", "✅", "Yes."])
def test_true(text: str) -> None:
    assert read_value(text, "boolean") == TypedValue("boolean", True)


@pytest.mark.parametrize("text", ["no", "N", "False", "off", "✗", "✘", "❌", "☐"])
def test_false(text: str) -> None:
    assert read_value(text, "boolean") == TypedValue("boolean", False)


@pytest.mark.parametrize("text", ["", "1", "0", "x", "maybe", "yes and no", "not on"])
def test_neither(text: str) -> None:
    assert read_value(text, "boolean") is None


def test_text_is_kept_as_it_is_written() -> None:
    assert read_value("  Ａ  b.\n", "text") == TypedValue("text", "Ａ  b.")
    assert read_value("x" * 100_000, "text") == TypedValue("text", "x" * 100_000)
    assert read_value(" \t\n", "text") is None
    assert read_value("a\ud800", "text") is None  # no UTF-8 holds it
