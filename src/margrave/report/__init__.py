"""A release as one page to read: what it is good for, its numbers and charts, and the promise behind them."""

from margrave.report.display import Chart, Page, write_report
from margrave.report.heading import Heading
from margrave.report.page import render

__all__ = ["Chart", "Heading", "Page", "render", "write_report"]
