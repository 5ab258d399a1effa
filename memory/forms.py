"""The evidence forms: a registry, so that a sixth form is one function here and one line in the memory config.

The order of ``memory.forms`` in the config is both the order of the action's bits and the order in which a
memory's forms are rendered. Every form carries the ids of the images it speaks of, because answers may be ids; the
session date stands in the memory's heading.
"""

from collections.abc import Callable, Sequence

from memory.bank import MemoryEpisode
from memory.errors import UnknownForm
from models.tasks.answer import ShownPicture, ShownText

Shown = tuple[ShownText | ShownPicture, ...]
EvidenceForm = Callable[[MemoryEpisode], Shown]

FORMS: dict[str, EvidenceForm] = {}


def evidence_form(render: EvidenceForm) -> EvidenceForm:
    """Register a function as the form of its name. It returns () where the episode does not have the form."""
    FORMS[render.__name__] = render
    return render


@evidence_form
def raw(episode: MemoryEpisode) -> Shown:
    """The interaction text r, both sides of every round, with image ids in place."""
    return (ShownText("raw", episode.raw),)


@evidence_form
def summary(episode: MemoryEpisode) -> Shown:
    """The compact summary s, with the ids of the episode's images."""
    ids = ", ".join(image.id for image in episode.images)
    return (ShownText("summary", f"{episode.summary} (images: {ids})" if ids else episode.summary),)


@evidence_form
def caption(episode: MemoryEpisode) -> Shown:
    """The captions c, each after its image's id."""
    return tuple(ShownText(f"caption {image.id}", image.caption) for image in episode.images if image.caption)


@evidence_form
def view(episode: MemoryEpisode) -> Shown:
    """The grounded visual views g: crops around what the conversation is about."""
    return tuple(ShownPicture("view", image.id, image.view) for image in episode.images if image.view)


@evidence_form
def image(episode: MemoryEpisode) -> Shown:
    """The whole images o."""
    return tuple(ShownPicture("image", image.id, image.picture) for image in episode.images if image.picture)


def forms_named(names: Sequence[str]) -> dict[str, EvidenceForm]:
    """The forms of the config, in its order.

    Raises:
        UnknownForm: a name is not registered or occurs twice; names what exists.
    """
    unknown = sorted({name for name in names if name not in FORMS or list(names).count(name) > 1})
    if unknown or not names:
        raise UnknownForm(f"memory.forms: {unknown or 'empty'} must be registered forms, each once; there are {sorted(FORMS)}")
    return {name: FORMS[name] for name in names}
