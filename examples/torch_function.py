"""A PyTorch function as the log-likelihood: logistic regression, all draws in one matrix product.

Run:  pip install torch mgvbp && python examples/torch_function.py
"""

import numpy as np
import torch

import mgvbp

generator = torch.Generator().manual_seed(0)
X = torch.randn(300, 3, generator=generator, dtype=torch.float64)
truth = torch.tensor([0.5, -1.0, 0.3], dtype=torch.float64)
y = torch.bernoulli(torch.sigmoid(X @ truth), generator=generator)


@torch.no_grad()
def log_likelihood(theta: np.ndarray) -> torch.Tensor:
    """Of all draws, (S, 3) -> (S,)."""
    logits = torch.tensor(theta) @ X.T
    return torch.distributions.Bernoulli(logits=logits).log_prob(y).sum(dim=1)


posterior = mgvbp.fit(log_likelihood, mgvbp.Gaussian(variance=5.0, dim=3))
print(posterior.summary())
