"""A fit of generated rows on a Dask cluster of local processes: time, memory of all processes, and bytes sent.

Rows are made by the workers whenever a pass needs them, so that no process ever holds them all. The bytes that workers
received from each other, by their own logs, stand beside the cost model of docs/dask.md: with W workers, a pass sends
its task to W - 1 of them and adds W - 1 sums to the last.

Run: python benchmarks/cluster.py [--rows 20_000_000] [--features 20] [--landmarks 500] [--workers 2]
     [--chunk 100_000] [--ridge 1e-6] [--persist]; or --simulate for the reduction tree of 100 workers.
"""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from ridgemark import NystromRidge
from ridgemark.passes import dask as passes
from ridgemark.passes import engine


def rows_of_block(seed: int, n_rows: int, n_features: int) -> np.ndarray:
    """Return features and, last, the target of one block."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features + 1))
    rows[:, -1] = np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.1 * rows[:, -1]
    return rows


def generated(n_rows: int, n_features: int, chunk: int) -> da.Array:
    """Return lazy rows; every pass makes them again."""
    sizes = [min(chunk, n_rows - first) for first in range(0, n_rows, chunk)]

    def make(block_info: Any = None) -> np.ndarray:
        place = block_info[None]
        return rows_of_block(place["chunk-location"][0], place["chunk-shape"][0], n_features)

    return da.map_blocks(make, chunks=(tuple(sizes), (n_features + 1,)), dtype=float, meta=np.empty((0, 0)))


class Memory(threading.Thread):
    """The largest memory, proportional set size, of this process and those it started."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.own, self.ended = 0, 0, False

    def run(self) -> None:
        """Look twice a second."""
        while not self.ended:
            sizes = {pid: used(pid) for pid in family(os.getpid())}
            self.peak, self.own = max(self.peak, sum(sizes.values())), max(self.own, sizes[os.getpid()])
            time.sleep(0.5)


def family(pid: int) -> list[int]:
    """Return a process and all that it started."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return [pid]
    return [pid, *(one for child in children for one in family(child))]


def used(pid: int) -> int:
    """Return the proportional set size of a process, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


class Model:
    """Bytes by the cost model, from the sizes of tasks and sums; and what passes return to the client."""

    def __init__(self, workers: int) -> None:
        self.workers, self.between, self.to_client, self.from_client, self.passes = workers, 0, 0, 0, 0
        self.total, self.each_block = passes.total, passes.each_block
        engine.total, engine.each_block = self.sum, self.map  # type: ignore[assignment]

    def sum(self, source: Any, work: Any, along: Any) -> Any:
        """Count a pass that adds up."""
        result = self.total(source, work, along)
        self.count(work, along, size := len(pickle.dumps(result)))
        self.between += (self.workers - 1) * size
        return result

    def map(self, source: Any, work: Any, along: Any) -> Any:
        """Count a pass that returns results of all blocks."""
        results = list(self.each_block(source, work, along))
        self.count(work, along, len(pickle.dumps([one for *_, one in results])))
        yield from results

    def count(self, work: Any, along: Any, returned: int) -> None:
        """Count a task and what it returns."""
        task = len(cloudpickle.dumps(work))
        self.passes += 1
        self.between += (self.workers - 1) * task
        self.from_client += task + (0 if callable(along) else sum(values.nbytes for values in along))
        self.to_client += returned


def received(dask_worker: Any) -> int:
    """Return the bytes that a worker received from others."""
    return sum(int(one["total"]) for one in dask_worker.transfer_incoming_log)


def simulated(workers: int, partitions: int, landmarks: int) -> None:
    """Print what the reduction tree sends, of partitions held by workers at random."""
    rng = np.random.default_rng(0)
    held = rng.integers(0, workers, partitions)
    sums = [int(worker) for worker in np.unique(held)]
    sent, levels = 0, 0
    while len(sums) > 1:
        groups = [sums[k : k + 4] for k in range(0, len(sums), 4)]
        sent += sum(len(group) - 1 for group in groups)
        sums, levels = [group[0] for group in groups], levels + 1
    each = 8 * landmarks**2
    print(
        f"{workers} workers, {partitions:,} partitions, p = {landmarks:,}: {sent} sums of {each / 1e6:.0f} MB are sent"
    )
    print(
        f"are sent in {levels} levels, {sent * each / 1e9:.2f} GB in all; the longest path takes {3 * levels} transfers"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 20_000_000), ("features", 20), ("landmarks", 500), ("workers", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--chunk", type=int, default=100_000)
    parser.add_argument("--ridge", type=float, default=1e-6)
    parser.add_argument("--budget", type=int, default=2**30)
    parser.add_argument("--persist", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    asked = parser.parse_args()
    if asked.simulate:
        simulated(100, 10_000, asked.landmarks)
        return
    with (
        LocalCluster(
            n_workers=asked.workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
        ) as cluster,
        Client(cluster) as client,
    ):
        rows = generated(asked.rows, asked.features, asked.chunk)
        rows = rows.persist() if asked.persist else rows
        memory, model, begin = Memory(), Model(asked.workers), time.perf_counter()
        memory.start()
        fit = NystromRidge(
            "gaussian", bandwidth=4.5, ridge=asked.ridge, n_landmarks=asked.landmarks, random_state=0,
            selection="leverage", memory_budget=asked.budget,
        ).fit(rows[:, :-1], rows[:, -1])  # fmt: skip
        seconds = time.perf_counter() - begin
        memory.ended = True
        between = sum(client.run(received).values())
    test = rows_of_block(-1 % 2**32, 10_000, asked.features)
    print(f"{asked.rows:,} x {asked.features} rows, p = {asked.landmarks}, {asked.workers} workers: {seconds:.0f} s")
    print(f"passes {model.passes + 1}; R^2 of new rows {fit.score(test[:, :-1], test[:, -1]):.4f}")
    print(f"memory of all processes {memory.peak / 1e9:.2f} GB, of the client {memory.own / 1e9:.2f} GB")
    print(f"between workers {between / 1e6:.1f} MB, by the model {model.between / 1e6:.1f} MB")
    print(f"from the client {model.from_client / 1e6:.1f} MB, to the client {model.to_client / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
