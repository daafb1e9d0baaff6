"""Benchmarks of margrave: papers' experiments, other libraries, speed. See README.md."""
