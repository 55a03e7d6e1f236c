"""One BLAS thread for the tests: their matrices are small, and pytest-xdist has the cores."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
