"""Workloads: the marginals the synthetic table should preserve."""

from margrave.workload.workload import Workload

__all__ = ["Workload"]
