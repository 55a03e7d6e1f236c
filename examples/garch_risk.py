"""Volatility and value at risk of the S&P 500: what may be lost on the next day.

Returns in per cent, on the last 1,500 days up to the end of 2018, from the package arch.

Run:  pip install 'mgvbp[volatility]' && python examples/garch_risk.py [picture.png]
"""

import sys

import mgvbp
from mgvbp import volatility

try:
    returns = volatility.default_returns()[-1500:]
except mgvbp.MissingDependencyError as error:
    sys.exit(str(error))

result = volatility.GARCH(1, 1, dist="t").fit(returns)
print(result.summary(), "\n")

low, high = result.volatility_band(0.9)
today = result.conditional_volatility.iloc[-1]
print(f"volatility on the last day: {today:.2f}% (90% interval {low.iloc[-1]:.2f} to {high.iloc[-1]:.2f})")
print(f"value at risk, 1%, next day: {result.var(0.01):.2f}%")
print(f"expected shortfall, 1%, next day: {result.expected_shortfall(0.01):.2f}%")
print(f"value at risk, 1%, ten days: {result.forecast(horizon=10).var(0.01):.1f}%")

if len(sys.argv) > 1:
    mgvbp.plots.volatility_band(result).figure.savefig(sys.argv[1])
