"""Fits on the workers of a Dask cluster give the models of the same rows in memory, also when workers are lost."""

import logging
import os
import pickle
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from ridgemark import NystromRidge, open_rows
from ridgemark.errors import RidgemarkError
from ridgemark.passes import dask as passes
from ridgemark.passes import engine
from ridgemark.rows.dask import DaskRows
from tests.helpers import slowly

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
N = 1200
X = RNG.normal(size=(N, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=N)
OPTIONS = {"bandwidth": 2.0, "n_landmarks": 40, "random_state": 0, "selection": "leverage"}


@contextmanager
def cluster(processes=True):
    """Two workers that do not write to the terminal, and a client.

    Workers are processes, or threads of this process, which start sooner; both send each other messages by TCP.
    """
    # A local cluster does not start a worker again that dies twice within the second time.
    limits = {"comm.timeouts.connect": "120s", "deploy.lost-worker-timeout": "600s"}
    with (
        dask.config.set({f"distributed.{name}": limit for name, limit in limits.items()}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp://",
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as workers,
        distributed.Client(workers) as one,
    ):
        yield one


@pytest.fixture(scope="module")
def client():
    with cluster() as one:
        yield one


@pytest.fixture(params=[False, *slowly(True)], ids=["threads", "processes"])
def any_client(request):
    with cluster(request.param) as one:
        yield one


@pytest.fixture
def fragile():
    """A cluster of its own for a test that kills workers."""
    with cluster() as one:
        yield one


@pytest.fixture(scope="module")
def memory():
    return NystromRidge(**OPTIONS).fit(X, Y)


def chunked(values, rows=200):
    return da.from_array(values, chunks=(rows, *values.shape[1:]))


def same(memory, model):
    return np.array_equal(memory.landmark_indices_, model.landmark_indices_) and (
        np.abs(memory.predict(X) - model.predict(X)).max() <= 1e-10 * Y.std()
    )


def test_a_fit_on_a_cluster_equals_that_in_memory_and_needs_no_cluster_later(any_client, memory):
    rows, targets = chunked(X, 400).persist(), chunked(Y, 400).persist()
    model = NystromRidge(**OPTIONS).fit(rows, targets)
    assert same(memory, pickle.loads(pickle.dumps(model)))
    assert np.abs(memory.predict(X) - model.predict(rows).compute()).max() <= 1e-10 * Y.std()


@pytest.mark.slow
def test_a_folder_of_parquet_files_is_read_by_the_workers(client, tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    for k in range(2):
        pq.write_table(pa.table({"a": X[k::2, 0], "b": X[k::2, 1], "y": Y[k::2]}), tmp_path / f"{k}.parquet")
    rows = open_rows(tmp_path, target="y")
    assert isinstance(rows, DaskRows)
    assert rows.feature_names == ("a", "b")
    assert np.array_equal(rows.take([0, N // 2]).targets[:, 0], Y[:2])


@pytest.mark.slow
def test_two_fits_at_once_share_a_client(client, memory):
    found = {}

    def fit(name):
        found[name] = NystromRidge(**OPTIONS).fit(chunked(X), chunked(Y))

    threads = [threading.Thread(target=fit, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same(memory, found["a"])
    assert same(memory, found["b"])


@pytest.mark.slow
def test_a_worker_may_hold_no_rows_and_a_partition_may_be_empty(client):
    kept = (np.arange(N) // 200 != 1) & (X[:, 0] > -1)  # Dask does not know how many rows are left
    worker = next(iter(pids(client)))
    rows, targets = (
        client.persist(chunked(values)[chunked(kept)], workers=[worker], allow_other_workers=False) for values in (X, Y)
    )
    assert np.isnan(rows.shape[0])
    assert same(NystromRidge(**OPTIONS).fit(X[kept], Y[kept]), NystromRidge(**OPTIONS).fit(rows, targets))


@pytest.mark.slow
def test_partitions_may_be_ready_in_any_order(client, memory):
    def late(block, block_info=None):
        time.sleep(0.02 * (6 - block_info[0]["chunk-location"][0]))  # the first partition is the last
        return block

    for rows in (chunked(X).map_blocks(late, meta=X[:0]), chunked(X).map_blocks(late, meta=X[:0]).persist()):
        assert same(memory, NystromRidge(**OPTIONS).fit(rows, chunked(Y)))


@pytest.mark.slow
def test_workers_compute_on_their_device(client, memory, monkeypatch):
    pytest.importorskip("torch")
    from ridgemark.backends.torch import TorchBackend

    monkeypatch.setattr("ridgemark.estimators.computing.device_backend", lambda device: TorchBackend("cpu"))
    model = NystromRidge(**OPTIONS).fit(chunked(X), chunked(Y))
    assert all(client.run(lambda: "torch" in sys.modules).values())
    assert same(memory, model)


def pids(client):
    return client.run(os.getpid)


def counted(block, folder=None, deadly=-1):
    """Return the block; the process dies when blocks are computed for the time numbered `deadly`."""
    if block.shape[0] > 1:  # not Dask's own trial
        name = f"{time.time_ns()}-{os.getpid()}"
        (Path(folder) / name).touch()
        if len(list(Path(folder).iterdir())) == deadly:
            os._exit(1)
    return block


def counting(folder, deadly=-1):
    folder.mkdir()
    return chunked(X, 400).map_blocks(counted, folder=str(folder), deadly=deadly, meta=X[:0])


@pytest.mark.slow
def test_a_worker_that_dies_in_any_pass_changes_nothing(fragile, memory, tmp_path):
    targets, parts = chunked(Y, 400), 3

    def run(rows):
        model = NystromRidge(**OPTIONS).fit(rows, targets)
        return model, model.certify(rows, targets).bound, model.predict(rows).compute()

    *_, bound, predicted = run(counting(tmp_path / "none"))
    n_passes = len(list((tmp_path / "none").iterdir())) // parts
    assert n_passes >= 10  # opening, hashes, rows, sums, scores, leave-one-out, and the audit's
    for k in range(0, n_passes, max(1, n_passes // 8)):
        fragile.wait_for_workers(2, timeout=120)
        model, again, values = run(counting(tmp_path / f"pass {k}", parts * k + 2))
        assert same(memory, model)
        assert np.isclose(again, bound, rtol=1e-6)
        assert np.abs(values - predicted).max() <= 1e-10 * Y.std()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_lost_between_passes_are_replaced(fragile, memory, workers):
    rows, targets, seen = chunked(X).persist(), chunked(Y).persist(), []

    def kill(what, done, total):
        seen.append(what)
        if len(seen) == 3:
            for pid in list(pids(fragile).values())[:workers]:
                os.kill(pid, signal.SIGKILL)

    assert same(memory, NystromRidge(**OPTIONS, progress=kill).fit(rows, targets))
    assert len(seen) > 3


@pytest.mark.slow
def test_rows_that_cannot_be_computed_again_are_named(fragile):
    held = fragile.scatter([X[:600], X[600:]])
    parts = [da.from_delayed(dask.delayed(one), shape=(600, 3), dtype=float) for one in held]
    rows, targets = da.concatenate(parts), chunked(Y, 600)

    def kill(what, done, total):
        for pid in pids(fragile).values():
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(RidgemarkError, match="no way to compute them again"):
        NystromRidge(**OPTIONS, progress=kill).fit(rows, targets)


@pytest.mark.slow
def test_a_cluster_may_shrink_to_one_worker(fragile, memory):
    rows, targets, seen = chunked(X).persist(), chunked(Y).persist(), []

    def shrink(what, done, total):
        seen.append(what)
        if len(seen) == 3:
            fragile.retire_workers([next(iter(pids(fragile)))])

    assert same(memory, NystromRidge(**OPTIONS, progress=shrink).fit(rows, targets))
    assert len(pids(fragile)) == 1


def received(dask_worker):
    return sum(one["total"] for one in dask_worker.transfer_incoming_log)


@pytest.mark.slow
def test_workers_send_each_other_what_the_cost_model_says(fragile, monkeypatch):
    expected = []  # with two workers: one copy of the task, and one sum

    def total(source, work, along):
        result = passes.total(source, work, along)
        expected.append(len(cloudpickle.dumps(work)) + len(pickle.dumps(result)))
        return result

    def each_block(source, work, along):
        expected.append(len(cloudpickle.dumps(work)))
        return passes.each_block(source, work, along)

    monkeypatch.setattr(engine, "total", total)
    monkeypatch.setattr(engine, "each_block", each_block)
    rows, targets = chunked(X).persist(), chunked(Y).persist()
    NystromRidge(**{**OPTIONS, "n_landmarks": 300}).fit(rows, targets)
    assert sum(fragile.run(received).values()) <= 1.5 * sum(expected)
