"""Write the summary of a folder of `mgvbp reproduce` into the page docs/reproduction.md, below its last heading.

python docs/reproduction_page.py mgvbp-reproduce
"""

import sys
from pathlib import Path

PAGE = Path(__file__).with_name("reproduction.md")
HEADING = "## Every table of the last run\n"


def main(folder: str) -> None:
    """Replace what stands below the heading."""
    head, heading, _ = PAGE.read_text(encoding="utf-8").partition(HEADING)
    summary = (Path(folder) / "summary.md").read_text(encoding="utf-8")
    PAGE.write_text(head + heading + "\n" + summary, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
