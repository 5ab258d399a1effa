"""What a cache is named by, and caches that cannot be used. Look-up and storing are in ``test_cache_processes``."""

import os
import sqlite3
from pathlib import Path

import pytest

from models.cache.calls import CallCache, Mode, cache_url
from models.errors import CacheError
from tests.models.calls import call

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("where", "url"),
    [
        ("a folder/c.sqlite", "sqlite:///a folder/c.sqlite"),
        (Path("/c?d#e.sqlite"), "sqlite:////c%3Fd%23e.sqlite"),
        ("sqlite:////abs/c.sqlite", "sqlite:////abs/c.sqlite"),
        ("postgresql://me@db:5433/calls", "postgresql+psycopg://me@db:5433/calls"),
        ("postgresql+psycopg://me@db/calls?sslmode=require", "postgresql+psycopg://me@db/calls?sslmode=require"),
    ],
)
def test_a_path_or_a_url_names_a_cache(where: str | Path, url: str) -> None:
    assert str(cache_url(where)) == url


@pytest.mark.parametrize("where", ["file:c.sqlite?mode=memory", ":memory:", "a?mode=ro#b%20/c.sqlite"])
def test_a_path_that_sqlite_could_misread_is_a_file_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.chdir(tmp_path)
    cache = CallCache(where, mode="read_write")
    cache.put([call("a")], replace=False)
    cache.close()
    assert (tmp_path / where).stat().st_size > 0
    assert len(CallCache(where, mode="read_only").get([call("a").key])) == 1


@pytest.mark.parametrize("where", [f"postgresql://me:{SECRET}@db/calls", f"postgresql://db/calls?user=me&password={SECRET}"])
def test_a_url_with_a_password_is_refused_and_not_repeated(where: str) -> None:
    with pytest.raises(CacheError, match="holds a password; leave it out and set PGPASSWORD") as error:
        CallCache(where, mode="read_write")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("where", ["mysql://db/calls", "sqlite://", "sqlite:///c.sqlite?mode=ro", "postgresql://db:port/x", "http://", " "])
def test_other_urls_are_refused(where: str) -> None:
    with pytest.raises(CacheError, match="postgresql://USER@HOST:PORT/NAME"):
        cache_url(where)


@pytest.mark.parametrize("mode", ["read_write", "read_only"])
def test_a_file_that_is_no_database_is_one_message(tmp_path: Path, mode: Mode) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"no database, only text " * 100)
    with pytest.raises(CacheError, match=r"c\.sqlite cannot be used \(file is not a database\); the file is damaged or no cache: move it"):
        CallCache(path, mode=mode)
    assert path.read_bytes().startswith(b"no database")


def test_a_damaged_file_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = CallCache(path, mode="read_write")
    calls = [call(f"call {number}") for number in range(500)]
    cache.put(calls, replace=False)
    cache.close()  # the last connection writes the log into the file
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)  # the first two pages still say what the file is
    path.write_bytes(content)
    with pytest.raises(CacheError, match=r"\(database disk image is malformed\).*sqlite3 .*c\.sqlite \.recover"):
        CallCache(path, mode="read_write").get([one.key for one in calls])


def test_a_folder_that_cannot_be_made_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="check that the file's folder exists and can be written"):
        CallCache(tmp_path / "file" / "c.sqlite", mode="read_write")


def test_read_only_makes_no_cache(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"c\.sqlite does not exist; name one that does"):
        CallCache(tmp_path / "c.sqlite", mode="read_only")
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c?#%20.sqlite"
    cache = CallCache(path, mode="read_write")
    cache.put([call("a")], replace=False)
    cache.close()
    before = {file.name for file in tmp_path.iterdir()}
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    assert len(CallCache(path, mode="read_only").get([call("a").key])) == 1
    assert {file.name for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE TABLE calls (key TEXT PRIMARY KEY, answer TEXT)", "made by another version .*answer, created"),
        ("CREATE TABLE other (x)", "holds no call cache"),
    ],
)
def test_another_database_is_refused(tmp_path: Path, statement: str, problem: str) -> None:
    with sqlite3.connect(tmp_path / "c.sqlite") as connection:
        connection.execute(statement)
    with pytest.raises(CacheError, match=problem):
        CallCache(tmp_path / "c.sqlite", mode="read_only")
