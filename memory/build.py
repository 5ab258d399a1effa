"""Building the bank of one history: the whole order of construction on one page (HiVe-Mem, §3.1, §3.2, A.1)."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.history import History, ImageRef
from data.images import load_picture
from memory.asking import Generate, Progress, check_images
from memory.bank import EpisodeImage, MemoryBank, MemoryEpisode
from memory.bank_tables import CROPS, BankContent, read_content, write_content
from memory.errors import BankError
from memory.hive.affinity import affinity_graph, inverse_document_frequencies
from memory.hive.anchors import canonical_anchors
from memory.hive.asking import BuildReplies, ask_model
from memory.hive.episodes import InteractionEpisode, cut_episodes
from memory.hive.views import pixel_box, save_view
from memory.identity import BankIdentity, identify
from memory.persistence import build_once, check_folder, load_vectors, save_vectors
from memory.settings import BankSettings
from models.encoders.types import TextEncoder
from models.requests import TokenCounter

_DATABASE = "bank.duckdb"
_SUMMARY_VECTORS = "summary_vectors.npy"
_ANCHOR_VECTORS = "anchor_vectors.npy"
_TEXTS_PER_BATCH = 256


def build_bank(
    history: History,
    *,
    root: Path,
    generate: Generate,
    counter: TokenCounter,
    encoder: TextEncoder,
    settings: BankSettings,
    model_id: str,
    progress: Progress,
) -> MemoryBank:
    """Build the bank of a history, or open it if it was built from the same content before.

    Args:
        history: what to remember.
        root: the folder of all banks; the bank gets a folder of its own in it.
        generate: answers model requests, in order; asked for nothing when the bank exists.
        counter: MiniLM's WordPiece counter, whatever the answerer, so that episodes do not depend on it.
        encoder: embeds summaries and anchors.
        settings: how to build.
        model_id: names the model behind ``generate``.
        progress: told how far the building is.

    Raises:
        data.errors.ImageError: image files that cannot be used, all of them at once.
        models.errors.ReplyError: replies that are not what was asked for, all of them at once.
        models.errors.BackendError: a model call failed.
        memory.errors.BankError: the history is empty, or the bank that exists is damaged.
    """
    check_images(history)
    identity = identify("hive", history, settings=asdict(settings), encoder_id=encoder.id, model_id=model_id)

    def make(folder: Path) -> None:
        interactions = cut_episodes(history, limit_tokens=settings.episode_tokens, counter=counter)
        if not interactions:
            raise BankError(f"history {history.id!r} has no rounds to remember; remove it from the dataset")
        replies = ask_model(interactions, generate=generate, captions=settings.captions, progress=progress)
        (folder / CROPS).mkdir()
        content = _remember(interactions, replies, folder / CROPS, settings)
        texts = [episode.summary for episode in content.episodes] + list(content.surfaces.values())
        vectors = _embed(texts, encoder, progress)
        n = len(content.episodes)
        write_content(folder / _DATABASE, content)
        save_vectors(folder / _SUMMARY_VECTORS, vectors[:n])
        save_vectors(folder / _ANCHOR_VECTORS, vectors[n:])

    build_once(root, identity, make)
    return open_bank(root, history, identity)


def open_bank(root: Path, history: History, identity: BankIdentity) -> MemoryBank:
    """Open the bank of a history and load all of it.

    Args:
        root: the folder of all banks.
        history: gives the paths of the images; the bank stores ids only.
        identity: what the bank must have been built from.

    Raises:
        BankError: the bank is missing, damaged, or of something else; the message says what to do.
    """
    folder = check_folder(root, identity)
    content = read_content(folder / _DATABASE, history)
    idf = np.array(list(content.idf.values()), np.float64)
    idf.setflags(write=False)
    return MemoryBank(
        history_id=history.id,
        folder=folder,
        encoder_id=identity.encoder_id,
        episodes=content.episodes,
        summary_vectors=load_vectors(folder / _SUMMARY_VECTORS, len(content.episodes)),
        anchors=tuple(content.idf),
        anchor_vectors=load_vectors(folder / _ANCHOR_VECTORS, len(content.idf)),
        anchor_idf=idf,
        edges=content.edges,
        counts=content.counts,
        visual_visual=identity.settings["visual_visual"],
    )


def _remember(interactions: tuple[InteractionEpisode, ...], replies: BuildReplies, crops: Path, settings: BankSettings) -> BankContent:
    """Turn interaction episodes and replies into memory episodes (Eq. 1) and their affinity graph (Eq. 2, 3)."""
    counts = Counter(episodes=0, rounds=0, images=0, images_missing=0, captions_absent=0, views=0, views_absent=0, anchors=0, edges=0)
    surfaces: dict[str, str] = {}
    episodes = []
    for interaction in interactions:
        reply = replies.memorised[interaction.index]
        textual = canonical_anchors(reply.textual_anchors)
        visual = canonical_anchors(reply.visual_anchors) if settings.visual_anchors else {}
        for anchor, surface in [*textual.items(), *visual.items()]:
            surfaces.setdefault(anchor, surface)
        images = tuple(_image(image, replies, crops, settings, counts) for image in interaction.images)
        episode = MemoryEpisode(
            index=interaction.index,
            session_id=interaction.session_id,
            date=interaction.date,
            round_ids=tuple(round_.id for round_ in interaction.rounds),
            raw=interaction.text,
            summary=reply.summary,
            images=images,
            textual_anchors=frozenset(textual),
            visual_anchors=frozenset(visual),
        )
        episodes.append(episode)
        counts.update(episodes=1, rounds=len(interaction.rounds))
    sets = [episode.anchor_sets for episode in episodes]
    idf = inverse_document_frequencies(sets, idf=settings.idf)
    edges = affinity_graph(sets, weights=idf, k_edge=settings.k_edge, visual_visual=settings.visual_visual)
    counts.update(anchors=len(idf), edges=len(edges))
    return BankContent(tuple(episodes), {anchor: surfaces[anchor] for anchor in idf}, idf, edges, dict(counts))


def _image(image: ImageRef, replies: BuildReplies, crops: Path, settings: BankSettings, counts: Counter[str]) -> EpisodeImage:
    """One image with its caption and its grounded view, counting what it does not have."""
    counts.update(images=1)
    picture = None if image.path is None else load_picture(image.path)
    caption = replies.captions[image.id] if picture and settings.captions == "model" else image.caption
    view = None
    if picture is None:
        counts.update(images_missing=1)
    else:
        with picture.original() as original:
            pixels = pixel_box(replies.grounded[image.id].box, original.width, original.height)
            if pixels is not None:
                path = crops / f"{counts['views']:05}.png"
                save_view(original, pixels, path)
                view = load_picture(path)
        counts.update(views=int(view is not None), views_absent=int(view is None))
    counts.update(captions_absent=int(not caption))
    return EpisodeImage(image.id, caption, picture, view)


def _embed(texts: list[str], encoder: TextEncoder, progress: Progress) -> NDArray[np.float32]:
    parts = []
    for start in range(0, len(texts), _TEXTS_PER_BATCH):
        progress("embedding", start, len(texts))
        parts.append(encoder.encode(texts[start : start + _TEXTS_PER_BATCH]))
    progress("embedding", len(texts), len(texts))
    return np.concatenate(parts)
