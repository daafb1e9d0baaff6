"""Count all triples of a Parquet file, in memory, batch by batch or by an engine: the process that `rows` measures."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core import library as lib
from benchmarks.core.process import stage_seconds, tree_clock

SIZES = (9, 16, 7, 15, 6, 5, 2, 32, 2, 20, 16, 10, 8, 12, 4)
COLUMNS = tuple(f"c{i:02}" for i in range(len(SIZES)))
TRIPLES = tuple(combinations(COLUMNS, 3))
CHECKED = TRIPLES[:: len(TRIPLES) // 20][:20]


def with_spark(source: str, tasks: int) -> Any:
    """Return the file as a DataFrame of Spark in a local session of so many tasks at once."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    session = SparkSession.builder.master(f"local[{tasks}]").config("spark.ui.enabled", "false")
    return session.getOrCreate().read.parquet(source)


def with_dask(source: str) -> Any:
    """Return the file as a DataFrame of Dask, whose partitions are its row groups."""
    import dask
    import dask.dataframe

    dask.config.set(num_workers=2)
    return dask.dataframe.read_parquet(source, split_row_groups=True)


def with_ray(source: str) -> Any:
    """Return the file as a Dataset of Ray with two workers."""
    import ray
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False)
    return ray.data.read_parquet(source)


OPENERS: dict[str, Callable[[str], Any]] = {
    "spark-1": lambda source: with_spark(source, 1),
    "spark-2": lambda source: with_spark(source, 2),
    "dask": with_dask,
    "ray": with_ray,
}


def main(source: str, way: str, output: str) -> None:
    """Read a table, count, and write the seconds and the counts that are checked."""
    schema = lib.Schema.coded(dict(zip(COLUMNS, SIZES, strict=True)))
    persons = {"person": "who"} if way == "persons" else {"ignore": ("who",)}
    lib.MemoryTable.max_code_bytes = 1 << 60 if way == "memory" else 0
    opened = OPENERS[way](source) if way in OPENERS else source
    start = tree_clock(os.getpid())
    table: lib.Table = lib.read_table(opened, replace(schema, **persons))
    table = table.bounded(3) if way == "persons" else table
    counts = table.count(TRIPLES)
    end = tree_clock(os.getpid())
    used = stage_seconds(scans=(start, end)) | {"total_cpu_s": end[1]}
    used |= {"driver_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}
    np.savez(Path(output), **used, **{"-".join(c): counts[c] for c in CHECKED})


if __name__ == "__main__":
    main(*sys.argv[1:])
