"""`python -m mgvbp` is the command `mgvbp`."""

from mgvbp.cli import main

raise SystemExit(main())
