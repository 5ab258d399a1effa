"""One server, asked from ordinary code: an event loop in a thread, bounded concurrency, retries, a circuit breaker.

The SDK's own retries serve 408, 409, 429, 5xx, lost connections and time-outs before a reply's body, with exponential
backoff (0.5 s doubled up to 8 s, jittered) or the server's ``Retry-After`` (up to 120 s). What it does not retry, a body
that breaks off or cannot be read, is retried here with the same backoff.
"""

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cached_property
from typing import Any, TypeVar

from openai import AsyncOpenAI, Timeout

from models.errors import AccessRefused, BackendError, BackendUnavailable
from models.openai_compatible.failures import combine
from models.openai_compatible.settings import ServerSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[], Coroutine[Any, Any, T]]

_FIRST_DELAY_SECONDS = 0.5
_LAST_DELAY_SECONDS = 8.0


class UnusableBody(Exception):
    """A reply that came with HTTP 200 and cannot be used, so that it is worth asking again."""


class Connection:
    """A client of one server; safe to use from several threads, which share its concurrency."""

    def __init__(self, server: ServerSettings) -> None:
        """Raises `models.errors.AccessRefused` where the settings name a key that the environment lacks."""
        self.server = server
        self.secret = server.api_key()
        self.client = AsyncOpenAI(  # used inside the event loop only
            api_key=self.secret or "none",  # never the SDK's default, which would send OPENAI_API_KEY to any server
            base_url=server.base_url,
            timeout=Timeout(server.timeout_seconds, connect=server.connect_timeout_seconds),
            max_retries=server.max_retries,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(self._loop,), name="openai-compatible", daemon=True)
        self._thread.start()
        # Does not wait for the thread: garbage may be collected in any thread, that one included.
        self._stop = weakref.finalize(self, _stop, self._loop, self.client)

    def __repr__(self) -> str:
        """Name server and model, nothing else."""
        return f"Connection({self.server.base_url!r}, model={self.server.model!r})"

    @cached_property
    def _slots(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.server.concurrency)

    def close(self) -> None:
        """Close what is open and stop the event loop; done by itself when the connection is let go."""
        self._stop()
        self._thread.join()

    def run(self, job: Job[T]) -> T:
        """Run one job to its end."""
        return self._start(job).result()

    def stream(self, jobs: Sequence[Job[T]]) -> Iterator[tuple[int, T]]:
        """Run jobs side by side and yield each result with its job's position as it arrives.

        The next job starts when the caller comes back for more: so no more than ``concurrency`` results are ever on the
        way or not yet stored, whenever the process is killed.

        Raises:
            BackendUnavailable: ``max_failures`` jobs failed one after the other, or the server lets nobody in. No further
                job was started; the results of those in flight were yielded before.
            BackendError: some jobs failed; every other result was yielded before.
        """
        failures: list[BackendError] = []
        in_a_row = stopped_after = 0
        todo = iter(enumerate(jobs))
        in_flight: dict[Future[T], int] = {}
        try:
            while True:
                while not stopped_after and len(in_flight) < self.server.concurrency and (entry := next(todo, None)):
                    in_flight[self._start(entry[1])] = entry[0]
                if not in_flight:
                    break
                future = next(iter(wait(in_flight, return_when=FIRST_COMPLETED).done))
                position = in_flight[future]
                try:
                    result = future.result()
                except BackendError as error:
                    failures.append(error)
                    in_a_row += 1
                    if not stopped_after and (in_a_row >= self.server.max_failures or isinstance(error, AccessRefused)):
                        stopped_after = in_a_row
                else:
                    in_a_row = 0
                    yield position, result
                del in_flight[future]
        finally:
            for future in in_flight:
                future.cancel()
        if failures:
            raise self._verdict(failures, len(jobs), stopped_after=stopped_after)

    def _verdict(self, failures: list[BackendError], n_jobs: int, *, stopped_after: int) -> BackendError:
        refusals = [error for error in failures if isinstance(error, AccessRefused)]
        if refusals:
            return refusals[0]
        if stopped_after > 1:
            return BackendUnavailable(
                f"stopped after {stopped_after} calls failed one after the other; every reply that came is in the call cache, so the same "
                f"command goes on from there once this is repaired. The last failure: {failures[-1]}"
            )
        return combine(failures, n_jobs)

    def _start(self, job: Job[T]) -> Future[T]:
        async def limited() -> T:
            async with self._slots:
                return await job()

        return asyncio.run_coroutine_threadsafe(limited(), self._loop)

    async def retry_body(self, ask: Job[T], *, asked: str) -> T:
        """Ask until the body can be used, at most ``max_retries`` times more.

        Raises:
            BackendUnavailable: no body could be used.
        """
        delay = _FIRST_DELAY_SECONDS
        for n_left in range(self.server.max_retries, -1, -1):
            try:
                return await ask()
            except UnusableBody as problem:
                if not n_left:
                    raise BackendUnavailable(
                        f"{asked}: {self.server.base_url} (model {self.server.model}) sent {problem}, "
                        f"{self.server.max_retries + 1} times; look at the server's log"
                    ) from problem
                logger.info("%s: the server sent %s; asking again in %.1f s", asked, problem, delay)
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LAST_DELAY_SECONDS)
        raise AssertionError("the last round returns or raises")


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, client: AsyncOpenAI) -> None:
    async def end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await client.close()
        loop.stop()

    loop.call_soon_threadsafe(lambda: loop.create_task(end()))
