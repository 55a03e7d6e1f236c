"""A few hundred damaged and hostile files; `tests/fuzz_files.py` runs as many as one likes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzz_files as fuzz
import mgvbp
from mgvbp import FileFormatError

pytestmark = pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")


@pytest.fixture(scope="module")
def images():
    return fuzz.images()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "file"


def test_what_is_not_damaged_is_accepted(images, path):
    """Else the mutations would be of files that are refused anyway."""
    for name, image in images.items():
        accepted = ("accepted", "FileFormatError") if "posterior" in name else ("FileFormatError", "accepted")
        assert fuzz.attempt(image, path) == accepted
        assert fuzz.attempt(fuzz.archive(fuzz.members(image)), path) == accepted


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_nothing_but_typed_errors(images, path, data):
    def pick(number):
        return data.draw(st.integers(0, number - 1))

    files = [images[name] for name in sorted(images)]
    fuzz.attempt(fuzz.mutated(files[pick(len(files))], files, pick), path)


@pytest.mark.parametrize("mutation", dict.fromkeys(fuzz.MUTATIONS))
def test_each_mutation(mutation, images, path):
    """Each for itself, for every kind of file."""
    rng, files = np.random.default_rng(0), list(images.values())
    for image in files:
        changed = [mutation(image, files, lambda n: int(rng.integers(n))) for _ in range(5)]
        assert any(other != image for other in changed)
        for other in changed:
            fuzz.attempt(other, path)


def test_every_field(images, path):
    """Each field of a posterior's header, and of those in it, is in turn everything that it should not be."""
    parts = fuzz.members(images["posterior failures"])
    header = fuzz.header_of(parts)
    assert header["failures"]["raised"] > 0
    for fields in (header, header["failures"]):
        for name, before in list(fields.items()):
            for value in fuzz.ATOMS:
                fields[name] = value
                data = fuzz.archive(parts | {"header.npy": fuzz.header_as_bytes(header)})
                fuzz.outcome(mgvbp.load, data, path)
            fields[name] = before


def test_a_checkpoint_that_says_something_else_is_refused(images, path):
    """Its checksum tells, whatever the field is."""
    parts = fuzz.members(images["checkpoint failures"])
    header = fuzz.header_of(parts)
    places = list(fuzz.walk(header["content"]))
    for owner, key in places[:: len(places) // 50]:
        before, owner[key] = owner[key], "another"
        data = fuzz.archive(parts | {"header.npy": fuzz.header_as_bytes(header)})
        assert fuzz.outcome(fuzz.resume, data, path) == "FileFormatError"
        owner[key] = before


@pytest.mark.parametrize("extent", [10**9, 10**12, 2**62])
@pytest.mark.parametrize("description", ["<f8", "<U9", "|b1"])
@pytest.mark.parametrize("kind", ["posterior full", "checkpoint full"])
def test_an_array_that_claims_to_be_huge_is_not_made(kind, description, extent, images, path):
    parts = fuzz.members(images[kind])
    entries = {"descr": description, "fortran_order": False, "shape": (extent,)}
    header = repr(entries).encode().ljust(117) + b"\n"
    parts["more.npy"] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
    path.write_bytes(fuzz.archive(parts))
    tracemalloc.start()
    try:
        for read in (mgvbp.load, fuzz.resume):
            with pytest.raises(FileFormatError):
                read(path)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()
