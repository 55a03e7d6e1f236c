"""Damaged and hostile files: mutations of posteriors and checkpoints, which may raise nothing but typed errors."""

from __future__ import annotations

import io
import json
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mgvbp
from mgvbp import MGVBP, BlockDiagonal, FileFormatError, Gaussian, InvalidInputError

pytestmark = pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")


class Density:
    """A log density."""

    def __call__(self, theta):
        return -np.cosh(theta).sum(axis=1)


class WithGradient(Density):
    def value_and_grad(self, theta):
        return self(theta), -np.sinh(theta)


class Failing(Density):
    """Has failures to tell of."""

    def __call__(self, theta):
        if (theta[:, 0] > 0.5).any():
            raise ValueError("no value here")
        return super().__call__(theta)


SHORT = {"method": MGVBP(step_size=0.1, max_iterations=4), "num_draws": 8}
KINDS = {
    "full": (Density(), {"dim": 3}),
    "diagonal": (Density(), {"dim": 3, "family": "diagonal"}),
    "block": (Density(), {"dim": 3, "family": BlockDiagonal([[2, 0], [1]])}),
    "named": (
        Density(),
        {"prior": Gaussian(np.ones(3), np.eye(3) + 0.2), "initial_mean": np.zeros(3), **SHORT},
    ),
    "gradient": (WithGradient(), {"dim": 3}),
    "failures": (Failing(), {"dim": 3, "timeout": 60.0, **SHORT}),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "file"


@pytest.fixture(scope="module")
def images(path):
    """Files of all kinds, as bytes: name -> contents."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (function, options) in KINDS.items():
            path.unlink(missing_ok=True)
            posterior = mgvbp.fit(function, **options, checkpoint=path)
            found[f"checkpoint {name}"] = path.read_bytes()
            posterior.save(path)
            found[f"posterior {name}"] = path.read_bytes()
    return found


# --- mutations: functions of the file, the other files, and pick(n), which chooses one of 0, ..., n - 1 ------


def flip(image, others, pick):
    data = bytearray(image)
    for _ in range(1 + pick(4)):
        if data:
            data[pick(len(data))] ^= 1 + pick(255)
    return bytes(data)


def truncate(image, others, pick):
    return image[: pick(len(image) + 1)]


def splice(image, others, pick):
    other = others[pick(len(others))]
    start, stop = sorted((pick(len(other) + 1), pick(len(other) + 1)))
    where = pick(len(image) + 1)
    return image[:where] + other[start:stop] + image[where + pick(64) :]


def members(image):
    """The parts of an archive, so far as it is one."""
    try:
        with zipfile.ZipFile(io.BytesIO(image)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return {}


def archive(parts):
    """An archive whose checksums are right."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name, data in parts.items():
            target.writestr(name, data)
    return file.getvalue()


def inside(change):
    """A mutation of a part of the archive, or of the list of parts."""

    def mutation(image, others, pick):
        parts = members(image)
        if not parts:
            return image
        change(parts, sorted(parts)[pick(len(parts))], others, pick)
        return archive(parts)

    mutation.__name__ = change.__name__
    return mutation


@inside
def damage_member(parts, name, others, pick):
    parts[name] = [flip, truncate, splice][pick(3)](parts[name], [parts[name]], pick)


@inside
def drop_member(parts, name, others, pick):
    del parts[name]


@inside
def exchange_member(parts, name, others, pick):
    theirs = members(others[pick(len(others))])
    source = sorted(theirs)[pick(len(theirs))]
    parts[source if pick(2) else name] = theirs[source]


@inside
def add_member(parts, name, others, pick):
    odd = ["more.npy", "header", "../header.npy", "/etc/passwd", "mean.npy", "float64.npy", "int64.npy"]
    parts[odd[pick(len(odd))]] = parts[name] if pick(2) else b"anything"


DESCRIPTIONS = ["<f8", "<i8", "|O", "<f4", ">f8", "<c16", "<U9", "|V8", "|S0", "<M8[ns]", "x", "|b1", "<f16"]
EXTENTS = [0, 1, 2, 3, 8, 24, 100, 10**6, 10**9, 10**12, 2**62, 2**63, -1]


def array_header(description, shape, fortran_order=False):
    entries = {"descr": description, "fortran_order": fortran_order, "shape": shape}
    header = repr(entries).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@inside
def other_array(parts, name, others, pick):
    """The header of an array says what it likes; the data stay."""
    shape = tuple(EXTENTS[pick(len(EXTENTS))] for _ in range(pick(4)))
    parts[name] = (
        array_header(DESCRIPTIONS[pick(len(DESCRIPTIONS))], shape, bool(pick(2))) + parts[name][128:]
    )


class Trap:
    def __reduce__(self):
        return sprung, ()


def sprung():
    raise SystemExit("a file was unpickled")


@inside
def trap(parts, name, others, pick):
    """An array of objects: nothing of it may be unpickled."""
    file = io.BytesIO()
    np.save(file, np.array([Trap()] * (1 + pick(3)), dtype=object), allow_pickle=True)
    parts[name] = file.getvalue()


ATOMS = [
    None, True, False, 0, 1, -1, 3, 10**12, 2**70, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", "full", "auto",
    "block", "mgvbp", "x" * 1000, [], [0], [[0, 1], [2]], [["a"]], {}, {"raised": float("inf")}, {"raised": 1},
    10**400, -(10**400), float("-inf"), 10**9, 2**63, [10**9], [10**400], {"raised": -3}, {"raised": 10**400},
    {"burnt": 1}, [["beta", "Real", [3]]],
]  # fmt: skip


def header_of(parts):
    return json.loads(np.lib.format.read_array(io.BytesIO(parts["header.npy"])).tobytes())


def with_header(parts, header):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.frombuffer(json.dumps(header).encode(), np.uint8))
    return parts | {"header.npy": file.getvalue()}


@inside
def other_header(parts, name, others, pick):
    """JSON with another value somewhere."""
    try:
        header = header_of(parts)
    except Exception:
        return
    if places := list(walk(header)):
        owner, key = places[pick(len(places))]
        if pick(5) == 0:
            del owner[key]
        else:
            owner[key] = ATOMS[pick(len(ATOMS))]
        parts.update(with_header(parts, header))


def walk(value):
    """All places in a JSON document."""
    for key in range(len(value)) if isinstance(value, list) else sorted(value):
        yield value, key
        if isinstance(value[key], list | dict):
            yield from walk(value[key])


MUTATIONS = [
    flip, truncate, splice, damage_member, drop_member, exchange_member, add_member, other_array, trap,
    other_header, other_header, other_header,
]  # fmt: skip


# --- what is tried ------------------------------------------------------------------------------------


def attempt(data, path):
    """Load and resume; returns what came of it, and raises what must not.

    A file has a checksum of all that it says. So one that is accepted says what it said before it was damaged.
    """
    return tuple(outcome(read, data, path) for read in (mgvbp.load, resume))


def outcome(read, data, path):
    path.unlink(missing_ok=True)  # file systems are slow to write over what is there
    path.write_bytes(data)
    try:
        check(read(path))
    except (
        FileFormatError,
        InvalidInputError,
    ) as error:  # the second one if it is of another version or model
        return type(error).__name__
    return "accepted"


def check(posterior):
    """What is accepted has to make sense."""
    assert type(posterior.lower_bound) is float
    assert posterior.lower_bound < float("inf")
    for error in (posterior.lower_bound_se, posterior.gap, posterior.gap_se):
        assert error is None or (type(error) is float and error >= 0.0)
    assert set(posterior.failures) <= {"raised", "timed_out", "lost", "workers_lost"}
    assert all(type(count) is int and 0 <= count < 2**63 for count in posterior.failures.values())
    assert all(type(text) is str for text in (posterior.stop_reason, posterior.method, posterior.estimator))
    assert type(posterior.converged) is bool
    assert np.isfinite(posterior.mean).all()


def resume(path):
    """Resume with a model that has no gradient; if that is refused, with one that has."""
    try:
        return mgvbp.resume(path, Density(), every=1e9)
    except InvalidInputError:
        return mgvbp.resume(path, WithGradient(), every=1e9)


def test_what_is_not_damaged_is_accepted(images, path):
    """Else the mutations would be of files that are refused anyway."""
    for name, image in images.items():
        accepted = ("accepted", "FileFormatError") if "posterior" in name else ("FileFormatError", "accepted")
        assert attempt(image, path) == accepted
        assert attempt(archive(members(image)), path) == accepted


@settings(max_examples=300)
@given(data=st.data())
def test_nothing_but_typed_errors(images, path, data):
    def pick(number):
        return data.draw(st.integers(0, number - 1))

    files = [images[name] for name in sorted(images)]
    image = files[pick(len(files))]
    for _ in range(1 + pick(2)):
        image = MUTATIONS[pick(len(MUTATIONS))](image, files, pick)
    attempt(image, path)


def test_each_mutation(images, path):
    """Each for itself, for every kind of file."""
    rng, files = np.random.default_rng(0), list(images.values())
    for mutation in dict.fromkeys(MUTATIONS):
        for image in files:
            changed = [mutation(image, files, lambda n: int(rng.integers(n))) for _ in range(5)]
            assert any(other != image for other in changed), mutation
            for other in changed:
                attempt(other, path)


def test_every_field(images, path):
    """Each field of a posterior's header, and of those in it, is in turn everything that it should not be."""
    parts = members(images["posterior failures"])
    header = header_of(parts)
    assert header["failures"]["raised"] > 0
    for fields in (header, header["failures"]):
        for name, before in list(fields.items()):
            for value in ATOMS:
                fields[name] = value
                outcome(mgvbp.load, archive(with_header(parts, header)), path)
            fields[name] = before


def test_a_checkpoint_that_says_something_else_is_refused(images, path):
    """Its checksum tells, whatever the field is."""
    parts = members(images["checkpoint failures"])
    header = header_of(parts)
    places = list(walk(header["content"]))
    for owner, key in places[:: len(places) // 50]:
        before, owner[key] = owner[key], "another"
        assert outcome(resume, archive(with_header(parts, header)), path) == "FileFormatError"
        owner[key] = before
