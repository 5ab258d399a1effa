"""The pictures of the sample: what stands in them, and their pixels, drawn with Pillow's own font."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFont

from data.sample.draws import Draws, number_rule, occurs
from data.sample.vocabulary import DashboardKind
from data.sample.world import Placed, Share
from data.values import format_number

TOTAL = "total"
_N_ROWS = 6
_INK = (28, 30, 38)
_PALETTES = (
    ((250, 250, 246), (38, 70, 110)),
    ((246, 250, 247), (30, 96, 78)),
    ((251, 247, 242), (128, 62, 36)),
    ((247, 246, 251), (84, 56, 124)),
    ((250, 249, 240), (104, 88, 24)),
)
_FILLS = ((122, 176, 214), (236, 174, 98), (150, 196, 138), (222, 138, 142), (178, 160, 212), (214, 200, 120), (140, 200, 196))


@dataclass(frozen=True)
class Content:
    """What a shared picture shows: a title and (label, value) rows; ``about`` are its names in questions."""

    placed: Placed
    share: Share
    image_id: str
    title: str
    rows: tuple[tuple[str, str], ...]
    about: tuple[str, ...]
    caption: str

    def value(self, label: str) -> str:
        """The value beside a label."""
        return dict(self.rows)[label]


def make_content(placed: Placed, share: Share, *, image_id: str, draws: Draws, text: str, name: str) -> Content:
    """Draw what a picture shows; no value and no label of a picture other than a dashboard occurs in ``text``."""
    kind = share.kind
    if isinstance(kind, DashboardKind):
        rows = tuple(draws.reading(field, kind="pixels", absent_from=text) for field in share.fields)
        about = (f"{name}'s {kind.name} dashboard", f"the {kind.name} dashboard that {name} shared")
        caption = draws.choice([f"A {kind.name} dashboard with a title and some rows.", f"The screen of a {kind.name} dashboard."])
        return Content(placed, share, image_id, kind.title, rows, about, caption)
    labels = [label for label in kind.labels if not occurs(label, text)]
    chosen = set(draws.shuffled(labels)[:_N_ROWS])
    numbers = number_rule(kind.value)
    rows = tuple((label, draws.number(numbers, kind="pixels", absent_from=text)) for label in labels if label in chosen)
    if kind.total:
        total = sum(Decimal(value.split()[0]) for _, value in rows)
        rows += ((TOTAL, format_number(total, "EUR")),)
    title = share.setting.removeprefix("the ")
    names = tuple(phrase.format(name=name, **{kind.setting_name: share.setting}) for phrase in kind.about)
    return Content(placed, share, image_id, _capital(title), rows, names, draws.choice(kind.caption))


def draw_picture(content: Content, *, rng: np.random.Generator) -> Image.Image:
    """Draw a picture, at most 480 by 360 pixels, RGB."""
    background, accent = _PALETTES[int(rng.integers(len(_PALETTES)))]
    kind = content.share.kind
    if isinstance(kind, DashboardKind):
        return _draw_dashboard(content, background, accent, split=bool(rng.random() < 0.5))
    painters = {"receipt": _draw_receipt, "chart": _draw_chart, "plan": _draw_plan, "shelf": _draw_shelf}
    return painters[kind.name](content, background, accent, rng)


def vary_picture(picture: Image.Image, *, rng: np.random.Generator) -> Image.Image:
    """A crop of a picture, lit and scaled differently: another photo of the same thing."""
    width, height = picture.size
    share_x, share_y = rng.uniform(0.82, 1.0), rng.uniform(0.55, 0.8)
    left, top = rng.uniform(0, width * (1 - share_x)), rng.uniform(0, height * (1 - share_y))
    crop = picture.crop((round(left), round(top), round(left + width * share_x), round(top + height * share_y)))
    lit = ImageEnhance.Brightness(crop).enhance(float(rng.uniform(0.7, 1.0)))
    scale = rng.uniform(0.85, 1.1)
    return lit.resize((round(lit.width * scale), round(lit.height * scale)), Image.Resampling.LANCZOS)


Colour = tuple[int, int, int]


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _canvas(width: int, height: int, background: Colour) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    picture = Image.new("RGB", (width, height), background)
    return picture, ImageDraw.Draw(picture)


def _capital(label: str) -> str:
    return label[0].upper() + label[1:]


def _draw_dashboard(content: Content, background: Colour, accent: Colour, *, split: bool) -> Image.Image:
    picture, draw = _canvas(400, 64 + 38 * len(content.rows), background)
    draw.rectangle((0, 0, 400, 50), fill=accent)
    draw.text((18, 12), content.title, font=_font(24), fill=(255, 255, 255))
    for place, (label, value) in enumerate(content.rows):
        y = 62 + 38 * place
        if place % 2:
            draw.rectangle((8, y - 4, 392, y + 28), fill=tuple(max(0, c - 14) for c in background))
        if split:
            draw.text((20, y), f"{_capital(label)}:", font=_font(19), fill=_INK)
            draw.text((380, y), value, font=_font(19), fill=accent, anchor="ra")
        else:
            draw.text((20, y), f"{_capital(label)}: {value}", font=_font(19), fill=_INK)
    return picture


def _draw_receipt(content: Content, background: Colour, accent: Colour, rng: np.random.Generator) -> Image.Image:
    picture, draw = _canvas(300, 74 + 34 * len(content.rows), background)
    draw.text((150, 12), content.title, font=_font(24), fill=accent, anchor="ma")
    for place, (label, value) in enumerate(content.rows):
        y = 58 + 34 * place
        if label == TOTAL:
            draw.line((16, y - 3, 284, y - 3), fill=_INK, width=2)
        draw.text((18, y), _capital(label), font=_font(18), fill=_INK)
        draw.text((282, y), value, font=_font(18), fill=_INK, anchor="ra")
    return picture


def _draw_chart(content: Content, background: Colour, accent: Colour, rng: np.random.Generator) -> Image.Image:
    picture, draw = _canvas(460, 70 + 42 * len(content.rows), background)
    draw.text((18, 12), content.title, font=_font(24), fill=accent)
    largest = max(int(value) for _, value in content.rows)
    for place, (label, value) in enumerate(content.rows):
        y = 58 + 42 * place
        end = 150 + 220 * int(value) // largest
        draw.text((18, y + 4), label, font=_font(18), fill=_INK)
        draw.rectangle((150, y, end, y + 30), fill=_FILLS[place % len(_FILLS)])
        draw.text((end + 10, y + 4), value, font=_font(18), fill=_INK)
    draw.line((150, 52, 150, 62 + 42 * len(content.rows)), fill=_INK, width=2)
    return picture


def _draw_plan(content: Content, background: Colour, accent: Colour, rng: np.random.Generator) -> Image.Image:
    picture, draw = _canvas(480, 340, background)
    draw.text((18, 12), content.title, font=_font(24), fill=accent)
    draw.rectangle((14, 52, 236, 326), outline=accent, width=3)
    for place, (label, value) in enumerate(content.rows):
        column, line = place % 2, place // 2
        x, y = 24 + 106 * column, 64 + 88 * line
        inset = int(rng.integers(0, 14))
        draw.rectangle((x + inset, y + inset // 2, x + 92, y + 74), fill=_FILLS[place % len(_FILLS)], outline=_INK)
        draw.rectangle((254, 64 + 42 * place, 272, 82 + 42 * place), fill=_FILLS[place % len(_FILLS)], outline=_INK)
        draw.text((284, 62 + 42 * place), f"{_capital(label)}: {value}", font=_font(18), fill=_INK)
    return picture


def _draw_shelf(content: Content, background: Colour, accent: Colour, rng: np.random.Generator) -> Image.Image:
    picture, draw = _canvas(480, 350, background)
    draw.text((240, 10), content.title, font=_font(24), fill=accent, anchor="ma")
    for place, (label, value) in enumerate(content.rows):
        column, line = place % 2, place // 2
        x, y = 24 + 232 * column, 52 + 100 * line + 44 * column - 16 * column
        fill = _FILLS[(place + int(rng.integers(3))) % len(_FILLS)]
        if place % 3 == 0:
            draw.ellipse((x, y, x + 40, y + 40), fill=fill, outline=_INK)
        elif place % 3 == 1:
            draw.rectangle((x, y, x + 40, y + 40), fill=fill, outline=_INK)
        else:
            draw.polygon([(x, y + 40), (x + 20, y), (x + 40, y + 40)], fill=fill, outline=_INK)
        draw.text((x + 52, y + 8), f"{label} {value}", font=_font(19), fill=_INK)
    return picture
