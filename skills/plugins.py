"""What installed packages add: folders of YAML files that their entry points name."""

from importlib.metadata import entry_points
from pathlib import Path

from skills.errors import SkillMisconfigured


def installed_folders(group: str) -> tuple[Path, ...]:
    """The folder of every package or module that an entry point of the group names, in the order
    of the entry points' names.

    Raises:
        SkillMisconfigured: an entry point cannot be imported; the subject names it.
    """
    folders: dict[Path, None] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        try:
            module = point.load()
        except (ImportError, AttributeError) as error:
            subject = f"entry point {point.name!r} of {group}"
            raise SkillMisconfigured(subject, f"cannot be imported: {error}") from error
        folders[Path(str(module.__file__)).parent] = None
    return tuple(folders)
