"""The numbers that decide how a surface is fitted and how far it is believed.

``python benchmarks/constants.py`` halves and doubles each number and fits the zoo's small targets again;
docs/constants.md has the table.
"""

# --- what a quadratic misses, by polynomials ------------------------------------------------------------

ROOM = 0.65
"""Most columns per effective draw that polynomials of higher degree and the quadratic may have together."""
GRADIENT_ROOM = 0.35
"""The same with gradients: most coefficients per equation, where each effective draw gives d equations."""
MOST_CUBIC, MOST_COLUMNS = 1000, 600
"""Columns of polynomials up to the third degree, and of all degrees, beyond which least squares take longer than the
draws are worth. With 1,000 of all degrees eight schools take twice the time, and as many draws."""
MOST_WORK = 3e8
"""Most multiplications of a fit to gradients: they take one or two tenths of a second."""
PRECISE = 0.05
"""Polynomials of the next degree are not tried once the noise is this share of what a certificate needs, or small
enough for the next leap. At 1 the search for the best Gaussian of 0.5 θ − exp θ never ends: its certificate needs much
less noise than surfaces with few degrees have."""
HIGHEST_DEGREE = 6
"""Highest degree of the polynomials."""

# --- what a quadratic misses, by kriging ----------------------------------------------------------------

KRIGE_BELOW = 20.0
"""A gap of more than this many times the noise is precise enough for the next leap: neither kriging nor, with
gradients, polynomials are tried then."""
KRIGE_NOISE = 3.0
"""Nats of noise above which kriging is not tried: what a quadratic misses is then so large that it seldom helps."""
KRIGE_DRAWS = 6000
"""Draws above which kriging takes too long."""
DENSE_DRAWS = 1200
"""Draws above which kriging takes the largest terms of its kernel only (`henderson`)."""
LEAST_TERMS = 600
"""How many terms these are, at least: all of degree three are among them in up to 13 dimensions."""
TINY_RHO = 1e-6
"""Smaller eigenvalues of a metric count as this: their terms are never among the largest."""
KRIGE_PLENTY = 100
"""Draws per coefficient above which polynomials do as well as kriging."""
KRIGE_SHARE = 3.0
"""Draws per effective draw above which kriging is not tried: too many draws lie where q has little mass, and these
would shape the smooth function."""
ADAPT_ABOVE = 3.0
"""Draws per coefficient above which kriging may learn which directions bend."""
ADAPT_REST = 0.3
"""Kriging learns which directions bend only if a quadratic misses more nats than this (standard deviation): otherwise
that is not worth the time."""
ASKED_AGAIN = 1.5
"""Where polynomials did better than kriging, it is tried again with so many times the draws. So is the search for
directions that bend, where it found none, and a degree of polynomials that was of no use. If both are tried every time,
a search of a hidden Markov model with twelve parameters takes half as long again."""
ADAPTATIONS = 2
"""How many times the metric is adapted, each time to the fit with the metric before."""
RHO = 0.1
"""The metric's eigenvalue ρ before it is adapted: the variance of a term falls by this factor with each degree."""
LARGEST_RHO = 0.45
"""Largest eigenvalue of a metric: with a larger one the kernel would consist mostly of terms of high degree."""
FLATTEST = 0.02
"""Smallest share of the cubic part that a direction is believed to have, relative to an equal share."""

# --- what is believed -----------------------------------------------------------------------------------

CAUTION = 1.5
"""Factor on the errors that kriging states: its draws are not independent of what they predict."""
BELIEF = 0.4
"""A certificate by kriging states at least this share of the noise of least squares, since kinks mislead kriging."""
GRADIENT_BELIEF = 0.25
"""A fit of polynomials to gradients states at least this share of the noise of the linear regression."""
FEWEST_BATCHES = 4
"""Batches of draws with exact second moments from which on their noise is taken from their sums; with fewer it is known
to half of itself or worse, and taken from the pairs, which have more."""
MOST_CROSSED = 400
"""Draws, evenly spaced among all, from which the standard deviation of the noise is estimated; the noise takes all.
With 400 it is known to a few per cent, and its cost no longer grows with the square of the draws."""
POOR_RESIDUAL = 3.0
"""A surface is not poor if its residuals have a standard deviation below this many nats (or √d, if that is more)."""
JITTER = 5.0
"""Residuals below this many times the noise in the values do not make a surface poor: three values of one draw, which
show the noise, may show too little of it."""
POOR_SHARE = 0.8
"""A surface with larger residuals is poor if it predicts less than this share of the variance."""
POOR_NATS = 50.0
"""It is poor, too, if the standard deviation of its residuals is more than this many times d/2 + 1 nats."""
EVEN_LEVERAGE = 0.05
"""Smallest value that is used for 1 − leverage. A draw of leverage 1 determines its own fit, so that its residual,
which is divided by 1 − leverage, shows nothing."""
SLIGHT_LEVERAGE = 0.03
"""Mean leverage of the d equations of a draw below which its residuals are divided by 1 − that mean; above it the d
equations are solved, which takes most of the time of a fit. The noise becomes two per cent smaller at most; at 0.1
five to ten."""
NEGLIGIBLE = 1e-9
"""Draws whose weight is smaller than this share of an equal weight are left out."""
ROUND_OFF = 1e-12
"""Residuals of smaller variance, in squared nats, are round-off: the target is quadratic."""
