"""The answer task: a short answer from the shown evidence and nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from data.values import format_number
from models.embedded.arithmetic import amount_of, averages_are_read, compute, days_between, event, readings
from models.embedded.dates import DateRange, asked_ranges, happened_on
from models.embedded.evidence import Evidence, read_evidence
from models.embedded.identify import asks_what_it_is, named_thing
from models.embedded.images import image_answer, question_picture
from models.embedded.lists import label_of_extreme, label_of_value
from models.embedded.ocr import TextReader
from models.embedded.pictures import PictureMatcher
from models.embedded.question import Asked, one_side, parse_question
from models.embedded.question_kinds import Kind
from models.embedded.ranking import Ranked, rank, topic_weights
from models.embedded.spans import best_clause, clean, find_span
from models.embedded.verdicts import order_answer, yes_or_no
from models.tasks.answer import AnswerInputs

NOT_MENTIONED = "Not mentioned."
_NEEDED = 0.35
_NEEDED_LITTLE = 0.2
"""For questions whose answer is a day or a whole sentence: they have many words that the evidence need not repeat."""
_FITS = 0.42
"""How well a span must fit; below, the best clause is the better answer."""
_CANDIDATES = 12
_NEAR_BEST = 0.6
"""Statements that cover less than this share of what the best one covers are not searched for spans."""
_COVERAGE = 0.7
"""What a statement's coverage counts against the fit of a span in it."""
_STILL_GOOD = 0.75
_COMPUTED = frozenset({Kind.AVERAGE, Kind.HIGHEST, Kind.LOWEST, Kind.TOTAL, Kind.COUNT, Kind.DIFFERENCE, Kind.TREND})


class Answerer:
    """Answers questions; pictures are read through ``reader`` and compared through ``pictures``."""

    def __init__(self, reader: TextReader, *, pictures: PictureMatcher) -> None:
        self._reader = reader
        self._pictures = pictures

    def answer(self, inputs: AnswerInputs) -> str:
        """Answer one question; its evidence are memories, not steps."""
        asked = parse_question(inputs.question)
        evidence = read_evidence(inputs.memories, self._reader)
        if not evidence.statements and not evidence.pictures:
            return NOT_MENTIONED
        if inputs.question_images:
            about = question_picture(inputs.question_images, evidence, self._pictures)
            if asked.kind is Kind.IMAGE and about.image_ids:
                return ", ".join(about.image_ids)
            if asked.kind is Kind.DATE and about.dates and about.dates[0]:
                return about.dates[0]
            if asks_what_it_is(asked) and (name := named_thing(asked, evidence.beside(frozenset(about.image_ids)).statements)):
                return name
            if about.image_ids:
                evidence = evidence.about(frozenset(about.image_ids))
            else:
                asked = replace(asked, topic=tuple({**{word: 0.5 for word in about.words}, **dict(asked.topic)}.items()))
            return _answer(asked, evidence, needed=0.0 if about.image_ids else _NEEDED)
        return _answer(asked, evidence, needed=_NEEDED)


def _answer(asked: Asked, evidence: Evidence, *, needed: float) -> str:
    days = asked_ranges(asked.text, evidence.years)
    rules: dict[Kind, Callable[[], str]] = {
        Kind.IMAGE: lambda: image_answer(asked, evidence, days),
        Kind.IMAGE_COUNT: lambda: image_answer(asked, evidence, days),
        Kind.DAYS_BETWEEN: lambda: _days(asked, evidence),
        Kind.ORDER: lambda: order_answer(asked, evidence),
        Kind.YES_NO: lambda: yes_or_no(asked, evidence.on(days)),
        Kind.DEARER: lambda: _dearer(asked, evidence),
    }
    if asked.kind in rules:
        return rules[asked.kind]() or NOT_MENTIONED
    if asked.lists_two:
        parts = [_single(one_side(asked, side), evidence, days, needed) for side in (0, 1)]
        told = [part for part in dict.fromkeys(parts) if part not in {"", NOT_MENTIONED}]
        return " and ".join(told) or NOT_MENTIONED
    return _single(asked, evidence, days, needed) or NOT_MENTIONED


def _single(asked: Asked, evidence: Evidence, days: Sequence[DateRange], needed: float) -> str:
    if asked.kind in {Kind.HIGHEST, Kind.LOWEST} and (label := label_of_extreme(asked, evidence)):
        return label
    if asked.kind is Kind.AVERAGE and averages_are_read(asked, evidence):
        asked = replace(asked, kind=Kind.THING)
    if asked.kind in _COMPUTED and (result := _computed(asked, evidence, days)):
        return result
    statements = evidence.on(days).statements
    if label := label_of_value(asked, statements):
        return label
    ranked = rank(topic_weights(asked.topic, statements), statements, latest=asked.latest)
    if not needed:
        ranked += [Ranked(one, 0.0) for one in statements if one not in {found.statement for found in ranked}]
    if asked.kind in {Kind.DATE, Kind.EXPLANATION}:
        needed = min(needed, _NEEDED_LITTLE)
    if not ranked or ranked[0].coverage < needed:
        return NOT_MENTIONED
    if asked.kind is Kind.DATE:
        return happened_on(ranked[0].statement.text, ranked[0].statement.date)
    return _span(asked, ranked, near_best=_NEAR_BEST if needed else 0.0)


def _computed(asked: Asked, evidence: Evidence, days: Sequence[DateRange]) -> str:
    if asked.kind in {Kind.TOTAL, Kind.DIFFERENCE} and len(asked.sides) == 2:
        amounts = [amount for side in asked.sides if (amount := amount_of(side, evidence))]
        if len(amounts) == 2 and amounts[0][1] == amounts[1][1]:
            (one, unit), (two, _) = amounts
            return format_number(one + two if asked.kind is Kind.TOTAL else abs(one - two), unit)
        if asked.dimension == "money":
            return NOT_MENTIONED
    return compute(asked, readings(asked, evidence, days))


def _dearer(asked: Asked, evidence: Evidence) -> str:
    amounts = [amount_of(side, evidence) for side in asked.sides]
    if len(amounts) != 2 or amounts[0] is None or amounts[1] is None:
        return ""
    wants_less = any(word in asked.text.casefold() for word in ("cheaper", "less"))
    return asked.sides[int((amounts[0][0] < amounts[1][0]) != wants_less)]


def _days(asked: Asked, evidence: Evidence) -> str:
    found = [told for side in asked.sides if (told := event(side, evidence))]
    count = days_between(found[0][1], found[1][1]) if len(found) == 2 else None
    return "" if count is None else f"{count} days" if count != 1 else "1 day"


def _span(asked: Asked, ranked: Sequence[Ranked], *, near_best: float) -> str:
    """The best span over the best statements: how well the statement matches plus how well the span fits.

    Statements that cover less than ``near_best`` of what the best one covers are not searched.
    Where the present state is asked for, the latest of the good ones.
    """
    if asked.kind is Kind.EXPLANATION:
        return clean(ranked[0].statement.text)
    near = [one for one in ranked[:_CANDIDATES] if one.coverage >= near_best * ranked[0].coverage]
    options = [
        (_COVERAGE * one.coverage + fit, fit, one.statement, span)
        for one in near
        for span, fit in [find_span(asked, one.statement.text)]
        if span
    ]
    if not options or (asked.kind is Kind.THING and max(options, key=lambda option: option[0])[1] < _FITS):
        exact = asked.dimension or asked.names_something or asked.kind in {Kind.QUANTITY, Kind.CLOCK, Kind.PERSON}
        return NOT_MENTIONED if exact else best_clause(asked.stems, ranked[0].statement.text)
    best = max(score for score, _, _, _ in options)
    if asked.latest:
        good = [option for option in options if option[0] >= _STILL_GOOD * best]
        return max(good, key=lambda option: (option[2].date, option[0]))[3]
    return next(span for score, _, _, span in options if score >= best - 1e-9)
