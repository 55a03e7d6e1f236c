"""The command as a whole: what it does with its own output."""

import subprocess
import sys


def test_a_reader_that_leaves_is_no_error():
    command = [sys.executable, "-m", "mgvbp", "reproduce", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
