"""Questions about the pictures: values in their pixels, image ids, question images, and sums over logs and dashboards."""

from decimal import Decimal

from data.sample.draws import occurs
from data.sample.pictures import TOTAL, Content
from data.sample.questions import Asked, Source, logged_fields
from data.sample.vocabulary import DashboardKind, PictureKind
from data.values import format_number


def dashboard_values(source: Source) -> list[Asked]:
    """A value that stands only in a dashboard's pixels."""
    asked = []
    for content in source.contents:
        if isinstance(content.share.kind, DashboardKind):
            for label, value in content.rows:
                wordings = [
                    "What is the {label} value on {about}?",
                    "What does {about} show for {label}?",
                    "On {about} on {date}, what is the value for {label}?",
                ]
                text = source.ask(wordings, label=label, about=_about(source, content), date=content.placed.date)
                asked.append(_pixels(content, text, value))
    return asked


def other_values(source: Source) -> list[Asked]:
    """A value or a label that stands only in the pixels of a receipt, chart, plan or scene."""
    asked = []
    for content in source.contents:
        kind = content.share.kind
        if isinstance(kind, PictureKind):
            for label, value in content.rows:
                values = {"about": _about(source, content), "label": label, "value": value, kind.setting_name: content.share.setting}
                if label == TOTAL:
                    asked.append(_pixels(content, source.ask(kind.total, **values), value))
                else:
                    asked.append(_pixels(content, source.ask(kind.asks, **values), value))
                    asked.append(_pixels(content, source.ask(kind.which, **values), label))
            if kind.extreme:
                highest = max(content.rows, key=lambda row: int(row[1]))[0]
                asked.append(_pixels(content, source.ask(kind.extreme, about=_about(source, content)), highest))
    return asked


def _about(source: Source, content: Content) -> str:
    return source.draws.choice(content.about)


def _pixels(content: Content, text: str, answer: str) -> Asked:
    return Asked("visual_detail", text, answer, (content.placed.round_id,))


def image_subjects(source: Source) -> list[Asked]:
    """Which image shows a thing that its caption or the talk around it names."""
    asked = []
    for content in source.contents:
        wordings = ["Which image shows {about}?", "Which picture is {about}?"]
        asked.append(_search(content, source.ask(wordings, about=_about(source, content))))
    return asked


def image_labels(source: Source) -> list[Asked]:
    """Which image of a kind has a label that stands only in its pixels."""
    asked = []
    for content in source.contents:
        kind = content.share.kind
        if isinstance(kind, PictureKind):
            noun = kind.noun.format(**{kind.setting_name: content.share.setting})
            for label, _ in content.rows:
                if label != TOTAL:
                    wordings = [
                        "Which image shows the {noun} with {label} on it that {name} shared?",
                        "On which image of {name} is the {noun} with {label}?",
                    ]
                    asked.append(_search(content, source.ask(wordings, label=label, noun=noun)))
    return asked


def image_companions(source: Source) -> list[Asked]:
    """Which image was shared when somebody was along."""
    asked = []
    for content in source.contents:
        wordings = ["Which image did {name} take together with {who}?", "Which of {name}'s images was taken while {who} was there?"]
        asked.append(_search(content, source.ask(wordings, who=content.share.companion)))
    return asked


def image_sets(source: Source) -> list[Asked]:
    """Which images are of one kind."""
    boards = [content for content in source.contents if isinstance(content.share.kind, DashboardKind)]
    others = [content for content in source.contents if content not in boards]
    last, first = source.contents[-1], source.contents[0]
    sets = [
        (source.ask(["Which of {name}'s images show dashboards?"]), boards),
        (source.ask(["Which images did {name} share that are not dashboards?"]), others),
        (source.ask(["Which images did {name} share first and last?"]), [first, last]),
    ]
    asked = []
    for text, found in sets:
        ids = ", ".join(sorted(content.image_id for content in found))
        asked.append(Asked("image_search", text, ids, tuple(content.placed.round_id for content in found)))
    return asked


def _search(content: Content, text: str) -> Asked:
    return Asked("image_search", text, content.image_id, (content.placed.round_id,))


_N_COMPANION_QUESTIONS = 3
_DATE_WORDINGS = ("On which date did {name} share this picture?", "When did {name} share what is seen here? Give the date.")
_ID_WORDINGS = ("Which image of {name} is this a part of?", "Which of {name}'s images shows the same thing?")
_COMPANION_WORDINGS = ("Who was with {name} when this picture was taken?", "With whom was {name} when this was photographed?")


def question_images(source: Source) -> list[Asked]:
    """Two questions with another photo of each shared picture: its date and its id, or for some pictures who was along."""
    asked = []
    for place, content in enumerate(source.draws.shuffled(source.contents)):
        options = source.draws.shuffled([(_DATE_WORDINGS, content.placed.date), (_ID_WORDINGS, content.image_id)])
        if place < _N_COMPANION_QUESTIONS:
            options[0] = (_COMPANION_WORDINGS, content.share.companion)
        for wordings, answer in options:
            asked.append(Asked("question_image", source.ask(wordings), answer, (content.placed.round_id,), content.image_id))
    return asked


def text_aggregations(source: Source) -> list[Asked]:
    """Averages, extremes, counts and trends over the logs that were written out."""
    asked = []
    for share, _, label, readings in logged_fields(source):
        unit = _unit(source, label)
        numbers = [number for _, number in readings]
        rounds = tuple(placed.round_id for placed, _ in readings)
        ends = (rounds[0], rounds[-1])
        threshold = _threshold(source, numbers)
        above = sum(1 for number in numbers if number > threshold)
        best = readings[numbers.index(max(numbers))][0].date
        values = {"label": label, "kind": share.kind.name, "threshold": format_number(threshold, unit)}
        asks = [
            ("What was the average {label} value in the {kind} logs that {name} wrote?", _mean(numbers, unit), rounds),
            ("What was the highest {label} value in the {kind} logs that {name} wrote?", format_number(max(numbers), unit), rounds),
            ("What was the lowest {label} value in the {kind} logs that {name} wrote?", format_number(min(numbers), unit), rounds),
            ("In how many of the {kind} logs that {name} wrote was the {label} value above {threshold}?", str(above), rounds),
            ("Did {name}'s {label} value increase or decrease from the first to the last written {kind} log?", _trend(numbers), ends),
            ("On which date did {name} write down the highest {label} value in the {kind} logs?", best, rounds),
        ]
        asked += [Asked("aggregation", source.ask([text], **values), answer, needed) for text, answer, needed in asks]
    return asked


def pixel_aggregations(source: Source) -> list[Asked]:
    """The same over the written logs and the dashboard together; no answer of these occurs in the text."""
    asked = []
    for share, content, label, readings in logged_fields(source):
        unit = _unit(source, label)
        shown = Decimal(content.value(label).split()[0])
        numbers = [*(number for _, number in readings), shown]
        rounds = (*(placed.round_id for placed, _ in readings), content.placed.round_id)
        both = f"the written {share.kind.name} logs and the {share.kind.name} dashboard"
        difference = format_number(abs(shown - readings[-1][1]), unit)
        last = (readings[-1][0].round_id, content.placed.round_id)
        asks = [
            ("Over {both} of {name} together, what is the average {label} value?", _mean(numbers, unit), rounds),
            ("Over {both} of {name} together, what is the highest {label} value?", format_number(max(numbers), unit), rounds),
            ("Over {both} of {name} together, what is the lowest {label} value?", format_number(min(numbers), unit), rounds),
            ("By how much does the {label} value on {name}'s {kind} dashboard differ from the last written log?", difference, last),
        ]
        for text, answer, needed in asks:
            if not occurs(answer.split()[0], source.text):
                asked.append(Asked("aggregation", source.ask([text], both=both, label=label, kind=share.kind.name), answer, needed))
    return asked


def _unit(source: Source, label: str) -> str:
    for content in source.contents:
        for name, value in content.rows:
            if name == label:
                return value.partition(" ")[2]
    return ""


def _mean(numbers: list[Decimal], unit: str) -> str:
    return format_number(sum(numbers) / len(numbers), unit)


def _trend(numbers: list[Decimal]) -> str:
    return "Increase" if numbers[-1] > numbers[0] else "Decrease"


def _threshold(source: Source, numbers: list[Decimal]) -> Decimal:
    """The middle between two neighbouring readings, so that the count is neither none nor all; rounded where that keeps it so."""
    ordered = sorted(set(numbers))
    place = int(source.draws.rng.integers(1, len(ordered)))
    low, high = ordered[place - 1], ordered[place]
    middle = (low + high) / 2
    for decimals in (0, 1):
        if low < round(middle, decimals) < high:
            return round(middle, decimals)
    return middle
