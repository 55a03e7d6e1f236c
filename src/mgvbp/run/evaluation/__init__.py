"""Who evaluates draws: this process or workers, with timeouts and second attempts.

It may import `problem`, `posterior` and lower layers. Begin with `evaluation`, which decides between this process and
the `pool`; `workers` is what runs elsewhere, `attempts` what may come of an evaluation, `cost` what it takes.
"""
