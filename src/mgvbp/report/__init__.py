"""A posterior as one HTML page that needs nothing else.

The package imports from others only what these show at their top. Begin with `posterior_page`, which has the sections
in their order. `page` has the parts of any page, figures among them.
"""

# the paper's experiments make their page of the same parts
from mgvbp.report.page import Html as Html
from mgvbp.report.page import html_page as html_page
from mgvbp.report.page import paragraph as paragraph
from mgvbp.report.page import section as section
from mgvbp.report.page import table as table
from mgvbp.report.page import text as text
from mgvbp.report.posterior_page import html_report, write_report

__all__ = ["html_report", "write_report"]
