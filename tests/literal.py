"""The paper's formulas as they are printed, in θ-space: the oracle of the tests.

`inv`, `sqrtm` and sums over draws; nothing here is fast or careful. Each function carries the LaTeX label of
its formula. Where the paper is wrong, its correction in the errata (C1 to C16) is used and named. P is the
precision Σ⁻¹; n_mu is Σ∇_μ and n_P is −∇_Σ, which eq:natgrad_mu_llh and eq:natgrad_S_llh estimate.
"""

import mpmath
import numpy as np
from numpy.linalg import inv, norm, slogdet
from scipy.linalg import expm, sqrtm


def symmetric(A):  # below eq:transport
    return (A + A.T) / 2


# --- geometry ------------------------------------------------------------------------------------------


def retraction(P, xi):  # eq:retraction_general, eq:retr
    return symmetric(P + xi + xi @ inv(P) @ xi / 2)


def diagonal_retraction(p, xi):  # "Isotropic prior and diagonal Gaussian posterior"; σ² in the last term: C3
    sigma2 = 1 / p
    return p + xi + xi * sigma2 * xi / 2


def transport(P1, P2, xi):  # eq:vectransport_general, eq:transport; the root is real: C11
    E = sqrtm(P2 @ inv(P1)).real
    return symmetric(E @ xi @ E.T)


def exponential(P, xi):  # Exp_P(ξ) of the metric Tr(P⁻¹ a P⁻¹ b)
    R = sqrtm(P).real
    return symmetric(R @ expm(inv(R) @ xi @ inv(R)) @ R)


def parallel_transport(P, xi, m):  # of m along the geodesic that leaves P towards ξ
    R = sqrtm(P).real
    E = R @ expm(inv(R) @ xi @ inv(R) / 2) @ inv(R)
    return symmetric(E @ m @ E.T)


# --- gradients -----------------------------------------------------------------------------------------


def log_normal(theta, mu, P):
    r = theta - mu
    return np.array([-x @ P @ x / 2 for x in r]) + slogdet(P)[1] / 2 - len(mu) * np.log(2 * np.pi) / 2


def h_function(theta, log_lik, mu, P, mu0, P0):  # h_ζ(θ) = log[p(θ) p(y|θ) / q(θ)]
    return log_normal(theta, mu0, P0) + log_lik - log_normal(theta, mu, P)


def lower_bound(theta, log_lik, mu, P, mu0, P0):  # eq:MC_LB; minus log q also in Algorithm 2: C4
    return sum(h_function(theta, log_lik, mu, P, mu0, P0)) / len(theta)


def natgrad_mu(theta, f, mu, c):  # eq:natgrad_mu_llh
    return c + sum((x - mu) * fs for x, fs in zip(theta, f, strict=True)) / len(f)


def natgrad_S(theta, f, mu, P, C):  # eq:natgrad_S_llh; equals −∇_Σ, half of eq:5: C7
    nu = [P @ (x - mu) for x in theta]
    return C + sum((P - np.outer(v, v)) * fs for v, fs in zip(nu, f, strict=True)) / (2 * len(f))


def natural_gradients(case, theta, log_lik, mu, P, mu0, P0):
    if case == "h":  # eq:estim_general
        f, c, C = h_function(theta, log_lik, mu, P, mu0, P0), 0, 0
    else:  # eq:estim_gaussian
        f, c, C = log_lik, -inv(P) @ P0 @ (mu - mu0), -P / 2 + P0 / 2
    return natgrad_mu(theta, f, mu, c), natgrad_S(theta, f, mu, P, C)


# --- control variates, in the frame P = L Lᵀ, ε = Lᵀ(θ − μ) --------------------------------------------


def score_coordinates(eps):
    """The score in the frame by coordinate, (S, d) and (S, d, d), with E[z²] of each; eq:MC_mu, −eq:MC_S."""
    S, d = eps.shape
    z_G, second = np.empty((S, d, d)), np.empty((d, d))
    for i in range(d):
        for j in range(d):
            z_G[:, i, j] = ((i == j) - eps[:, i] * eps[:, j]) / 2
            second[i, j] = 1 / 2 if i == j else 1 / 4
    return (eps, np.ones(d)), (z_G, second)


def optimal_constant(
    z, f, second
):  # eq:c_star: Cov(z f, z) = E[z² f]; its denominator Var(z) = E[z²] is known
    mean = sum(f) / len(f)
    return mean + sum(z**2 * (f - mean)) / len(f) / second


def controlled_score(z, f, c):  # the estimator above eq:c_star
    return sum(z * (f - c)) / len(f)


def elementwise(function, z, f, third):
    """``function`` of every coordinate of z (S, ...) by itself; ``third`` has one value a coordinate."""
    out = np.empty(z.shape[1:])
    for k in np.ndindex(out.shape):
        out[k] = function(z[(slice(None), *k)], f, third[k])
    return out


def controlled_gradients(eps, f, control):
    """(g, G) in the frame with the constants ``control``, and the constants for the next iteration."""
    (z_g, second_g), (z_G, second_G) = score_coordinates(eps)
    c_g, c_G = control
    g, G = elementwise(controlled_score, z_g, f, c_g), elementwise(controlled_score, z_G, f, c_G)
    after = elementwise(optimal_constant, z_g, f, second_g), elementwise(optimal_constant, z_G, f, second_G)
    return g, G, after


# --- the step ------------------------------------------------------------------------------------------


def learning_rate(beta, t_prime, t):  # "Adaptive learning rate"
    return min(beta, beta * t_prime / t)


def clip(limit, a, b):  # "Gradient clipping", of the stacked vector (a, vec b): errata D
    size = norm(np.concatenate([a, b.ravel()]))
    return (a * limit / size, b * limit / size) if size > limit else (a, b)


def momentum(omega, old, new):  # eq:mom_mu, eq:mom_iS with the ω that the algorithms drop: C5
    return new if old is None else omega * old + (1 - omega) * new


def clipped_gradients(P, n_mu, n_P, rho, limit):
    """(∇_μ, ρ∇_Σ), clipped."""
    return clip(limit, P @ n_mu, -rho * n_P)


# A step takes the mean, P, the two gradients, the two (transported) momenta and β, ω, ρ, the two limits.


def mgvbp(mu, P, n_mu, n_P, m_mu, m_P, beta, omega, rho, limit, natural_limit):  # alg:MGVBP_hfunc
    grad_mu, grad_S = clipped_gradients(P, n_mu, n_P, rho, limit)
    natural_mu, natural_P = clip(natural_limit, inv(P) @ grad_mu, -grad_S)
    m_mu, m_P = momentum(omega, m_mu, natural_mu), momentum(omega, m_P, natural_P)
    P_new = retraction(P, beta * m_P)  # eq:updates_MGVBP_S
    return mu + beta * m_mu, P_new, m_mu, transport(P, P_new, m_P)  # eq:updates_MGVBP_mu


def mgvb(mu, P, n_mu, n_P, m_mu, m_S, beta, omega, rho, limit, natural_limit):  # eq:tran_updates
    S = inv(P)
    grad_mu, grad_S = clipped_gradients(P, n_mu, n_P, rho, limit)
    natural_mu, natural_S = clip(natural_limit, S @ grad_mu, S @ grad_S @ S)  # eq:grad_S_tran
    m_mu, m_S = momentum(omega, m_mu, natural_mu), momentum(omega, m_S, natural_S)
    S_new = retraction(S, beta * m_S)
    return mu + beta * m_mu, inv(S_new), m_mu, transport(S, S_new, m_S)


def qbvi(
    mu, P, n_mu, n_P, m_mu, m_P, beta, omega, rho, limit, natural_limit
):  # natural parameters: eq:5, ρ = 2
    grad_mu, grad_S = clipped_gradients(P, n_mu, n_P, rho, limit)
    natural_mu, natural_P = clip(natural_limit, inv(P) @ grad_mu, -grad_S)
    m_mu, m_P = momentum(omega, m_mu, P @ natural_mu), momentum(omega, m_P, natural_P)
    P_new = P + beta * m_P
    return mu + beta * inv(P_new) @ m_mu, P_new, m_mu, m_P


def geodesic(mu, P, n_mu, n_P, m_mu, m_P, beta, omega, rho, limit, natural_limit):
    grad_mu, grad_S = clipped_gradients(P, n_mu, n_P, rho, limit)
    natural_mu, natural_P = clip(natural_limit, inv(P) @ grad_mu, -grad_S)
    m_mu, m_P = momentum(omega, m_mu, natural_mu), momentum(omega, m_P, natural_P)
    P_new = exponential(P, beta * m_P)
    return mu + beta * m_mu, P_new, m_mu, parallel_transport(P, beta * m_P, m_P)


# --- one step with 60 digits, for ill-conditioned states -----------------------------------------------

mp = mpmath.mp.clone()
mp.dps = 60


def exact(A):
    """A NumPy array as an mpmath matrix, without rounding."""
    return mp.matrix(A.tolist())


def exact_error(A, B):
    """``‖A − B‖ / ‖B‖`` (Frobenius)."""
    return float(mp.norm(A - B, 2) / mp.norm(B, 2))


def exact_retraction(P, xi):  # eq:retr
    return P + xi + xi * P**-1 * xi / 2


def exact_transport(P1, P2, xi):  # eq:transport
    E = mp.sqrtm(P2 * P1**-1).apply(mp.re)
    return E * xi * E.T


def exact_exponential(P, xi):
    return P * mp.expm(P**-1 * xi)  # = P^½ exp(P^-½ ξ P^-½) P^½


def exact_mgvbp(P, xi_P, m_P):
    P_new = exact_retraction(P, xi_P)
    return P_new, exact_transport(P, P_new, m_P)


def exact_mgvb(P, xi_P, m_P):
    S = P**-1
    S_new = exact_retraction(S, -S * xi_P * S)
    m_S = exact_transport(S, S_new, -S * m_P * S)
    return S_new**-1, -(S_new**-1) * m_S * S_new**-1


def exact_qbvi(P, xi_P, m_P):
    return P + xi_P, m_P


def exact_geodesic(P, xi_P, m_P):
    P_new = exact_exponential(P, xi_P)
    return P_new, exact_transport(P, P_new, m_P)
