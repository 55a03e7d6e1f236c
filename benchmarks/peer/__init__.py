"""The parts of ``benchmarks/peers.py``: the problems, one file a peer, and how their results are judged and shown."""
