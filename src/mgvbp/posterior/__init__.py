"""What a fit returns, and what can be done with it: marginals, summary, diagnosis, files, ArviZ.

This package may import what describes a distribution (`families`, `problem`, `surfaces`), but nothing that searches
for one. Begin with `posterior`, the record of a fit, which is an `approximation` (the distribution) that can be
`examined` beside its model. `marginal` has the distribution of one parameter on its own scale, `diagnostics` says how
good the approximation is, and `loading` reads what `Posterior.save` wrote.
"""

from mgvbp.posterior.diagnostics import Diagnosis
from mgvbp.posterior.loading import read_posterior as read_posterior
from mgvbp.posterior.marginal import Marginal
from mgvbp.posterior.posterior import Posterior
from mgvbp.posterior.summary import digits as digits
from mgvbp.posterior.summary import table_rows as table_rows
from mgvbp.posterior.trace import TRACE_DTYPES as TRACE_DTYPES
from mgvbp.posterior.trace import Trace

__all__ = ["Diagnosis", "Marginal", "Posterior", "Trace"]
