"""The numbers that decide how a surface is fitted and how far it is believed.

``python benchmarks/constants.py`` halves and doubles each of them and prints what becomes of the fits of the zoo's
small targets (docs/constants.md has the table).
"""

# --- what a quadratic misses, by polynomials ------------------------------------------------------------

ROOM = 0.65
"""Columns per effective draw up to which polynomials of higher degree are fitted alongside the quadratic."""
GRADIENT_ROOM = 0.35
"""The same with gradients: coefficients per equation, of which a draw has one a parameter."""
MOST_COLUMNS = 1000
"""Columns beyond which least squares take longer than the draws are worth."""
MOST_WORK = 3e8
"""Multiplications that a fit to gradients may take: a tenth of a second or two."""
HIGHEST_DEGREE = 6
"""Degree of the polynomials, at most."""

# --- what a quadratic misses, by kriging ----------------------------------------------------------------

KRIGE_BELOW = 20.0
"""Gap, in units of the noise, above which the next leap does not need less noise: neither kriging nor, with gradients,
polynomials are tried."""
KRIGE_NOISE = 3.0
"""Nats of noise above which what a quadratic misses is no small correction, and kriging seldom helps."""
KRIGE_DRAWS = 2500
"""Draws above which kriging takes too long."""
KRIGE_PLENTY = 40
"""Draws a coefficient above which polynomials do as well."""
KRIGE_SHARE = 3.0
"""Draws per effective draw above which too many lie where q does not go: they would shape the function there."""
ADAPT_ABOVE = 3.0
"""Draws a coefficient from which kriging may learn which directions bend ..."""
ADAPT_REST = 0.3
"""... and nats that a quadratic must miss (standard deviation) for that to be worth its time."""
ADAPTATIONS = 2
"""Times that a metric is adapted to what the last one has shown."""
RHO = 0.1
"""By how much the size of a function falls from one degree to the next, before anything is learnt."""
LARGEST_RHO = 0.45
"""Eigenvalue of a metric, at most: with more, the kernel is mostly of high degree."""
FLATTEST = 0.02
"""Share of the cubic part in a direction, relative to an equal share, that is believed to be as small as that."""

# --- what is believed -----------------------------------------------------------------------------------

CAUTION = 1.5
"""Factor on the errors that kriging states: its draws are not independent of what they predict."""
BELIEF = 0.4
"""Share of the noise of least squares below which a certificate does not believe kriging: kinks mislead it."""
GRADIENT_BELIEF = 0.25
"""Share of the noise of linear regression below which that of a polynomial is not believed."""
POOR_RESIDUAL = 3.0
"""Nats (standard deviation; √d if that is more) that a surface may miss without being poor."""
POOR_SHARE = 0.8
"""Share of the variance that a surface which misses more must predict ..."""
POOR_NATS = 50.0
"""... and nats, in units of d/2 + 1, that it may miss then."""
EVEN_LEVERAGE = 0.05
"""Share of a draw's residual, at least, that is taken to be its own: of a draw that determines its own fit nothing is
left to see."""
NEGLIGIBLE = 1e-9
"""Draws with a smaller share of the weight, relative to an equal share, are left out."""
ROUND_OFF = 1e-12
"""Variance of residuals, in squared nats, of a target that is quadratic."""
