"""Volatility models of arch: begin with `model`; `sample` reads the series, `polytope` keeps its linear constraints."""
