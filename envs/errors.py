"""The errors that a user of a run can repair, and how they are told."""

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from data.errors import DatasetError, ImageError, SplitError
from memory.errors import BankError, UnknownForm
from models.errors import BackendError, DependencyMissing, WeightsError
from policies.errors import ArtefactError, CheckpointError, ExportError, TrainingDiverged, TrainingStopped


class RunError(ValueError):
    """A run's folder that cannot be used; the message says what to do."""


class SettingsError(ValueError):
    """Settings that are fine by themselves but not for what they are used for; the message says which would do."""


USER_ERRORS = (
    ValidationError,
    DatasetError,
    ImageError,
    SplitError,
    BankError,
    UnknownForm,
    BackendError,
    DependencyMissing,
    WeightsError,
    ArtefactError,
    CheckpointError,
    ExportError,
    TrainingDiverged,
    TrainingStopped,
    RunError,
    SettingsError,
    OSError,
    SQLAlchemyError,
)


def explain(error: Exception) -> str:
    """One message for the user; settings' problems are listed by their names."""
    if isinstance(error, ValidationError):
        lines = [f"  - {'.'.join(map(str, item['loc']))}={item['input']!r}: {item['msg']}" for item in error.errors()]
        return f"{len(lines)} setting(s) cannot be used (python train.py --help lists them):\n" + "\n".join(lines)
    if isinstance(error, SQLAlchemyError):
        return f"the cache file cannot be used ({getattr(error, 'orig', error)}); free its disk, or delete it: it is made anew"
    if missing := getattr(error, "full_key", None):  # a mandatory setting without a value, as the configuration library tells it
        return f"{missing} must be given: python train.py ... {missing}=VALUE"
    return str(error)
