"""A posterior as one HTML page that needs nothing else."""

from mgvbp.report.posterior_page import html_report, write_report

__all__ = ["html_report", "write_report"]
