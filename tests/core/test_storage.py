"""Files are on the disk as a whole, or not at all."""

import os
import stat

import numpy as np
import pytest

import mgvbp
from mgvbp.core import storage
from mgvbp.errors import FileFormatError, InvalidInputError, InvalidTypeError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.npz"


def test_it_is_on_the_disk_before_it_has_the_name(path, monkeypatch):
    """And then the name is, where the system can do that."""
    events, fsync, rename = [], os.fsync, storage.Path.replace

    def noted(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def renamed(self, target):
        events.append("name")
        return rename(self, target)

    def no_folders(*arguments):
        raise PermissionError

    monkeypatch.setattr(storage.os, "fsync", noted)
    monkeypatch.setattr(storage.Path, "replace", renamed)
    storage.write_archive(path, "thing", {}, {"x": np.zeros(3)})
    assert events == ["file", "name", "folder"]
    monkeypatch.setattr(storage.os, "open", no_folders)
    storage.write_archive(path, "thing", {}, {"x": np.ones(3)})
    assert storage.read_archive(path, "thing")[1]["x"].tolist() == [1.0, 1.0, 1.0]


def test_two_writers_of_one_file(path, monkeypatch):
    """One writes while the other does: the last to end leaves its file, and nothing of the other's."""
    fsync = os.fsync

    def meanwhile(descriptor):
        monkeypatch.setattr(storage.os, "fsync", fsync)
        storage.write_archive(path, "thing", {}, {"x": np.arange(1000.0)}, compressed=False)
        assert len(storage.read_archive(path, "thing")[1]["x"]) == 1000

    monkeypatch.setattr(storage.os, "fsync", meanwhile)
    storage.write_archive(path, "thing", {}, {"x": np.zeros(3)})
    assert storage.read_archive(path, "thing")[1]["x"].tolist() == [0.0, 0.0, 0.0]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_list_is_written_end_to_end(path):
    parts = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(9.0).reshape(3, 3))]
    storage.write_archive(path, "thing", {}, {"x": parts}, compressed=False)
    found = storage.read_archive(path, "thing")[1]["x"]
    np.testing.assert_array_equal(found, np.concatenate(parts), strict=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
def test_only_files_that_end_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for endless in ("/dev/zero", tmp_path / "pipe"):
        with pytest.raises(FileFormatError, match="is not a regular file"):
            mgvbp.load(endless)
    for nothing in (None, 3, b"file", "", "a\0b"):
        with pytest.raises((InvalidTypeError, InvalidInputError), match="the path of a file"):
            mgvbp.load(nothing)


def test_nobody_is_advised_to_load_pickles(tmp_path):
    """Of a file that is no archive NumPy says that it may be loaded unsafely."""
    other = tmp_path / "returns.csv"
    other.write_text("date,r\n2024-01-02,0.1\n")
    with pytest.raises(FileFormatError, match="is not a mgvbp file") as caught:
        storage.read_archive(other, "posterior")
    assert "pickle" not in str(caught.value)


def test_a_new_file_replaces_none(path, monkeypatch):
    """Also where there are no links."""

    def unknown(*paths):
        raise PermissionError("no links")

    for patched in (False, True):
        if patched:
            monkeypatch.setattr(storage.os, "link", unknown)
        storage.write_archive(path, "thing", {}, {"x": np.zeros(3)}, new=True)
        with pytest.raises(FileExistsError):
            storage.write_archive(path, "thing", {}, {"x": np.ones(3)}, new=True)
        assert storage.read_archive(path, "thing")[1]["x"].tolist() == [0.0, 0.0, 0.0]
        assert [p.name for p in path.parent.iterdir()] == [path.name]
        path.unlink()


def test_the_checksum_covers_the_header_and_the_arrays(path):
    """Also their names, kinds and shapes; arrays of any order in memory have the same."""
    arrays = {"x": np.arange(6.0).reshape(2, 3), "y": np.asfortranarray(np.arange(6).reshape(3, 2))}
    storage.write_archive(path, "thing", {"a": [1, 0.1, None, np.inf]}, arrays)
    header, found = storage.read_archive(path, "thing")
    assert header["a"] == [1, 0.1, None, np.inf]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    with np.load(path) as archive:
        parts = dict(archive)
    text = parts["header"].tobytes()
    for change in (
        {"x": parts["x"].reshape(3, 2)},
        {"x": parts["x"].astype(np.float32)},
        {"x": parts["y"], "y": parts["x"]},
        {"z": np.zeros(1)},
        {"header": np.frombuffer(text.replace(b"0.1", b"0.2"), np.uint8)},
        {"header": np.frombuffer(text.replace(b"digest", b"d"), np.uint8)},
    ):
        np.savez(path, **(parts | change))
        with pytest.raises(FileFormatError, match="damaged"):
            storage.read_archive(path, "thing")
