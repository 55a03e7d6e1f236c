"""What stands below the figures: the paper's label, what is to be seen, and the tables that have the numbers."""

from __future__ import annotations

from typing import NamedTuple


class Caption(NamedTuple):
    """The caption of a figure."""

    label: str
    """The paper's label of the figure that it reproduces; empty for one that the paper has not."""
    text: str
    tables: tuple[str, ...] = ()
    """Labels of the tables with its numbers."""


MARGINALS = (
    "Marginal densities of ψ (top) and of the parameters (bottom): MCMC in grey, the methods as lines."
)
CAPTIONS = {
    "slr-manifold": Caption(
        "fig:manifold",
        "The manifold of positive definite 2 × 2 precisions, drawn as a cone: (p₁₁, p₂₂, p₁₂) with p₁₁p₂₂ > p₁₂². "
        "Left: a tangent vector at a point leaves the cone if it is followed along a line. Middle: the "
        "exponential map (dotted) and the retraction (solid) of the same vector stay inside, and begin alike. "
        "Right: the vector, carried to the new point.",
    ),
    "slr-path": Caption(
        "fig:SLR_low",
        "Paths of MGVB and its revisited version to the known posterior (red circle), and their divergence from "
        "it. The two differ by the factor 2 in the step of Σ.",
        ("slr", "slr_speed"),
    ),
    "labour-bound": Caption(
        "fig:labour_LBmargins",
        "Labour. Left: the lower bound over the iterations, with its exact optimum and the iterations t* of the "
        "results as vertical lines. Centre and right: marginals of the intercept and of the first coefficient, "
        "with MCMC in grey and maximum likelihood in red. Bottom: the diagonal family, whose runs had not "
        "converged.",
        ("logistic_perf", "logistic_mu", "logistic_var"),
    ),
    "labour-speed": Caption(
        "",
        "Labour. Nats below the exact optimum over the iterations, from one start, with the same draws; "
        "grey: 0.05 nats.",
        ("labour_speed", "labour_gap"),
    ),
    "labour-metrics": Caption(
        "fig:Labour_Perf",
        "Labour. The measures over the iterations, on training rows (top) and test rows (bottom); vertical lines: t*.",
        ("logistic_perf",),
    ),
    "labour-learning": Caption(
        "fig:Labour_PostMeanCov",
        "Labour. Means, variances and covariances of MGVBP over the iterations: dotted lines are of the diagonal "
        "family, dashed ones of the estimator on h. The horizontal lines are the exact optima.",
        ("logistic_mu", "logistic_var", "logistic_cov"),
    ),
    "volatility-dynamics": Caption(
        "",
        "Lower bound and losses over the iterations for the eight models; vertical lines: t* of each run.",
        ("vol_est", "vol_est_EGARCH", "iterations"),
    ),
    "volatility-marginals-garch-101": Caption("fig:garch", f"GARCH(1,0,1). {MARGINALS}", ("vol_est",)),
    "volatility-marginals-gjr-111": Caption("fig:gjr", f"GJR(1,1,1). {MARGINALS}", ("vol_est",)),
    "volatility-marginals-figarch-1d1": Caption(
        "fig:figarch", f"FIGARCH(1,d,1). {MARGINALS}", ("vol_est_EGARCH",)
    ),
    "har-dynamics": Caption(
        "fig:regression",
        "Lower bound, MSE and QLIKE over the iterations for HAR (top), GARCH(1,1) and GJR(1,1); vertical lines: "
        "t* of each run, in its colour and dashes.",
        ("regression", "vol_est_FIGARCH_HAR", "iterations"),
    ),
    "istanbul-lower-bound": Caption(
        "fig:istanbul_elbo",
        "Istanbul. The lower bound of the four structures (left), and its last nats with the exact optimum of "
        "each (right).",
        ("istanbul_perf", "istanbul_spread"),
    ),
    "istanbul-race": Caption(
        "",
        "Istanbul. Nats below the optimum on common draws with equal steps; where a line is missing or ends, the run "
        "broke down.",
        ("istanbul_race",),
    ),
    "nondiff-bounds": Caption(
        "", "Nats behind auto along the runs, with the same draws for all.", ("non_diff_race",)
    ),
    "nondiff-forms": Caption(
        "",
        "Two numbers of the paper (star) among those of simulated data sets, by form and rows.",
        ("non_diff_forms",),
    ),
    "lob-learning": Caption(
        "fig:tabl",
        "TABL. The lower bound and the measures over passes through the data, on training windows (top) and test "
        "windows (bottom). Circles are the results.",
        ("tabl", "tabl_passes"),
    ),
    "lob-reliability": Caption(
        "",
        "TABL. How often the likeliest class is the true one, against its probability; test windows.",
        ("tabl",),
    ),
    "runtime-growth": Caption(
        "", "Milliseconds an iteration by the number of variational parameters.", ("runtime_npar", "growth")
    ),
}
"""By experiment and name of the figure."""
