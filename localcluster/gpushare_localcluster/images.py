"""Which programs an image has where containers are processes that see the host's files."""

import shutil
from pathlib import Path


class ImagePrograms:
    """A folder with a link for each tag: to a folder of programs, which images of that tag have."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, tag: str, programs: Path) -> None:
        """Containers that start from now on find these before all others, by PATH.

        ``programs``: a folder such as `Binary.programs`: what is in it are links to programs elsewhere.
        """
        self._folder.mkdir(exist_ok=True)
        replace_link(self._folder / tag, programs)


def replace_link(link: Path, target: Path) -> None:
    unfinished = link.with_name(f".{link.name}")
    unfinished.unlink(missing_ok=True)
    unfinished.symlink_to(target)
    unfinished.rename(link)
