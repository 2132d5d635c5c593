"""Errors reach other processes as they are."""

from __future__ import annotations

import pickle

import pytest

from anyburl.base.errors import (
    AmbiguousNameError,
    AnyburlError,
    DataError,
    InvalidOptionError,
    MissingExtraError,
    QueryError,
    UnknownDataError,
    UnknownLabelError,
)


@pytest.mark.parametrize(
    "error",
    [
        DataError("train.txt:17: expected 3 fields, got 2"),
        UnknownLabelError("entity", "edd", ["ed"]),
        AmbiguousNameError("entity", "Paris", ["Q90", "Q830149"]),
        UnknownDataError("no data set 'gea'", ["geo"]),
        QueryError(3, "it has no relation"),
        InvalidOptionError("top", "at least 1", 0),
        MissingExtraError('engine="ray"', "ray"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_worker_process_is_the_same_here(error: AnyburlError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert copy.args == error.args
