"""Predictions averaged over a posterior: how sure they are, how good, and how well calibrated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp, xlogy

from mgvbp.core import Array, as_floats, positive_integer
from mgvbp.errors import InvalidInputError
from mgvbp.families import LOG_2PI
from mgvbp.networks.data import Labels, as_array, checked_labels, refuse_nan
from mgvbp.plots.canvas import BAND, GREY, LINE, finished, one_axes, private_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Scores:
    """How good class probabilities were.

    Precision, recall and F1 are macro averages: means over the classes that occur or were predicted, 0 for a class
    where it is 0/0, as scikit-learn has them with ``zero_division=0``.
    """

    accuracy: float
    """The share of rows whose likeliest class was the true one."""
    precision: float
    recall: float
    f1: float
    log_predictive_density: float
    """The mean over the rows of the log probability of the true class."""
    ece: float
    """Expected calibration error with ten bins; see `Reliability`."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """The rows by the probability of their likeliest class, in bins of equal width."""

    edges: Array
    """The ends of the bins, (bins + 1,). A bin has its upper edge, not its lower one (Guo et al. 2017, section 2)."""
    count: NDArray[np.int64]
    confidence: Array
    """The mean probability of the likeliest class in each bin, (bins,); NaN where there is no row."""
    accuracy: Array
    """How often that class was the true one."""

    @property
    def ece(self) -> float:
        """``Σ_b count_b/N |accuracy_b − confidence_b|``: eq. (3) of Guo et al. (2017)."""
        off = np.abs(self.accuracy - self.confidence)
        return float(np.nansum(off * self.count) / self.count.sum())


@dataclass(frozen=True, eq=False)
class Prediction:
    """Class probabilities of N rows, averaged over draws of the weights.

    Parameters
    ----------
    log_probabilities : ndarray of shape (N, K)
        ``log mean_s P(c | x, θ_s)``.
    expected_entropy : ndarray of shape (N,)
        ``mean_s`` of the entropies of ``P(· | x, θ_s)``: the doubt that knowing the weights would leave.

    Examples
    --------
    >>> outputs = np.log([[[0.9, 0.1]], [[0.5, 0.5]]])  # two draws, one row, two classes
    >>> prediction = Prediction.from_outputs([outputs])
    >>> prediction.probabilities, prediction.labels
    (array([[0.7, 0.3]]), array([0], dtype=int32))
    >>> prediction.entropy.round(4), prediction.mutual_information.round(4)
    (array([0.6109]), array([0.1017]))
    >>> prediction.score([0]).log_predictive_density  # log 0.7
    -0.3566749439387324
    """

    log_probabilities: Array
    expected_entropy: Array

    @classmethod
    def from_outputs(cls, outputs: Iterable[Array]) -> Prediction:
        """Average over the draws of outputs (S, n, K), which come a block of rows at a time."""
        averages, entropies = [], []
        for block in outputs:
            logs = log_softmax(block.astype(np.float64), axis=2)
            averages.append(logsumexp(logs, axis=0) - np.log(len(logs)))
            entropies.append(-(np.exp(logs) * logs).sum(axis=2).mean(axis=0))
        return cls(np.concatenate(averages), np.concatenate(entropies))

    @property
    def probabilities(self) -> Array:
        """The probability of each class in each row, (N, K)."""
        return np.exp(self.log_probabilities)

    @property
    def labels(self) -> Labels:
        """The likeliest class of each row, (N,)."""
        return np.asarray(self.log_probabilities.argmax(axis=1), np.int32)

    @property
    def entropy(self) -> Array:
        """The entropy of the class of each row, (N,), in nats: all doubt there is."""
        return np.asarray(-xlogy(self.probabilities, self.probabilities).sum(axis=1))

    @property
    def mutual_information(self) -> Array:
        """What the class of each row would tell of the weights, (N,), in nats: the doubt that more data would end."""
        return np.maximum(self.entropy - self.expected_entropy, 0.0)

    def score(self, y: ArrayLike) -> Scores:
        """Scores of the predictions where the true labels (N,) were ``y``."""
        truth, labels = self._truth(y), self.labels
        classes = np.arange(self.log_probabilities.shape[1])[:, None]
        is_true, is_predicted = truth == classes, labels == classes
        hits = (is_true & is_predicted).sum(axis=1)
        occurred, predicted = is_true.sum(axis=1), is_predicted.sum(axis=1)
        known = occurred + predicted > 0
        precision, recall = hits / np.maximum(predicted, 1), hits / np.maximum(occurred, 1)
        # the harmonic mean of precision and recall
        f1 = 2.0 * hits / np.maximum(occurred + predicted, 1)
        return Scores(
            accuracy=float(np.mean(truth == labels)),
            precision=float(precision[known].mean()),
            recall=float(recall[known].mean()),
            f1=float(f1[known].mean()),
            log_predictive_density=float(self.log_probabilities[np.arange(len(truth)), truth].mean()),
            ece=self.reliability(truth).ece,
        )

    def reliability(self, y: ArrayLike, bins: int = 10) -> Reliability:
        """How often the likeliest class was the true one ``y`` (N,), against how probable it was said to be."""
        truth = self._truth(y)
        number = positive_integer(bins, "bins")
        confidence = np.exp(self.log_probabilities.max(axis=1))
        bin_of = np.clip(np.ceil(confidence * number).astype(np.intp) - 1, 0, number - 1)
        count = np.bincount(bin_of, minlength=number)
        sums = [np.bincount(bin_of, of, number) for of in (confidence, truth == self.labels)]
        with np.errstate(invalid="ignore"):
            means = [total / count for total in sums]
        return Reliability(np.linspace(0.0, 1.0, number + 1), count, *means)

    def _truth(self, y: ArrayLike) -> Labels:
        refuse_nan(self.log_probabilities, 0, "probabilities")
        return checked_labels(y, *self.log_probabilities.shape)

    def plot_reliability(self, y: ArrayLike, ax: Axes | None = None, bins: int = 10) -> Axes:
        """Accuracy against confidence, with 95% Wilson intervals, over the share of rows in each bin.

        Predictions are calibrated where the points lie on the diagonal.
        """
        from scipy.stats import binomtest  # slow to import

        table = self.reliability(y, bins)
        ax = one_axes(ax, 4.5, 4.5, private_figure)
        some = table.count > 0
        confidence, accuracy, count = table.confidence[some], table.accuracy[some], table.count[some]
        hits = np.rint(accuracy * count).astype(int)
        intervals = [binomtest(k, n).proportion_ci(method="wilson") for k, n in zip(hits, count, strict=True)]
        low, high = np.transpose(intervals)
        ax.stairs(table.count / table.count.sum(), table.edges, fill=True, color=BAND, label="share of rows")
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.8)
        ax.vlines(confidence, low, high, color=LINE, linewidth=1.0)
        ax.plot(confidence, accuracy, color=LINE, linewidth=0.6, marker="o", markersize=4.0, label="accuracy")
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", xlabel="probability of the likeliest class")
        title = f"Reliability: expected calibration error {table.ece:.3f}"
        return finished(ax, title, loc="upper left", frameon=False)


@dataclass(frozen=True)
class NormalScores:
    """How far predictions were off."""

    rmse: float
    """The root of the mean squared error of the predictive mean."""
    log_predictive_density: float
    """The mean over the rows of ``log mean_s p(y | x, θ_s)``."""


@dataclass(frozen=True, eq=False)
class NormalPrediction:
    """The predictive distribution of each row: a mixture of normal distributions, one of each draw.

    Parameters
    ----------
    means : ndarray of shape (S, N)
    sigma : ndarray of shape (S,)

    Examples
    --------
    >>> prediction = NormalPrediction(means=np.array([[1.0], [3.0]]), sigma=np.array([0.6, 0.6]))
    >>> prediction.mean, prediction.std, prediction.std_of_mean
    (array([2.]), array([1.16619038]), array([1.]))
    """

    means: Array
    sigma: Array

    @property
    def mean(self) -> Array:
        """The predictive mean of each row, (N,)."""
        return np.asarray(self.means.mean(axis=0))

    @property
    def std(self) -> Array:
        """The standard deviation of a new response, (N,): noise and doubt about the weights."""
        return np.sqrt(self.std_of_mean**2 + np.mean(self.sigma**2))

    @property
    def std_of_mean(self) -> Array:
        """The standard deviation of the network's output over the draws, (N,): doubt about the weights alone."""
        return np.asarray(self.means.std(axis=0))

    def score(self, y: ArrayLike) -> NormalScores:
        """Scores of the predictions where the responses (N,) were ``y``."""
        truth = as_floats(as_array(y, "y"), "y")
        if truth.shape != self.means.shape[1:]:
            raise InvalidInputError(f"y has shape {truth.shape}; expected {self.means.shape[1:]}")
        refuse_nan(self.means, 1, "means")
        errors = (truth - self.means) / self.sigma[:, None]
        densities = -0.5 * errors**2 - np.log(self.sigma)[:, None] - 0.5 * LOG_2PI
        return NormalScores(
            rmse=float(np.sqrt(np.mean((truth - self.mean) ** 2))),
            log_predictive_density=float(np.mean(logsumexp(densities, axis=0)) - np.log(len(self.means))),
        )
