"""Options that several commands share, as the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, get_type_hints


def with_flags(
    kind: type[Any], argument: str, left_out: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the fields of `kind` as flags to a command, but for some; it takes them together as one argument."""
    hints = get_type_hints(kind, include_extras=True)
    flags = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(kind)
        if field.name not in left_out
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [*(parameter for parameter in own if parameter.name != argument), *flags]

        def run(**given: Any) -> None:
            together = kind(**{flag.name: given.pop(flag.name) for flag in flags})
            command(**{argument: together}, **given)

        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate
