"""The one door to every model: the call cache and the ledger in front of a backend.

The key is a hash of the rendered request (`Request.key`), so a rebuilt bank, a second λ, a second seed and an
evaluation never pay twice for the same call, and an interrupted build resumes because its earlier calls are hits.
"""

import re
import textwrap
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from models.cache.calls import Call, CallCache
from models.errors import BackendError, CacheMissError, ReplyError
from models.ledger import Ledger
from models.reply_schema import json_problem
from models.requests import Backend, Reply, Request, TextPart

_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")
_N_NAMED = 5


class Door:
    """Answers requests from the cache, and asks the backend for the rest. Safe to share between threads."""

    def __init__(self, backend: Backend, *, cache: CallCache, ledger: Ledger | None) -> None:
        self.backend = backend
        self._cache = cache
        self._ledger = ledger
        self._lock = threading.Lock()
        self._in_flight: dict[str, Future[Reply]] = {}
        self._n_landed = 0
        self._refreshed: set[str] = set()

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer a batch, in order; equal requests in a batch, and in batches of other threads, share one call.

        Every reply is stored and committed when it arrives. NUL and lone surrogates, which databases do not hold, are
        U+FFFD in every reply.

        Raises:
            models.errors.BackendError: the backend could not answer.
            models.errors.ReplyError: replies break their request's schema; they are not stored.
            models.errors.CacheMissError: the cache is read-only and lacks a request.
            models.errors.CacheError: the cache cannot be read or written.

            Whatever is raised, the replies that came before are kept.
        """
        model_id = self.backend.model_id
        keys = [request.key(model_id) for request in requests]
        n_landed = self._n_landed
        replies = self._look_up(keys)
        missing = {key: request for key, request in zip(keys, requests, strict=True) if key not in replies}
        if missing:
            if self._cache.mode == "read_only":
                raise self._misses(missing)
            replies |= self._ask(missing, n_landed)
        answers = []
        for key in keys:
            reply = replies[key]
            answers.append(reply)
            if not reply.hit:
                replies[key] = replace(reply, hit=True)  # an equal request later in the batch is not paid for
        if self._ledger is not None:
            self._ledger.add(model_id, ((request, reply) for request, reply in zip(requests, answers, strict=True) if reply.hit))
        return answers

    def _look_up(self, keys: Collection[str]) -> dict[str, Reply]:
        if self._cache.mode == "refresh":
            keys = [key for key in keys if key in self._refreshed]
        return self._cache.get(keys)

    def _ask(self, missing: Mapping[str, Request], n_landed: int) -> dict[str, Reply]:
        """Ask for what no other thread is asking for, and wait for the rest.

        ``n_landed`` was read before the look-up: if it has changed, another thread may have stored what was missing.
        """
        mine: dict[str, Request] = {}
        others: dict[str, Future[Reply]] = {}
        with self._lock:
            is_stale = n_landed != self._n_landed
            for key, request in missing.items():
                if key in self._in_flight:
                    others[key] = self._in_flight[key]
                else:
                    self._in_flight[key] = Future()
                    mine[key] = request
        try:
            replies = self._look_up(mine) if is_stale else {}
            for key, reply in replies.items():
                self._in_flight[key].set_result(reply)
            replies |= self._call({key: request for key, request in mine.items() if key not in replies})
        except BaseException as error:
            told = (
                error if isinstance(error, BackendError) else BackendError(f"the call that this request shared was broken off: {error!r}")
            )
            for key in mine:
                if not self._in_flight[key].done():
                    self._in_flight[key].set_exception(told)
            raise
        finally:
            with self._lock:
                self._n_landed += 1
                for key in mine:
                    del self._in_flight[key]
        return replies | {key: replace(future.result(), hit=True) for key, future in others.items()}

    def _call(self, asked: Mapping[str, Request]) -> dict[str, Reply]:
        waiting = dict(enumerate(asked.items()))
        replies: dict[str, Reply] = {}
        problems = []
        for position, reply in self.backend.stream([*asked.values()]) if asked else ():
            if position not in waiting:
                raise BackendError(
                    f"{self.backend.model_id} answered request {position} of {len(asked)} unasked or twice: repair the backend"
                )
            key, request = waiting.pop(position)
            reply = replace(reply, key=key, text=_NOT_STORABLE.sub("\ufffd", reply.text), hit=False)
            problem = None if request.schema is None or request.lenient else json_problem(reply.text, request.schema)
            if problem is None:
                replies[key] = self._store(request, reply)
                self._in_flight[key].set_result(replies[key])
            else:  # raised when the stream has ended, because what else arrives is paid for and must be kept
                problems.append(f"{_name(key, request)}: the reply {problem}; it is {reply.text[:300]!r}")
            if self._ledger is not None:
                self._ledger.add(self.backend.model_id, [(request, reply)])
        if problems:
            listed = "\n".join(f"  - {problem}" for problem in problems[:_N_NAMED])
            raise ReplyError(
                f"{len(problems)} of {len(asked)} replies of {self.backend.model_id} are not what was asked for; the others are kept. "
                f"Run again, or use another model:\n{listed}"
            )
        if waiting:
            raise BackendError(
                f"{self.backend.model_id} left {len(waiting)} of {len(asked)} requests unanswered; run again, the rest is kept"
            )
        return replies

    def _store(self, request: Request, reply: Reply) -> Reply:
        """Commit a reply; returns what the cache holds, which is another process's reply if that was first."""
        model_id, usage = self.backend.model_id, reply.usage
        call = Call(
            key=reply.key,
            model_id=model_id,
            phase=request.phase,
            task=request.task,
            reply=reply.text,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            image_tokens=usage.image_tokens,
            seconds=reply.seconds,
            first_token_seconds=reply.first_token_seconds,
            created=time.time(),
            request=request.rendered(model_id),
        )
        refresh = self._cache.mode == "refresh"
        n_written = self._cache.put([call], replace=refresh)
        if refresh:
            self._refreshed.add(reply.key)
        return reply if n_written else replace(self._cache.get([reply.key]).get(reply.key, reply), hit=False)

    def _misses(self, missing: Mapping[str, Request]) -> CacheMissError:
        names = [f"  - {_name(key, request)}" for key, request in missing.items()]
        more = [f"  - and {len(names) - _N_NAMED} more"] if len(names) > _N_NAMED else []
        return CacheMissError(
            f"the call cache {self._cache.name} is read-only and does not hold {len(names)} of the requests to {self.backend.model_id}; "
            "use the mode read_write to ask them:\n" + "\n".join([*names[:_N_NAMED], *more])
        )


def _name(key: str, request: Request) -> str:
    """A request as messages name it: task, first and last words, key."""
    parts = [part.text for message in request.messages if message.role != "system" for part in message.parts if isinstance(part, TextPart)]
    words = " ".join(" ".join(parts).split())
    if len(words) > 140:
        last = textwrap.shorten(words[-200:][::-1], 70, placeholder="")[::-1]
        words = f"{textwrap.shorten(words, 70, placeholder='')} … {last}"
    return f"{request.task} {words!r} (key {key})"
