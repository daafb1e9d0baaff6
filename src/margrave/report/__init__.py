"""A release as one page to read: the promise, what was measured with what noise, and what the model says."""

from margrave.report.display import Chart, Page, write_report
from margrave.report.page import render

__all__ = ["Chart", "Page", "render", "write_report"]
