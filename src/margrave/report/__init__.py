"""A release as one page to read: the promise, what was measured with what noise, and what the model says."""

from margrave.report.page import render, write_report

__all__ = ["render", "write_report"]
