"""A limit on time by an alarm signal: it interrupts, it comes again, and it leaves nothing behind."""

import signal
import threading
import time
from contextlib import suppress

import pytest

from mgvbp.run.deadline import Deadline, deadline

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


def test_a_deadline_is_no_exception_that_a_function_would_catch():
    def patient():
        try:
            time.sleep(60.0)
        except Exception:
            return "caught"

    with pytest.raises(Deadline), deadline(0.01):
        patient()


def test_a_deadline_that_was_caught_is_over_all_the_same():
    with pytest.raises(Deadline), deadline(0.01), suppress(BaseException):
        time.sleep(60.0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_deadline_that_was_caught_comes_again(monkeypatch):
    monkeypatch.setattr("mgvbp.run.deadline.AGAIN", 0.01)

    def stubborn():
        with suppress(BaseException):
            time.sleep(60.0)
        time.sleep(60.0)

    with pytest.raises(Deadline), deadline(0.01):
        stubborn()


def test_a_deadline_lets_exceptions_pass():
    with pytest.raises(ZeroDivisionError), deadline(60.0):
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


def test_no_deadline():
    with deadline(None):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
