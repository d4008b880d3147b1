"""What a failure is in the objects of `--json`: the key `error`, the same for every command.

Why apart from the sentence on stderr: a program decides by `code`, and the sentence may change
(docs/reference/json.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runtime.errors import GatehouseError

Told = dict[str, str | None]

INTERRUPTION: Final[Told] = {"code": "interrupted", "message": "interrupted", "mend": None}


def told(error: GatehouseError) -> Told:
    """Return a failure with a name as `--json` has it."""
    return {"code": error.code, "message": error.sentence, "mend": error.hint or None}
