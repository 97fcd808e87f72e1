"""Who gets which arm: by a hash of the unit, so that the same caller or session always gets the
same, on every gateway, without a table.
"""

import hashlib
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

CONTROL, TREATMENT = "control", "treatment"
Arm = Literal["control", "treatment"]
Unit = Literal["user", "session", "request"]


class Split(BaseModel):
    """How traffic is split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    experiment: str = Field(min_length=1)
    """Another name is another split: who was treated in one experiment is spread over the next."""
    unit: Unit = "session"
    """What always gets the same arm; its digest is hashed. Without one a request stands for
    itself."""
    share: float = Field(ge=0, le=1)
    """Of units that get the treatment. Raising it moves units into the treatment, none out."""

    @model_validator(mode="after")
    def _has_no_separator(self) -> Self:
        if "\0" in self.experiment:
            raise ValueError("experiment: a NUL character cannot be in a name")
        return self

    def arm(self, unit: str) -> Arm:
        """The arm of a unit."""
        digest = hashlib.blake2b(f"{self.experiment}\0{unit}".encode(), digest_size=8).digest()
        return "treatment" if int.from_bytes(digest) < self.share * 2**64 else "control"


def unit_of(unit: Unit, user: str, session: str, request_id: str) -> str:
    """What stands for a request in a split; without a user or session it stands for itself.

    Args:
        unit: which of them is wanted.
        user: digest, or empty.
        session: digest, or empty.
        request_id: never empty.
    """
    match unit:
        case "user":
            return user or request_id
        case "session":
            return session or request_id
        case "request":
            return request_id
