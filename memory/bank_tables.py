"""The tables of a bank's DuckDB file: what they hold, how they are written, and how they are read back and checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from data.history import History
from data.images import load_picture
from memory.bank import EpisodeImage, MemoryEpisode
from memory.duckdb_file import Row, create, open_read_only, write_table
from memory.errors import damaged

CROPS = "crops"

_TABLES: dict[str, dict[str, str]] = {
    "episodes": {"episode": "INTEGER", "session_id": "VARCHAR", "date": "VARCHAR", "raw": "VARCHAR", "summary": "VARCHAR"},
    "rounds": {"episode": "INTEGER", "position": "INTEGER", "round_id": "VARCHAR"},
    "images": {"episode": "INTEGER", "position": "INTEGER", "image_id": "VARCHAR", "caption": "VARCHAR", "view": "VARCHAR"},
    "anchors": {"anchor": "VARCHAR", "surface": "VARCHAR", "idf": "DOUBLE"},
    "episode_anchors": {"episode": "INTEGER", "kind": "VARCHAR", "anchor": "VARCHAR"},
    "edges": {"i": "INTEGER", "j": "INTEGER", "weight": "DOUBLE"},
    "counts": {"name": "VARCHAR", "value": "INTEGER"},
}


@dataclass(frozen=True)
class BankContent:
    """What the database holds of a bank: all but the vectors.

    ``surfaces`` and ``idf`` are by canonical anchor, in sorted order; views lie in the folder ``crops``.
    """

    episodes: tuple[MemoryEpisode, ...]
    surfaces: Mapping[str, str]
    idf: Mapping[str, float]
    edges: Mapping[tuple[int, int], float]
    counts: Mapping[str, int]


def write_content(path: Path, content: BankContent) -> None:
    """Write a new database file."""
    with create(path, n_rows=len(content.episodes)) as database:
        for table, rows in _rows(content).items():
            write_table(database, table, _TABLES[table], rows)


def read_content(path: Path, history: History) -> BankContent:
    """Read the database file beside its ``crops``, read-only and locked down; ``history`` gives the images' paths.

    Raises:
        memory.errors.BankError: the file is not a bank's, or refers to what is not there.
    """
    try:
        with open_read_only(path) as database:
            tables = {
                table: database.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(list(columns)[:3])}").fetchall()
                for table, columns in _TABLES.items()
            }
    except duckdb.Error as error:
        raise damaged(path, str(error)) from error
    problems = _problems(tables, path.parent, {image.id for image in history.images})
    if problems:
        raise damaged(path, "; ".join(problems))
    return BankContent(
        episodes=_episodes(tables, path.parent, {image.id: image.path for image in history.images}),
        surfaces={anchor: surface for anchor, surface, _ in tables["anchors"]},
        idf={anchor: idf for anchor, _, idf in tables["anchors"]},
        edges={(i, j): weight for i, j, weight in tables["edges"]},
        counts=dict(tables["counts"]),
    )


def _rows(content: BankContent) -> dict[str, list[Row]]:
    episodes = content.episodes
    return {
        "episodes": [(e.index, e.session_id, e.date, e.raw, e.summary) for e in episodes],
        "rounds": [(e.index, position, round_id) for e in episodes for position, round_id in enumerate(e.round_ids)],
        "images": [
            (e.index, position, image.id, image.caption, image.view.path.name if image.view else None)
            for e in episodes
            for position, image in enumerate(e.images)
        ],
        "anchors": [(anchor, surface, content.idf[anchor]) for anchor, surface in sorted(content.surfaces.items())],
        "episode_anchors": [
            (e.index, kind, anchor)
            for e in episodes
            for kind, anchors in (("textual", e.textual_anchors), ("visual", e.visual_anchors))
            for anchor in sorted(anchors)
        ],
        "edges": [(i, j, weight) for (i, j), weight in content.edges.items()],
        "counts": sorted(content.counts.items()),
    }


def _problems(tables: Mapping[str, Sequence[Row]], folder: Path, image_ids: set[str]) -> list[str]:
    """What in the tables refers to something that is not there, or out of the bank."""
    n = len(tables["episodes"])
    anchors = [row[0] for row in tables["anchors"]]
    known = set(anchors)
    crops = (folder / CROPS).resolve()
    views = [row[4] for row in tables["images"] if row[4] is not None]
    bad_views = [view for view in views if (folder / CROPS / view).resolve().parent != crops or not (crops / view).is_file()]
    checks = {
        "episodes are not numbered 0 to n - 1": [row[0] for row in tables["episodes"]] != list(range(n)),
        "a row belongs to no episode": any(not 0 <= row[0] < n for name in ("rounds", "images", "episode_anchors") for row in tables[name]),
        "an edge is not (i, j, weight > 0) with i < j": any(not (0 <= i < j < n and weight > 0) for i, j, weight in tables["edges"]),
        "the anchors are not unique": len(known) != len(anchors),
        "an episode has an unknown anchor": any(
            kind not in ("textual", "visual") or anchor not in known for _, kind, anchor in tables["episode_anchors"]
        ),
        "an image is not in the history": any(row[2] not in image_ids for row in tables["images"]),
        f"view files outside {CROPS}/ or missing: {bad_views}": bool(bad_views),
    }
    return [problem for problem, found in checks.items() if found]


def _episodes(tables: Mapping[str, Sequence[Row]], folder: Path, image_paths: Mapping[str, Path | None]) -> tuple[MemoryEpisode, ...]:
    rounds = _by_episode(tables["rounds"])
    images = _by_episode(tables["images"])
    anchors = _by_episode(tables["episode_anchors"])
    return tuple(
        MemoryEpisode(
            index=index,
            session_id=session_id,
            date=date,
            round_ids=tuple(row[2] for row in rounds.get(index, ())),
            raw=raw,
            summary=summary,
            images=tuple(_image(row, folder, image_paths[row[2]]) for row in images.get(index, ())),
            textual_anchors=frozenset(row[2] for row in anchors.get(index, ()) if row[1] == "textual"),
            visual_anchors=frozenset(row[2] for row in anchors.get(index, ()) if row[1] == "visual"),
        )
        for index, session_id, date, raw, summary in tables["episodes"]
    )


def _image(row: Row, folder: Path, path: Path | None) -> EpisodeImage:
    _, _, image_id, caption, view = row
    return EpisodeImage(
        id=image_id,
        caption=caption,
        picture=None if path is None else load_picture(path),
        view=None if view is None else load_picture(folder / CROPS / view),
    )


def _by_episode(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found
