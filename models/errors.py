"""Errors of the models package."""


class BackendError(RuntimeError):
    """A model call that failed; the message says what to do. It is never turned into an empty answer."""


class ReplyError(BackendError):
    """A reply that is not what its task asks for (not JSON, wrong schema); quotes the reply."""


class WeightsError(RuntimeError):
    """Model weights that are missing or whose checksum is wrong."""
