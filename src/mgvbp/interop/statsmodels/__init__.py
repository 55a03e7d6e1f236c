"""Models of statsmodels: begin with `model`; `kinds` reads each kind of model, `transformed` its constraints.

`predict` lets statsmodels' own machinery predict, over draws of the parameters.
"""
