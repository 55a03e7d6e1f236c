"""Files from which a fit goes on: what they hold, how it is written, and whether they are of the same model.

It may import the loop and `run.evaluation`. Begin with `checkpoint`; `encoding` turns states into JSON and arrays, and
back.
"""
