"""PyMC models: begin with `model`; `graphs` turns PyMC's graphs into functions of draws."""
