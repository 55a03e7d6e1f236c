"""The paper's experiments, run on the public API and printed beside the paper's numbers."""
