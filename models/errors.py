"""Errors of the models package."""


class BackendError(RuntimeError):
    """A model call that failed; the message says what to do. It is never turned into an empty answer."""


class ReplyError(BackendError):
    """A reply that is not what its task asks for (not JSON, wrong schema); quotes the reply."""


class WeightsError(RuntimeError):
    """Model weights that are missing or whose checksum is wrong."""


class CacheError(BackendError):
    """A call cache that cannot be opened, read or written; the message says what to do."""


class CacheMissError(CacheError):
    """A request that a read-only call cache does not hold; the message names it."""


class LedgerError(BackendError):
    """A ledger that cannot be written or read; the message says what to do."""


class BackendUnavailable(BackendError):
    """The server behind a backend is gone, overloaded or keeps failing: the run stops, and goes on from the call cache later."""


class AccessRefused(BackendUnavailable):
    """The server refuses the key, the model or the account, so that no other call would succeed either."""


class RequestRefused(BackendError):
    """The server answers, but refuses one request; the message names the request and quotes the server."""


class ContextLengthError(RequestRefused):
    """A request that is longer than the model reads; the message names it and says how long it is."""


class DependencyMissing(RuntimeError):
    """A package that a chosen model needs and that is not installed; the message holds the pip command."""
