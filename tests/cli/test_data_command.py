"""Files of the data sets, found, downloaded and checked from a server on this machine; the command."""

import hashlib
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mgvbp import DataUnavailableError, datasets
from mgvbp.cli import main
from mgvbp.datasets import CATALOGUE, catalogue, files
from mgvbp.datasets.files import File, fetch_file

CONTENT = bytes(range(256)) * 400
"""Longer than a few chunks of a download."""
DIRECTORY = os.environ.get(files.VARIABLE) or "no-directory"
FILE = File("Folder/data.bin", hashlib.sha256(CONTENT).hexdigest())


class Handler(BaseHTTPRequestHandler):
    """Serves ``server.content``; its server says how well it behaves."""

    def do_GET(self):
        server = self.server
        server.requests.append(self.path)
        if server.status != 200:
            return self.send_error(server.status)
        self.send_response(200)
        self.send_header("Content-Length", str(len(server.content)))
        self.end_headers()
        self.wfile.write(server.content[: server.breaks_after])
        return None

    def log_message(self, *_):
        pass


@contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.content, server.status, server.breaks_after = CONTENT, 200, None
    server.requests = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, no directory of the user, and no proxy on the way to this machine."""
    directory = tmp_path / "cache"
    monkeypatch.setattr(files, "cache_directory", lambda: directory)
    monkeypatch.delenv(files.VARIABLE, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return directory


@pytest.fixture
def server(cache, monkeypatch):
    with serving() as server:
        monkeypatch.setattr(files, "BASE_URL", f"http://127.0.0.1:{server.server_port}")
        yield server


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


# --- download -----------------------------------------------------------------------------------------


def test_a_good_file_is_downloaded_once(server, cache):
    path = fetch_file(FILE)
    assert path == cache / "data.bin"
    assert contents(cache) == {"data.bin": CONTENT}
    assert fetch_file(FILE) == path
    assert server.requests == ["/Folder/data.bin"]


def test_progress_counts_up_to_the_size(server):
    seen = []
    fetch_file(FILE, lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 3
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert {total for _, total in seen} == {len(CONTENT)}


@pytest.mark.parametrize("content", [CONTENT[::-1], CONTENT[:-1]], ids=["other", "truncated"])
def test_a_wrong_checksum_leaves_nothing(server, cache, content):
    server.content = content
    with pytest.raises(DataUnavailableError, match=r"data.bin .*wrong checksum.*MGVBP_DATA"):
        fetch_file(FILE)
    assert contents(cache) == {}
    server.content = CONTENT
    assert fetch_file(FILE).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 403, 500])
def test_a_refusal_is_named(server, cache, status):
    server.status = status
    with pytest.raises(DataUnavailableError, match=rf"data.bin .*\(HTTP status {status}\).*MGVBP_DATA"):
        fetch_file(FILE)
    assert contents(cache) == {}


def test_off_line_says_what_to_do(cache, monkeypatch):
    with serving() as server:
        port = server.server_port
    monkeypatch.setattr(files, "BASE_URL", f"http://127.0.0.1:{port}")  # nobody listens there any more
    with pytest.raises(DataUnavailableError, match=r"data.bin .*\(no connection\).*on line.*MGVBP_DATA"):
        fetch_file(FILE)


def test_a_cache_that_cannot_be_written_is_named(server, cache):
    cache.write_text("a file where the directory should be")
    with pytest.raises(DataUnavailableError, match=r"data.bin .*MGVBP_DATA"):
        fetch_file(FILE)


def test_load_downloads_what_it_needs(server, cache):
    """The authors' file itself, if it is on this machine, served from where their repository has it."""
    original = Path(DIRECTORY, "GARCHdata.mat")
    if not original.is_file():
        pytest.skip(f"no GARCHdata.mat in the directory that {files.VARIABLE} names")
    server.content = original.read_bytes()
    assert len(datasets.load("sp500").frame) == 2123
    assert server.requests == ["/Make_data/GARCHdata.mat"]
    assert (cache / "GARCHdata.mat").is_file()


def test_a_download_that_breaks_off_leaves_nothing(server, cache):
    server.breaks_after = 50_000
    with pytest.raises(DataUnavailableError, match=r"data.bin .*broke off.*MGVBP_DATA"):
        fetch_file(FILE)
    assert contents(cache) == {}
    server.breaks_after = None
    assert fetch_file(FILE).read_bytes() == CONTENT


def test_a_spoilt_file_in_the_cache_is_fetched_again(server, cache):
    cache.mkdir()
    (cache / "data.bin").write_bytes(b"?")
    assert fetch_file(FILE).read_bytes() == CONTENT


# --- the user's directory -----------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path, monkeypatch):
    directory = tmp_path / "own"
    directory.mkdir()
    monkeypatch.setenv(files.VARIABLE, str(directory))
    return directory


def test_the_users_directory_comes_before_the_cache(server, cache, own):
    fetched = fetch_file(FILE)
    assert fetched.parent == cache
    assert contents(own) == {}
    (own / "data.bin").write_bytes(CONTENT)
    assert fetch_file(FILE) == own / "data.bin"
    assert len(server.requests) == 1


def test_another_file_in_the_users_directory_is_refused(server, cache, own):
    (own / "data.bin").write_bytes(b"something else")
    with pytest.raises(DataUnavailableError, match=r"own.data.bin is not the authors' data.bin.*remove it"):
        fetch_file(FILE)
    assert server.requests == []


# --- the command --------------------------------------------------------------------------------------


@pytest.fixture
def entries(server, monkeypatch):
    """The catalogue with sp500 and har at the server: the first there, the second not."""
    test_file = File("GARCHdata.mat", FILE.sha256)
    missing = File("HARdata.mat", hashlib.sha256(b"").hexdigest())
    changed = {
        "labour": CATALOGUE["labour"],
        "sp500": catalogue.Entry(2123, "here", "none", len, test_file),
        "har": catalogue.Entry(2101, "here", "none", len, missing),
        "fi2010": CATALOGUE["fi2010"],
        "synthetic": CATALOGUE["synthetic"],
    }
    for module in (catalogue, datasets):
        monkeypatch.setattr(module, "CATALOGUE", changed)
    monkeypatch.setattr(datasets, "cache_directory", files.cache_directory)
    return changed


def lines(capsys):
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err.splitlines()


def found(capsys):
    """``mgvbp data list`` as {name: the whole row}; rows that go on over several lines are joined."""
    assert main(["data", "list"]) == 0
    rows, name = {}, None
    for line in lines(capsys)[0][1:]:
        first = line.split()[0] if line.strip() else ""
        name = first if first in CATALOGUE else name
        rows[name] = f"{rows.get(name, '')} {' '.join(line.split())}".strip()
    return rows


def test_list_says_where_each_set_is(entries, own, capsys):
    rows = found(capsys)
    assert list(rows) == list(entries)
    assert "2,123" in rows["sp500"]
    assert "not here" in rows["sp500"]
    assert "not here" in rows["fi2010"]
    assert "built in" in rows["synthetic"]
    assert "Mroz (1987)" in rows["labour"]
    fetch_file(entries["sp500"].file)
    assert "cache" in found(capsys)["sp500"]
    (own / "GARCHdata.mat").write_bytes(CONTENT)
    assert "MGVBP_DATA" in found(capsys)["sp500"]


def test_fetch_gets_the_file_and_path_tells_it(entries, cache, capsys):
    assert main(["data", "path", "sp500"]) == 1
    assert lines(capsys) == ([], ["mgvbp: sp500 is not here: mgvbp data fetch sp500"])
    assert main(["data", "fetch", "sp500"]) == 0
    assert lines(capsys) == ([f"sp500: {cache / 'GARCHdata.mat'}"], [])
    assert main(["data", "path", "sp500"]) == 0
    assert lines(capsys) == ([str(cache / "GARCHdata.mat")], [])
    assert main(["data", "path"]) == 0
    assert lines(capsys) == ([str(cache)], [])


def test_path_prefers_the_users_directory(entries, own, capsys):
    fetch_file(entries["sp500"].file)
    (own / "GARCHdata.mat").write_bytes(CONTENT)
    assert main(["data", "path", "sp500"]) == 0
    assert lines(capsys) == ([str(own / "GARCHdata.mat")], [])


def test_fetch_goes_on_after_a_failure_and_reports_it(entries, server, cache, capsys):
    """har has the checksum of nothing: it fails, and sp500 after it is fetched nevertheless."""
    assert main(["data", "fetch", "har", "sp500"]) == 1
    out, err = lines(capsys)
    assert out == [f"sp500: {cache / 'GARCHdata.mat'}"]
    assert len(err) == 1
    assert "HARdata.mat" in err[0]
    assert "wrong checksum" in err[0]


def test_fetch_of_nothing_in_particular_is_all_with_a_file(entries, server, cache, capsys):
    assert main(["data", "fetch"]) == 1
    assert server.requests == ["/GARCHdata.mat", "/HARdata.mat"]


@pytest.mark.parametrize("name", ["labour", "synthetic"])
def test_sets_without_a_file(entries, server, name, capsys):
    assert main(["data", "fetch", name]) == 0
    assert lines(capsys) == ([f"{name}: no file to fetch"], [])
    assert main(["data", "path", name]) == 1
    assert lines(capsys) == ([], [f"mgvbp: {name} has no file"])
    assert server.requests == []


@pytest.mark.parametrize("action", ["fetch", "path"])
def test_fi2010_is_refused_in_one_sentence(entries, action, capsys):
    assert main(["data", action, "fi2010"]) == 1
    out, err = lines(capsys)
    assert out == []
    assert len(err) == 1
    assert "etsin.fairdata.fi" in err[0]


@pytest.mark.parametrize("arguments", [["fetch", "labor"], ["path", "labor"], [], ["list", "labour"]])
def test_wrong_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["data", *arguments])
    assert lines(capsys)[1]
