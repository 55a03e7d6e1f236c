"""What tries to refute a result before it is certified: questions, answers, and what the answers say.

It may import `surfaces` and lower layers, not the state of a search; what follows from a verdict is decided in
`searches.court`. Begin with `trial`, the questions. `hearings` asks further ones, `sentence` judges, `witnesses` draws
in suspect tails, `rivals` looks for better Gaussians elsewhere, and `chords` compares values with gradients.
"""
