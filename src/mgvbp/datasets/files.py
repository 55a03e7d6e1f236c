"""Where the authors' files are: the user's directory, the cache, and then their public address."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mgvbp.errors import DataUnavailableError

Progress = Callable[[int, int], None]
"""Called with the bytes that are here and the bytes there will be, 0 where the server does not say."""

BASE_URL = "https://raw.githubusercontent.com/mmagris/MGVBP/857e49c2ac6ab9542edb5fb6c6269ab17d54fba7"
"""The authors' repository at one commit, so that an address always has the same bytes."""

VARIABLE = "MGVBP_DATA"
"""The environment variable that names a directory to look in first; nothing is ever written there."""


@dataclass(frozen=True)
class File:
    """A file of the authors' repository: its path there and the sha256 of its bytes."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """The file's name, in the user's directory and in the cache too."""
        return Path(self.path).name

    @property
    def url(self) -> str:
        """Its public address."""
        return f"{BASE_URL}/{self.path}"


def cache_directory() -> Path:
    """Where downloads are kept: the system's directory for caches."""
    import pooch

    return Path(pooch.os_cache("mgvbp"))


def given(file: File) -> Path | None:
    """The file in the user's directory, if it is there."""
    directory = os.environ.get(VARIABLE)
    path = Path(directory, file.name) if directory else None
    return path if path is not None and path.is_file() else None


def cached(file: File) -> Path | None:
    """The file in the cache, if it is there."""
    path = cache_directory() / file.name
    return path if path.is_file() else None


def fetch_file(file: File, progress: Progress | None = None) -> Path:
    """The file, downloaded if it is nowhere yet; its checksum is right."""
    path = given(file)
    if path is not None:
        if hashlib.sha256(path.read_bytes()).hexdigest() != file.sha256:
            raise DataUnavailableError(
                f"{path} is not the authors' {file.name} (its sha256 differs): remove it, or replace it by "
                f"the file at {file.url}"
            )
        return path
    import pooch

    try:
        download = pooch.HTTPDownloader(progressbar=Bar(progress) if progress else False)
        kept = pooch.retrieve(file.url, file.sha256, file.name, cache_directory(), downloader=download)
    except (OSError, ValueError) as error:  # pooch has a ValueError for a wrong checksum
        raise DataUnavailableError(
            f"{file.name} could not be fetched from {file.url} ({_reason(error)}): try again on line, or put "
            f"the file into a directory and name that in the environment variable {VARIABLE}"
        ) from error
    return Path(kept)


class Bar:
    """What pooch takes for a progress bar, as calls of ``progress``."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.done, self.total = progress, 0, 0

    def update(self, number: int) -> None:
        """``number`` bytes more are here; pooch counts whole chunks, and all bytes once more at the end."""
        self.done = min(self.done + number, self.total or self.done + number)
        self.progress(self.done, self.total)

    def reset(self) -> None:
        """Called at the end."""

    close = reset


def _reason(error: Exception) -> str:
    """What went wrong in a few words: the messages of requests are pages long."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return "the server did not answer in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off"
    if isinstance(error, requests.RequestException):
        return "no connection"
    return "wrong checksum" if isinstance(error, ValueError) else str(error)
