"""What can go wrong in deciding.

PolicyError
├── NoPlanAvailable        every plan needs a skill that is not available
├── PlanInvalid            a plan file is wrong
├── PolicyInvalid          a rules file or a policy artifact is wrong
├── DatasetInvalid         a folder to evaluate is wrong
├── StorageUnavailable     experience or policy registry cannot be reached; may work later
├── ExperienceInvalid      a record or signal cannot be stored, now or later
└── ExperienceOverloaded   the writer's queue is full: the item was not taken
"""


class PolicyError(Exception):
    """Something that a caller of `policies` has to expect; `subject` names the file, plan or
    field.
    """

    def __init__(self, subject: str, detail: str) -> None:
        super().__init__(subject, detail)
        self.subject = subject
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.subject}: {self.detail}"


class NoPlanAvailable(PolicyError):
    """Every plan needs a skill that is not available."""


class PlanInvalid(PolicyError):
    """A plan file is wrong; `subject` names file and key."""


class PolicyInvalid(PolicyError):
    """A rules file or a policy artifact is wrong."""


class DatasetInvalid(PolicyError):
    """A folder to evaluate is wrong; `subject` names file and line."""


class StorageUnavailable(PolicyError):
    """The experience store or the policy registry cannot be reached; later it may be."""


class ExperienceInvalid(PolicyError):
    """A record or signal cannot be stored, now or later; `subject` is its id."""


class ExperienceOverloaded(PolicyError):
    """The writer's queue is full: the item was not taken."""
