"""A limit on time by an alarm signal: it interrupts, it comes again, and it leaves nothing behind."""

import signal
import threading
import time
from contextlib import suppress

import pytest

from mgvbp.run.evaluation.deadline import Deadline, deadline

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no alarms on Windows")


def test_a_deadline_interrupts_a_block_and_clears_up():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Deadline), deadline(0.01):
        time.sleep(60.0)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with deadline(60.0):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0.0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_deadline_that_was_caught_is_over_all_the_same(monkeypatch):
    """``except Exception`` does not catch it. After ``except:`` it comes again, or at the end of the block."""
    monkeypatch.setattr("mgvbp.run.evaluation.deadline.AGAIN", 0.01)

    def stubborn(kind, naps):
        for _ in range(naps):
            with suppress(kind):
                time.sleep(60.0)

    for kind, naps in ((Exception, 1), (BaseException, 1), (BaseException, 2)):
        with pytest.raises(Deadline), deadline(0.01):
            stubborn(kind, naps)
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_deadline_lets_exceptions_pass():
    for seconds in (60.0, None):
        with pytest.raises(ZeroDivisionError), deadline(seconds):
            1 / 0
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("delay", [30.0, 0.02])
def test_the_alarm_of_somebody_else_still_goes_off(delay):
    rung = threading.Event()
    before = signal.signal(signal.SIGALRM, lambda *_: rung.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        with deadline(60.0):
            time.sleep(0.05)
        if delay == 30.0:
            assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] < delay
        else:
            assert rung.wait(30.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_a_deadline_in_another_thread_does_nothing():
    done = []

    def block():
        with deadline(0.001):
            time.sleep(0.05)
        done.append(True)

    thread = threading.Thread(target=block)
    thread.start()
    thread.join(60.0)
    assert done == [True]
