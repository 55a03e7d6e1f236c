"""A downloader for pooch that goes on where a broken download stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are here and the bytes there will be, None where the server does not say."""

TIMEOUT = 30.0
"""Seconds without a byte before giving up."""


def downloader(progress: Progress | None = None) -> Callable[[str, str, object], None]:
    """Make a function ``(url, output_file, pooch)`` for the ``downloader=`` of `pooch.retrieve`.

    Bytes go to ``NAME.part`` beside the output and stay there if the connection breaks. The next call asks for
    the rest only (``Range``, RFC 9110 §14); a server without ranges sends all (200) and the part is begun
    anew. A complete part becomes the output, whose checksum pooch tests and which it deletes if that is wrong:
    so a spoilt part does harm once at most.
    """

    def download(url: str, output_file: str, _: object) -> None:
        import requests

        part = Path(output_file).with_name(Path(urlsplit(url).path).name + ".part")
        done = part.stat().st_size if part.exists() else 0
        # identity: offsets count the file's own bytes, not those of a compressed transfer
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if not (done and response.status_code == requests.codes.requested_range_not_satisfiable):
                response.raise_for_status()
                resumed = response.status_code == requests.codes.partial_content
                done = done if resumed else 0
                length = response.headers.get("Content-Length")
                total = done + int(length) if length else None
                with part.open("ab" if resumed else "wb") as file:
                    for chunk in response.iter_content(2**14):
                        file.write(chunk)
                        done += len(chunk)
                        if progress is not None:
                            progress(done, total)
        part.replace(output_file)

    return download
