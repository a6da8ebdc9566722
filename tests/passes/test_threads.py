"""Blocks are read while others are processed; results do not depend on it, and all threads end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgemark import NystromRidge, load
from ridgemark.errors import DataError
from ridgemark.passes import RowPasses, ThreadExecutor, task
from ridgemark.passes.task import Clock
from ridgemark.rows import ArrayRows, BaseRows, Block, RowSource, open_rows
from tests.helpers import FunctionTask

N_BLOCKS, BLOCK_ROWS = 8, 5
X = np.random.default_rng(0).normal(size=(N_BLOCKS * BLOCK_ROWS, 3))


class SlowRows(BaseRows):
    """Rows whose blocks take some time to read; one block may raise an error."""

    reads_ahead = True

    def __init__(self, seconds: float = 0.0, bad: int | None = None, ahead: bool = True) -> None:
        (self.n_rows, self.n_features), self.n_targets = X.shape, 1
        self.dtype, self.has_weights = X.dtype, False
        self.feature_names = self.target_names = None
        self.seconds, self.bad, self.reads_ahead = seconds, bad, ahead
        self.readers: set[str] = set()
        self.began = [threading.Event() for _ in range(N_BLOCKS)]

    def _blocks(self, block_rows: int, first: int, stop: int) -> Iterator[Block]:
        for start in range(first, stop, block_rows):
            self.readers.add(threading.current_thread().name)
            self.began[start // BLOCK_ROWS].set()
            time.sleep(self.seconds)
            if start == self.bad:
                msg = f"row {start} is bad"
                raise DataError(msg)
            rows = slice(start, start + block_rows)
            yield Block(start, X[rows], X[rows, :1])

    def _take(self, indices: np.ndarray) -> Block:
        return Block(0, X[indices], X[indices, :1], taken=indices)


@pytest.fixture(params=[1, 2, 3])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(task, "worker_threads", lambda: request.param)
    return int(request.param)


@pytest.fixture(autouse=True)
def all_threads_end() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def passes(source: RowSource, block_rows: int = BLOCK_ROWS) -> RowPasses:
    made = RowPasses(source)
    made.block_rows = lambda width: block_rows  # type: ignore[method-assign]
    return made


def in_order(source: BaseRows) -> Iterator[tuple[Block, int]]:
    work = ThreadExecutor().in_order
    return work(lambda block, _: block.start, source.blocks(BLOCK_ROWS), N_BLOCKS, Clock(), ahead=True)


def sleeping(seconds: float) -> Callable[[Block], float]:
    def fn(block: Block) -> float:
        time.sleep(seconds)
        return float(block.features.sum())

    return fn


def test_reading_overlaps_computing(workers: int) -> None:
    source = SlowRows()

    def until_the_next_is_read(block: Block) -> float:
        number = block.start // BLOCK_ROWS
        assert number == N_BLOCKS - 1 or source.began[number + 1].wait(30)
        return 1.0

    assert passes(source).reduce(FunctionTask(until_the_next_is_read)) == N_BLOCKS
    assert all(name.startswith("ridgemark-reader") for name in source.readers)


def test_results_have_the_same_bits_and_order_with_and_without_reading_ahead(workers: int) -> None:
    def fn(block: Block) -> Any:
        time.sleep(0.002 * (block.start % 3))
        return block.features @ np.arange(3.0)

    expected = X @ np.arange(3.0)
    for source in (SlowRows(), SlowRows(0.001), SlowRows(ahead=False), ArrayRows(X)):
        assert np.array_equal(passes(source).map(FunctionTask(fn)), expected)
        listed = passes(source).reduce(FunctionTask(lambda block: [block.start]))
        assert listed == list(range(0, len(X), BLOCK_ROWS))


@pytest.mark.parametrize("bad", [0, 15, 35])
def test_an_error_of_the_reader_is_raised_unchanged_in_block_order(workers: int, bad: int) -> None:
    seen: list[int] = []

    def fn(block: Block) -> int:
        seen.append(block.start)
        return 1

    with pytest.raises(DataError, match=f"row {bad} is bad"):
        passes(SlowRows(bad=bad)).reduce(FunctionTask(fn))
    assert set(seen) <= set(range(0, bad, BLOCK_ROWS))  # later blocks are not processed


def test_an_error_of_the_work_ends_the_reading(workers: int) -> None:
    source = SlowRows()
    starts: list[int] = []

    def fn(block: Block) -> int:
        starts.append(block.start)
        if block.start == 10:
            msg = "no"
            raise ZeroDivisionError(msg)
        return 1

    with pytest.raises(ZeroDivisionError, match="no"):
        passes(source).reduce(FunctionTask(fn))
    assert max(starts) <= 10 + (workers + 1) * BLOCK_ROWS


def test_an_interrupted_reader_ends_its_thread(workers: int) -> None:
    results = in_order(SlowRows(0.001))
    assert next(results)[1] == 0
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        for _ in in_order(SlowRows(0.001)):
            raise KeyboardInterrupt


def test_one_block_and_rows_in_memory_need_no_reader() -> None:
    source = SlowRows()
    passes(source, len(X)).reduce(FunctionTask(lambda block: 1))
    assert source.readers == {threading.current_thread().name}
    assert not ArrayRows(X, X[:, 0]).reads_ahead


def test_files_and_memory_maps_are_read_ahead(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    assert open_rows(tmp_path / "x.npy", target=0).reads_ahead  # type: ignore[attr-defined]
    assert open_rows(X, target=np.load(tmp_path / "x.npy", mmap_mode="r")[:, 0]).reads_ahead  # type: ignore[attr-defined]
    assert open_rows(tmp_path / "x.csv").reads_ahead  # type: ignore[attr-defined]


def share(source: Any, seconds: float) -> float:
    made = passes(source)
    made.reduce(FunctionTask(sleeping(seconds)))
    return made.cost.waiting_share


def holds_with_longer_pauses(claim: Callable[[float], bool]) -> bool:
    """Whether a claim about times holds for one of several pauses, longer ones for a busy machine."""
    return any(claim(pause) for pause in (0.01, 0.03, 0.1, 0.3))


def test_the_waiting_share_is_large_for_a_slow_source_and_small_for_an_array(workers: int) -> None:
    assert holds_with_longer_pauses(lambda pause: 0.7 < share(SlowRows(pause), 0.0) <= 1.0)
    assert holds_with_longer_pauses(lambda pause: share(ArrayRows(X, X[:, 0]), pause) < 0.2)
    assert RowPasses(SlowRows()).cost.waiting_share == 0.0


def test_the_waiting_share_counts_idle_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    # Reading a block takes as long as processing it: one worker is nearly always busy, two are busy half of the time.
    for workers, expected in ((1, 0.1), (2, 0.55)):
        monkeypatch.setattr(task, "worker_threads", lambda workers=workers: workers)
        assert holds_with_longer_pauses(lambda pause, e=expected: abs(share(SlowRows(pause), pause) - e) < 0.2)


def test_passes_in_two_threads_measure_their_own_times() -> None:
    def apart(pause: float) -> bool:
        shares: dict[str, float] = {}

        def run(name: str, source: Any, seconds: float) -> None:
            shares[name] = share(source, seconds)

        threads = [
            threading.Thread(target=run, args=("slow", SlowRows(pause), 0.0)),
            threading.Thread(target=run, args=("quick", ArrayRows(X, X[:, 0]), pause)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return shares["slow"] > 0.7 and shares["quick"] < 0.2

    assert holds_with_longer_pauses(apart)


def test_a_fit_reports_its_waiting_share_and_a_saved_model_does_not(tmp_path: Path) -> None:
    model: Any = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=5, random_state=0)  # type: ignore[no-untyped-call]
    assert 0.0 < model.fit(SlowRows(0.01)).waiting_share_ <= 1.0
    assert model.fit(X, X[:, 0]).waiting_share_ < 1.0
    loaded: Any = load(model.save(tmp_path / "model"))
    assert not hasattr(loaded, "waiting_share_")
