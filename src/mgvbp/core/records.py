"""Copies of records with other values in some of their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

Record = TypeVar("Record")

if TYPE_CHECKING:
    from dataclasses import replace as replace  # its calls are checked
else:

    def replace(record: Record, /, **changes: Any) -> Record:
        """`dataclasses.replace` for records that are their fields: without slots, cached values and ``__post_init__``.

        A search makes some 200 states of fifty fields each. A constructor of a frozen class sets them one by one, which
        takes ten times as long.
        """
        if unknown := changes.keys() - vars(record).keys():
            raise TypeError(f"{type(record).__name__} has no {', '.join(sorted(unknown))}")
        new = object.__new__(type(record))
        vars(new).update(vars(record), **changes)
        return new
