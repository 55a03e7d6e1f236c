"""Damaged and hostile files: mutations of posteriors and checkpoints, which may raise nothing but typed errors.

Run:  python tests/fuzz_files.py [--inputs 100000] [--seed 0] [--atheris]

`tests/run/test_fuzz_files.py` runs some hundreds. With ``--atheris`` the same mutations are chosen by libFuzzer, by
what they reach in the loaders (the package atheris).
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

import mgvbp
from mgvbp import MGVBP, BlockDiagonal, FileFormatError, Gaussian, InvalidInputError

TYPED = (FileFormatError, InvalidInputError)
"""What a file may raise: the second one if it is of another version or model."""
MEMORY = 8 * 2**30
"""Bytes of address space that the script allows itself."""


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


def images():
    """Files of all kinds, as bytes: name -> contents."""
    prior = Gaussian(np.ones(3), np.eye(3) + 0.2)
    short = {"method": MGVBP(step_size=0.1, max_iterations=4), "num_draws": 8}
    options = {
        "full": {"dim": 3},
        "diagonal": {"dim": 3, "family": "diagonal"},
        "block": {"dim": 3, "family": BlockDiagonal([[2, 0], [1]])},
        "named": {"prior": prior, "initial_mean": np.zeros(3), **short},
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "file")
        for name, settings in options.items():
            posterior = mgvbp.fit(Density(), **settings, checkpoint=path)
            found[f"checkpoint {name}"] = path.read_bytes()
            posterior.save(path)
            found[f"posterior {name}"] = path.read_bytes()
            path.unlink()
        mgvbp.fit(WithGradient(), dim=3, checkpoint=path)
        found["checkpoint gradient"] = path.read_bytes()
        path.unlink()
        posterior = mgvbp.fit(Failing(), dim=3, checkpoint=path, timeout=60.0, **short)
        found["checkpoint failures"] = path.read_bytes()
        posterior.save(path)
        found["posterior failures"] = path.read_bytes()
    return found


# --- mutations: functions of the file and a source of numbers -----------------------------------------


def mutated(image, others, pick):
    """A mutation of a file; ``pick(n)`` chooses one of 0, ..., n - 1."""
    for _ in range(1 + pick(2)):
        image = MUTATIONS[pick(len(MUTATIONS))](image, others, pick)
    return image


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
        name = sorted(parts)[pick(len(parts))]
        change(parts, name, others, pick)
        return archive(parts)

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


@inside
def other_array(parts, name, others, pick):
    """The header of an array says what it likes; the data stay."""
    shape = tuple(EXTENTS[pick(len(EXTENTS))] for _ in range(pick(4)))
    entries = {"descr": DESCRIPTIONS[pick(len(DESCRIPTIONS))], "fortran_order": bool(pick(2)), "shape": shape}
    header = repr(entries).encode().ljust(117) + b"\n"
    parts[name] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + parts[name][128:]


@inside
def trap(parts, name, others, pick):
    """An array of objects: nothing of it may be unpickled."""
    file = io.BytesIO()
    np.save(file, np.array([Trap()] * (1 + pick(3)), dtype=object), allow_pickle=True)
    parts[name] = file.getvalue()


class Trap:
    def __reduce__(self):
        return sprung, ()


def sprung():
    raise SystemExit("a file was unpickled")


ATOMS = [
    None, True, False, 0, 1, -1, 3, 10**12, 2**70, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", "full", "auto",
    "block", "mgvbp", "x" * 1000, [], [0], [[0, 1], [2]], [["a"]], {}, {"raised": float("inf")}, {"raised": 1},
    10**400, -(10**400), float("-inf"), 10**9, 2**63, [10**9], [10**400], {"raised": -3}, {"raised": 10**400},
    {"burnt": 1}, [["beta", "Real", [3]]],
]  # fmt: skip


def header_of(parts):
    return json.loads(np.lib.format.read_array(io.BytesIO(parts["header.npy"])).tobytes())


def header_as_bytes(header):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.frombuffer(json.dumps(header).encode(), np.uint8))
    return file.getvalue()


@inside
def other_header(parts, name, others, pick):
    """JSON with another value somewhere."""
    try:
        header = header_of(parts)
    except Exception:
        return
    places = list(walk(header))
    if not places:
        return
    owner, key = places[pick(len(places))]
    if pick(5) == 0:
        del owner[key]
    else:
        owner[key] = ATOMS[pick(len(ATOMS))]
    parts["header.npy"] = header_as_bytes(header)


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

    A checkpoint has a checksum of all that it says. So one that is accepted says what it said before it was damaged.
    """
    return tuple(outcome(read, data, path) for read in (mgvbp.load, resume))


def outcome(read, data, path):
    path.unlink(missing_ok=True)  # file systems are slow to write over what is there
    path.write_bytes(data)
    try:
        check(read(path))
    except TYPED as error:
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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", action="store_true")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    mgvbp.core.storage.os.fsync = lambda descriptor: None  # no power is cut here
    warnings.simplefilter("ignore")
    found = images()
    names, files = sorted(found), [found[name] for name in sorted(found)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        if arguments.atheris:
            guided(files, path, arguments)
        rng, counts, start = np.random.default_rng(arguments.seed), Counter(), time.perf_counter()
        for number in range(arguments.inputs):
            kind = number % len(files)
            data = mutated(files[kind], files, lambda n: int(rng.integers(n)))
            try:
                counts[attempt(data, path)] += 1
            except BaseException:
                Path("hostile.npz").write_bytes(data)
                print(f"input {number}, of a {names[kind]}, is in hostile.npz", file=sys.stderr)
                raise
    print(f"{arguments.inputs:,} inputs in {time.perf_counter() - start:.0f} s; load, resume:")
    for outcome, count in counts.most_common():
        print(f"{count:>9,}  {', '.join(outcome)}")


def guided(files, path, arguments):
    """libFuzzer chooses the mutations; it does not return."""
    import atheris

    for module in (
        mgvbp.core.storage,
        mgvbp.posterior.loading,
        mgvbp.run.checkpoint,
        mgvbp.run.encoding,
        json.decoder,
        zipfile,
        np.lib.format,
    ):
        for function in vars(module).values():
            if inspect.isfunction(function):
                atheris.instrument_func(function)

    def one_input(data):
        source = atheris.FuzzedDataProvider(data)
        image = files[source.ConsumeIntInRange(0, len(files) - 1)]
        attempt(mutated(image, files, lambda n: source.ConsumeIntInRange(0, n - 1)), path)

    atheris.Setup(
        [
            sys.argv[0],
            f"-runs={arguments.inputs}",
            f"-seed={arguments.seed + 1}",
            "-max_len=200",
            "-len_control=0",
        ],
        one_input,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
