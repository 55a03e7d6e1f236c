"""Neural networks as log-likelihoods: named weights, gradients, per-example gradients, predictions."""

from mgvbp.networks.dense import dense
from mgvbp.networks.likelihoods import Likelihood, Normal, Softmax, normal, softmax
from mgvbp.networks.network import Network
from mgvbp.networks.normal_prediction import NormalPrediction
from mgvbp.networks.on_data import NetworkLikelihood
from mgvbp.networks.prediction import Prediction
from mgvbp.networks.tabl import tabl
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
