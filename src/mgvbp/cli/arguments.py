"""Numbers as words of a command line; what is none of them ends the command with its usage."""

from __future__ import annotations

import argparse


def integers(text: str) -> tuple[int, ...]:
    """Such as 1,1."""
    if not all(part.isdecimal() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not integers with commas between, such as 1,1")
    return tuple(map(int, text.split(",")))


def count(text: str) -> int:
    """1 or more."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def probabilities(text: str) -> tuple[float, ...]:
    """Such as 0.01,0.05; each below one half."""
    try:
        levels = tuple(map(float, text.split(",")))
    except ValueError:
        levels = ()
    if not levels or not all(0.0 < level < 0.5 for level in levels):
        raise argparse.ArgumentTypeError(f"{text!r} is not numbers between 0 and 0.5 with commas between")
    return levels


def seed(text: str) -> int:
    """0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)


def processes(text: str) -> int:
    """1 or more, or -1 for as many as there are cores."""
    if text != "-1" and not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of processes nor -1")
    return int(text)
