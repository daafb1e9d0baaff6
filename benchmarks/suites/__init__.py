"""Suites: data and the specifics of a paper, one file each."""
