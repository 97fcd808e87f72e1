"""Who gets which arm: by a hash of the unit, so that the same caller or session always gets the
same, on every gateway, without a table.
"""

import hashlib
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

CONTROL, TREATMENT = "control", "treatment"
Arm = Literal["control", "treatment"]


class Split(BaseModel):
    """How traffic is split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    experiment: str = Field(min_length=1)
    """Another name is another split: who was treated in one experiment is spread over the next."""
    unit: Literal["user", "session", "request"] = "session"
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
