"""Log-likelihoods written in JAX or PyTorch, in float64, with their gradients.

It may import `problem` and lower layers. Begin with `jax_function` or `torch_function`; `autodiff` is what they have in
common, and `compiled` is a JAX function for any number of draws.
"""
