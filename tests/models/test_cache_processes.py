"""Several processes on one call cache, killed ones included."""

import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from models.cache.calls import CallCache
from models.cache.contents import Filter, batches
from models.errors import CacheError
from tests.models.calls import MODEL, call, request
from tests.models.postgres import postgres_server

N_PROCESSES = 8
N_OWN = 2_475
N_SHARED = 200  # 8 × 2,475 + 200 = 20,000 answers
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A path, or the URL of an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "calls.sqlite")
    url: str = request.getfixturevalue("postgres")
    name = "t" + re.sub(r"\W", "_", tmp_path.name.lower())
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url.rsplit("/", 1)[0] + f"/{name}"


def writer(where: str, name: str, n_own: int, n_shared: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.models.calls", where, name, str(n_own), str(n_shared)]
    return subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_eight_processes_lose_and_double_nothing(where: str) -> None:
    processes = [writer(where, "w" * (number + 1), N_OWN, N_SHARED) for number in range(N_PROCESSES)]
    outcomes = [(*process.communicate(), process.returncode) for process in processes]
    assert [(errors, code) for _, errors, code in outcomes] == [("", 0)] * N_PROCESSES
    cache = CallCache(where, mode="read_only")
    stored = [one for some in batches(cache, only=Filter()) for one in some]
    names = {f"{'w' * (number + 1)}/{own}" for number in range(N_PROCESSES) for own in range(N_OWN)}
    names |= {f"shared/{number}" for number in range(N_SHARED)}
    assert len(stored) == len(names) == 20_000
    assert {one.reply for one in stored} == names
    assert {one.key for one in stored} == {request(name).key(MODEL) for name in names}


def test_what_a_killed_process_committed_is_kept(where: str) -> None:
    process = writer(where, "w", 100_000, 0)
    assert process.stdout is not None
    committed = [process.stdout.readline().strip() for _ in range(200)]
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    committed += [line.strip() for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    assert process.returncode == -signal.SIGKILL
    cache = CallCache(where, mode="read_write")
    replies = cache.get([request(name).key(MODEL) for name in committed])
    assert sorted(reply.text for reply in replies.values()) == sorted(committed)
    assert cache.put([call("after")], replace=False) == 1


def test_every_kind_of_call_comes_back_as_it_was_stored(where: str) -> None:
    cache = CallCache(where, mode="read_write")
    calls = [call("a"), call("é 漢字 😀 %s :x"), call("b", model_id="m2")]
    assert cache.put([*calls, calls[0]], replace=False) == 3
    assert cache.put([call("a", reply="other")], replace=False) == 0
    assert [one for some in batches(cache, only=Filter()) for one in some] == sorted(calls, key=lambda one: one.key)
    assert cache.put([call("a", reply="other")], replace=True) == 1
    assert cache.get([calls[0].key, calls[0].key, "unknown"])[calls[0].key].text == "other"


def test_a_read_only_cache_writes_nothing(where: str) -> None:
    CallCache(where, mode="read_write").put([call("a")], replace=False)
    cache = CallCache(where, mode="read_only")
    assert len(cache.get([call("a").key])) == 1
    with pytest.raises(CacheError, match=r"read-?only"):
        cache.put([call("b")], replace=False)


def test_processes_that_open_one_new_file_at_once_do_not_collide(tmp_path: Path) -> None:
    program = """
import sys, time
from pathlib import Path
from models.cache.calls import CallCache
from models.store import ContentStore
folder, start = Path(sys.argv[1]), float(sys.argv[2])
for number in range(100):
    time.sleep(max(0, start + number / 25 - time.time()))
    CallCache(folder / f"{number}.sqlite", mode="read_write")
    ContentStore(folder / f"{number}.store")
"""
    command = [sys.executable, "-c", program, str(tmp_path), str(time.time() + 2)]
    processes = [subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True) for _ in range(N_PROCESSES)]
    assert [process.communicate()[1] for process in processes] == [""] * N_PROCESSES
    for name in ("0.sqlite", "0.store"):
        with sqlite3.connect(tmp_path / name) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_server_that_dropped_its_connections_is_asked_again(postgres: str) -> None:
    cache, other = (CallCache(postgres, mode="read_write") for _ in range(2))
    cache.put([call("a")], replace=False)
    with other.engine.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"))
    assert len(cache.get([call("a").key])) == 1


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(CacheError, match=r"postgresql\+psycopg://tester@127.0.0.1:1/x cannot be used .*; check that the server runs"):
        CallCache("postgresql://tester@127.0.0.1:1/x", mode="read_write")
