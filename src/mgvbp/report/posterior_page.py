"""The page of a saved posterior: how it was found, whether it converged, its numbers and its pictures."""

from __future__ import annotations

from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mgvbp import plots
from mgvbp.core import Array, as_path, positive_integer
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.plots import LARGEST_MATRIX
from mgvbp.posterior import Posterior, digits, table_rows
from mgvbp.report.page import Html, code_block, html_page, paragraph, picture, section, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 200
"""Rows of the table of parameters. If there are more parameters, the first and the last ones are shown."""
MOST_MARGINALS = 24
"""Marginal densities on the page, those of the first parameters; each is a drawing, and more make the page slow."""
MOST_IN_PAIRS = 5
"""Parameters whose pairs are on the page, the first ones: the panels can still be read on a phone."""


def write_report(
    posterior: Posterior, path: str | PathLike[str], *, file: str = "posterior.npz", num_draws: int = 500
) -> Path:
    """Write `html_report` to ``path``; returns the path.

    Raises
    ------
    InvalidInputError
        An argument cannot be used, or the file cannot be written.
    """
    page, target = html_report(posterior, file=file, num_draws=num_draws), as_path(path)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def html_report(posterior: Posterior, *, file: str = "posterior.npz", num_draws: int = 500) -> str:
    """A posterior as an HTML page that needs nothing else: no scripts, no links to elsewhere.

    Parameters
    ----------
    posterior : Posterior
    file : str
        The name under which it was saved, for the heading and the code that loads it.
    num_draws : int
        Draws from the posterior that are shown among the pairs of parameters; 0 for none.

    Examples
    --------
    >>> import mgvbp
    >>> posterior = mgvbp.fit(lambda theta: -0.5 * (theta**2).sum(axis=1), dim=2)
    >>> page = html_report(posterior)
    >>> page.startswith("<!doctype html>"), "http" in page
    (True, False)
    """
    if not isinstance(posterior, Posterior):
        raise InvalidTypeError(f"expected a posterior, as mgvbp.fit returns it; got {posterior!r}")
    shown = positive_integer(num_draws, "num_draws", least=0)
    rows = table_rows(posterior)
    return html_page(
        f"Posterior of {posterior.dim:,} parameter{'s' * (posterior.dim > 1)}: {file}",
        [
            section("What was run", table([], run_rows(posterior), words=True)),
            section("Did it converge?", *convergence_words(posterior)),
            section("Parameters", *_numbers(posterior, rows)),
            section("Pictures", *_pictures(posterior, list(rows), shown)),
            section("How to use it", code_block(_code(posterior, file))),
        ],
    )


def run_rows(posterior: Posterior) -> list[tuple[str, str]]:
    """Method, cost and result of the run, as text."""
    se = posterior.lower_bound_se
    error = "" if se is None else f" (standard error {se:.4f})"
    return [
        ("method", f"{posterior.method}, {posterior.estimator} estimator"),
        ("family", f"{posterior.kind}, {posterior.dim:,} parameters"),
        (
            "cost",
            f"{posterior.n_evaluations:,} log-likelihood queries in {len(posterior.trace):,} iterations",
        ),
        ("lower bound", f"{posterior.lower_bound:,.4f} nats{error}"),
        ("stopped since", posterior.stop_reason),
        *((f"tried to refute it: {check.name}", check.found) for check in posterior.checks if check.passed),
    ]


def convergence_words(posterior: Posterior) -> list[Html]:
    """What the certificate says and what it does not say, in plain words, as HTML."""
    tone = "good" if posterior.converged else "doubt"
    notes = [paragraph(note, "note") for note in _incidents(posterior)]
    if posterior.mixture is not None:
        said = (
            f"{'Yes' if posterior.converged else 'No'}: {posterior.stop_reason}. This is the distance to the posterior "
            "itself, measured at draws that no fit has seen. Modes that no start, draw or scout has met stay unseen."
        )
        return [paragraph(said, tone), *notes]
    gap, sd = posterior.gap, posterior.gap_se
    best = f"the best Gaussian with {posterior.family.name} covariance"
    if gap is None:
        distance = f"{posterior.method} has no certificate of its distance to {best}; method='auto' has one."
    elif np.isfinite(gap):
        error = "" if sd is None or not np.isfinite(sd) else f", give or take {sd:.2g}"
        distance = f"Its lower bound is expected to lie {gap:.2g} nats below that of {best}{error}."
    else:
        distance = f"How far it is from {best} is not known."
    if not posterior.converged:
        said = (
            f"No; the run ended early: {posterior.stop_reason}. {distance} Continue with more evaluations, or start "
            "elsewhere, before you rely on the numbers below."
        )
    elif gap is None:
        said = f"As far as its own rule tells: the lower bound no longer improved. {distance}"
    else:
        said = f"Yes. {distance}"
    limits = (
        "This compares Gaussians with each other. Whether a Gaussian is good enough for this posterior is another "
        "question, which needs the model: posterior.diagnose(log_density=...) answers it."
    )
    return [paragraph(said, tone), *notes, paragraph(limits, "note")]


def _incidents(posterior: Posterior) -> list[str]:
    trace = posterior.trace
    dropped, shortened = int(trace.dropped.sum()), int(np.count_nonzero(trace.reductions))
    so = ": the result is conditional on the region where the log-likelihood is finite"
    so = so if trace.dropped_late else ""
    failed = sum(posterior.failures.values())
    return [
        *([f"{dropped:,} draws with non-finite values were left out{so}."] if dropped else []),
        *([f"The step was shortened in {shortened:,} iterations to stay positive definite."] if shortened else []),
        *([f"The evaluation of {failed:,} draws failed twice."] if failed else []),
    ]  # fmt: skip


def _numbers(posterior: Posterior, rows: dict[str, Array]) -> list[Html]:
    lines = [[label, *digits(row)] for label, row in rows.items()]
    if len(lines) > MOST_ROWS:
        half = MOST_ROWS // 2
        lines[half:-half] = [[f"… {len(lines) - 2 * half:,} more …", "", "", "", ""]]
    scale = (
        "as they are constrained" if posterior.parameters is not None else "entries of the unconstrained θ"
    )
    return [
        paragraph(f"Values {scale}, with central 95% intervals.", "note"),
        table(["parameter", "mean", "sd", "2.5%", "97.5%"], lines),
    ]


def _pictures(posterior: Posterior, labels: list[str], num_draws: int) -> list[Html]:
    first, paired = labels[:MOST_MARGINALS], labels[:MOST_IN_PAIRS]
    few = f" of the first {len(first)} parameters" if len(first) < len(labels) else ""
    found = [
        picture([lambda: _bound(posterior)], "bound", "The lower bound over the run; larger is better."),
        picture(
            [partial(_marginal, posterior, label) for label in first],
            "marginals",
            f"Marginal densities{few}.",
        ),
    ]
    if len(paired) > 1:
        dots = posterior.sample(num_draws, rng=0) if num_draws else None
        few = f" of the first {len(paired)} parameters" if len(paired) < len(labels) else ""
        with_dots = f", with {num_draws:,} draws" if num_draws else ""
        caption = f"Regions with 50% and 95% of the probability{with_dots}: pairs{few}."
        found.append(picture([lambda: _pairs(posterior, paired, dots)], "pairs", caption))
    if 1 < posterior.dim <= LARGEST_MATRIX:
        caption = "Correlations of the unconstrained θ."
        found.append(picture([lambda: plots.covariance(posterior)], "correlation", caption))
    return found


# A figure shrinks to the width of a phone. Each is so narrow that its text can still be read there.


def _bound(posterior: Posterior) -> Axes:
    return plots.lower_bound(posterior, ax=plots.private_figure(6.0, 3.0).subplots())


def _marginal(posterior: Posterior, label: str) -> Axes:
    """One panel; the page puts several of them in a row."""
    return plots.marginals(posterior, label, axes=[plots.private_figure(2.2, 1.7).subplots()])[0]


def _pairs(posterior: Posterior, labels: list[str], dots: Array | None) -> Axes:
    k = len(labels)
    side = 1.15 * k + 0.5
    axes = plots.private_figure(side, side).subplots(k, k, squeeze=False)
    first: Axes = plots.corner(posterior, labels, dots, axes=axes)[0, 0]
    return first


def _code(posterior: Posterior, file: str) -> list[str]:
    lines = [
        "import mgvbp",
        f"posterior = mgvbp.load({file!r})",
        "print(posterior.summary())",
        "posterior.sample(1000, rng=0)     # draws of the unconstrained θ",
    ]
    if posterior.parameters is not None:
        name = posterior.parameters.names[0]
        lines += [
            "posterior.draws(1000, rng=0)      # the same by name, as they are constrained",
            f"posterior[{name!r}].quantile([0.05, 0.95])",
        ]
    return [*lines, "mgvbp.fit(log_likelihood_of_new_data, prior=posterior)"]
