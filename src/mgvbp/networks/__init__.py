"""Neural networks as log-likelihoods: named weights, gradients, per-example gradients, predictions.

It sees of other packages what these show at their top; JAX is imported when a network is made. Begin with `base`, a
log-likelihood over named weights, and `ready`, which has two; `prediction` averages over draws of the weights.
"""

from mgvbp.networks.data import NetworkLikelihood
from mgvbp.networks.likelihoods import Likelihood, Normal, Softmax, normal, softmax
from mgvbp.networks.network import Network
from mgvbp.networks.prediction import NormalPrediction, Prediction
from mgvbp.networks.ready import dense, tabl
from mgvbp.networks.torch_module import TorchNetwork, from_torch

__all__ = [
    "Likelihood",
    "Network",
    "NetworkLikelihood",
    "Normal",
    "NormalPrediction",
    "Prediction",
    "Softmax",
    "TorchNetwork",
    "dense",
    "from_torch",
    "normal",
    "softmax",
    "tabl",
]
