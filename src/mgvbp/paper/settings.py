"""The paper's table of data sets and hyper-parameters, beside what its data hold and what its authors ran."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from mgvbp import datasets, networks
from mgvbp.paper import har, lob, volatility
from mgvbp.paper.common import PRIOR_VARIANCE, SYMBOLS
from mgvbp.paper.istanbul import runs as istanbul
from mgvbp.paper.labour import runs as labour
from mgvbp.paper.nondiff import runs as nondiff
from mgvbp.paper.spec import Cells, Experiment, Outcome, Outcomes, Row, Table, reference, rows_of

DAYS = "1,698 days to train and 425 to test make the 2,123; 1,689 is a slip of two digits"
REASONS = {
    **{f"S&P 500: {model}": DAYS for model in volatility.MODELS},
    "S&P 500: FIGARCH(0,1,1)": f"{DAYS}; the model is FIGARCH(0,d,1)",
    "S&P 500: FIGARCH(1,1,2)": f"{DAYS}; the model is FIGARCH(1,d,1)",
    "S&P 500: EGARCH(1,1,2)": "the paper has no results for this model, nor have its authors' files",
    "S&P 500: HAR (Linear regr.)": "a month of lags leaves 2,101 days, from 5-Feb-2014 on",
    "LOB: Neural network": "the data are not free; 256,461 and 150,418 windows do not add up to 557,297",
    "Synthetic: Non-diff. model": "the printed log-likelihoods and errors fit 2,000 and 500 rows, and no others",
}
MODELS = {"FIGARCH(0,1,1)": "FIGARCH(0,d,1)", "FIGARCH(1,1,2)": "FIGARCH(1,d,1)"}
"""Names of models in the paper's table, and in its other tables."""
RUN: dict[str, tuple[dict[str, Any], int, float, float]] = {
    "Labour data": (labour.AUTHORS, labour.PANELS["authors"].num_draws, labour.INITIAL_VARIANCE, PRIOR_VARIANCE),
    **{
        row: (
            {"step_size": volatility.RUNS["MGVBP"][1], **volatility.SHARED, **volatility.BUDGETS[kind]},
            volatility.NUM_DRAWS,
            volatility.INITIAL_VARIANCE,
            PRIOR_VARIANCE,
        )
        for kind, row in volatility.PRINTED_ROWS.items()
    },
    "HAR": (
        {**har.SETTINGS, **har.OWN["MGVBP"]}, har.OPTIONS["num_draws"], har.OPTIONS["initial_variance"], PRIOR_VARIANCE,
    ),
    "Istanbul data": (
        istanbul.AS_RUN, istanbul.DRAWS["as run"]["num_draws"], istanbul.INITIAL_VARIANCE, PRIOR_VARIANCE,
    ),
    "LOB data": (lob.PAPER, lob.settings(lob.FULL)["MGVBP h"].num_draws, lob.INITIAL_VARIANCE, PRIOR_VARIANCE),
    "Non-diff. model": (nondiff.SETTINGS, nondiff.NUM_DRAWS, nondiff.INITIAL_VARIANCE, 1.0),
}  # fmt: skip
"""What was run for the paper's numbers, by row: settings of MGVBP, draws, and the variances of start and prior."""
SAVED = "the authors' saved runs have other settings than the paper prints"
NOTE = (
    "Our line has what was run for the main tables: the settings saved with the authors' results, where there are any. "
    "The printed settings are run beside them, in tables of their own. w is 31 where the authors' code averages one "
    "value more than the paper says; P beyond t_max is never reached; a dash under t': the step does not decay."
)


def counted(row: str, seed: int) -> Outcome:
    """The sizes of a data set as it is, and the number of variational parameters of its model, d + d²."""
    data, model = row.split(": ")
    if data == "S&P 500" and model in volatility.MODELS | MODELS:
        sample, d = datasets.load("sp500"), volatility.MODELS[MODELS.get(model, model)].parameters.dim
    elif data == "S&P 500" and model.startswith("HAR"):
        sample, d = datasets.load("har"), har.target("full").prior.dim
    elif data == "Istanbul":
        sample, d = datasets.load("istanbul"), len(istanbul.COORDINATES)
    elif data == "Labour":
        found = labour.problem().data
        return sizes(len(found.y_train), len(found.y_test), labour.problem().prior.dim)
    elif data == "Synthetic":
        return sizes(nondiff.TRAIN, nondiff.TEST, nondiff.DIM)
    else:
        d = networks.tabl().dim
        return Outcome({"variational parameters": float(d + d * d)})
    return sizes(len(sample.train), len(sample.test), d)


def sizes(train: int, test: int, d: int) -> Outcome:
    """The numbers of a row."""
    shown = {"variational parameters": d + d * d, "samples": train + test, "train": train, "test": test}
    return Outcome({**{k: float(v) for k, v in shown.items()}, "train %": 100.0 * train / (train + test)})


def cells(quick: bool) -> Cells:
    """A cell for each data set and model but one, for which the paper has no results."""
    rows = reference("settings")["paper"]["datasets"]
    return {row: partial(counted, row) for row in rows if not row.endswith("EGARCH(1,1,2)")}


def tables(outcomes: Outcomes) -> Iterator[Table]:
    """Both panels of table hyperparameters."""
    known = reference("settings")
    printed = known["paper"]["datasets"]
    columns = dict.fromkeys(("variational parameters", "samples", "train", "test"), 0.0) | {"train %": 0.5}
    rows = rows_of(outcomes, list(printed), printed, reasons=REASONS)
    missing = "S&P 500: EGARCH(1,1,2)"
    if rows:
        rows.insert(7, Row(missing, {}, printed[missing], reason=REASONS[missing]))
    rows = [
        Row(f"{r.name}, {known['period'].get(r.name, '')}".rstrip(", "), r.ours, r.paper, reason=r.reason)
        for r in rows
    ]
    note = (
        "Tolerance: none; of the share, rounding. The Istanbul data end in 2011, where the paper says 2022."
    )
    yield Table("hyperparameters", "Data sets and models", columns, rows, decimals=0, note=note)
    if not outcomes:
        return
    rows = []
    for name, (settings, draws, start, prior) in RUN.items():
        ours = {symbol: settings.get(key) for key, symbol in SYMBOLS.items()}
        ours["clip"] = settings.get("clip_natural_gradient") or settings.get("clip_gradient")
        ours |= {"S": draws, "Σ₁": start, "μ₀": 0.0, "Σ₀": prior}
        paper = known["paper"]["hyperparameters"][name]
        rows.append(Row(f"{name}, start {known['start'][name]}", ours, paper, reason=SAVED))
    columns = dict.fromkeys(known["paper"]["hyperparameters"]["Labour data"], 0.0)
    yield Table("hyperparameters", "Hyper-parameters of MGVBP", columns, rows, note=NOTE)


EXPERIMENT = Experiment("settings", cells, tables, data=("labour", "sp500", "har", "istanbul"))
