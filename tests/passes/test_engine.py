"""Tasks give the same results for all block sizes and numbers of threads, and their cost is counted."""

from typing import Any, ClassVar

import cloudpickle
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ridgemark.backends.threads import worker_threads
from ridgemark.passes import Cost, RowPasses, Task
from ridgemark.rows import ArrayRows, open_rows
from tests.helpers import FunctionTask


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3000, 3)), rng.normal(size=(3000, 2)), rng.uniform(0, 2, 3000)


class Gram(Task):
    """`A'X` with A given along the rows."""

    what: ClassVar[str] = "gram"
    factor: float
    n_columns: int = 3

    @property
    def width(self) -> int:
        return self.n_columns

    @property
    def kernel_entries(self) -> int:
        return 7

    def __call__(self, block, workspace) -> Any:
        return self.factor * block.along[0].T @ block.features


def test_a_sum_over_blocks_is_the_sum_over_rows(data):
    X, Y, _ = data
    total = RowPasses(ArrayRows(X)).reduce(Gram(2.0), along=(Y,))
    assert total == pytest.approx(2.0 * Y.T @ X, rel=1e-12)


def test_a_sum_may_start_at_a_later_row(data):
    X, Y, _ = data
    total = RowPasses(ArrayRows(X)).reduce(Gram(1.0), along=(Y,), start=1234)
    assert total == pytest.approx(Y[1234:].T @ X[1234:], rel=1e-12)


def test_a_map_stacks_the_blocks_in_row_order(data):
    X, _, _ = data
    out = np.zeros((3000, 3))
    assert RowPasses(ArrayRows(X)).map(FunctionTask(lambda block: 2 * block.features), out=out) is out
    assert np.array_equal(out, 2 * X)


def test_one_pass_stacks_one_result_and_sums_another(data):
    X, _, _ = data
    passes = RowPasses(ArrayRows(X))
    stacked, total = passes.map_and_reduce(FunctionTask(lambda block: (2 * block.features, block.features.sum(axis=0))))
    assert np.array_equal(stacked, 2 * X)
    assert total == pytest.approx(X.sum(axis=0), rel=1e-12)
    assert passes.n_passes == 1


def test_sums_have_the_same_bits_for_any_number_of_threads(data):
    X, Y, _ = data
    totals = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            totals.append(RowPasses(ArrayRows(X)).reduce(Gram(1.0), along=(Y,)))
    assert np.array_equal(totals[0], totals[1])
    assert np.array_equal(totals[0], totals[2])


def test_the_size_of_a_block_does_not_depend_on_the_number_of_threads(data):
    X, _, _ = data
    sizes = set()
    for threads in (1, 2, 16):
        with threadpool_limits(threads, user_api="blas"):
            sizes.add(tuple(RowPasses(ArrayRows(X), budget).block_rows(500) for budget in (None, 10**8, 10**6)))
    assert len(sizes) == 1


def test_a_small_budget_makes_small_blocks(data):
    X, Y, _ = data
    sizes = []
    task = FunctionTask(lambda block: sizes.append(block.n_rows) or np.zeros(block.n_rows), n_columns=40)
    RowPasses(ArrayRows(X, Y), memory_budget=100_000).map(task)
    assert max(sizes) * 8 * (2 * 3 + 4 * 40 + 2) <= 100_000
    assert sum(sizes) == 3000


def test_the_blas_limit_in_force_before_is_restored(data):
    X, Y, _ = data
    with threadpool_limits(2, user_api="blas"):
        before = worker_threads()
        RowPasses(ArrayRows(X)).reduce(Gram(1.0), along=(Y,))
        assert worker_threads() == before


def test_an_error_in_one_block_reaches_the_caller(data):
    X, _, _ = data

    def fail(block):
        if block.start > 0:
            raise ValueError("in a thread")
        return np.zeros(block.n_rows)

    with threadpool_limits(2, user_api="blas"), pytest.raises(ValueError, match="in a thread"):
        RowPasses(ArrayRows(X)).map(FunctionTask(fail))


def test_cost_is_counted_and_progress_is_reported(data):
    X, Y, _ = data
    seen = []
    passes = RowPasses(ArrayRows(X), progress=lambda what, done, n: seen.append((what, done, n)))
    passes.reduce(Gram(1.0), along=(Y,))
    passes.count_entries(40)
    assert (passes.n_passes, passes.n_kernel_evaluations) == (1, 3000 * 7 + 40)
    assert seen[-1] == ("gram", 3000, 3000)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_costs_add():
    assert Cost(1, 2, 4.0, 1.0) + Cost(1, 1, 4.0, 3.0) == Cost(2, 3, 8.0, 4.0)
    assert Cost(seconds=8.0, waited=4.0).waiting_share == 0.5
    assert Cost().waiting_share == 0.0


@pytest.mark.parametrize("kind", ["array", "csv", "npy", "frame"])
def test_a_part_of_a_source_is_read_after_pickling(tmp_path, kind):
    values = np.arange(300.0).reshape(100, 3)
    source = _source(tmp_path, kind, values)
    blocks = list(cloudpickle.loads(cloudpickle.dumps(source)).blocks(20, 17, 61))
    assert [block.start for block in blocks] == [17, 37, 57]
    assert np.array_equal(np.concatenate([block.features for block in blocks]), values[17:61, :2])
    assert np.array_equal(np.concatenate([block.targets for block in blocks])[:, 0], values[17:61, 2])


def _source(folder, kind, values):
    if kind == "array":
        return open_rows(values, target=2)
    if kind == "npy":
        np.save(folder / "x.npy", values)
        return open_rows(folder / "x.npy", target=2)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(values, columns=list("abc"))
    if kind == "frame":
        return open_rows(frame, target="c")
    frame.to_csv(folder / "x.csv", index=False)
    return open_rows(folder / "x.csv", target="c")


def test_equal_rows_have_one_kind_and_rows_of_weight_zero_none():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [-0.0, 5.0], [0.0, 5.0], [7.0, 7.0]])
    distinct = RowPasses(ArrayRows(X, weights=[1, 1, 1, 1, 1, 0])).distinct_rows()
    assert sorted(distinct.indices.tolist()) == [0, 1, 3]
    assert distinct.kind[0] == distinct.kind[2]
    assert distinct.kind[3] == distinct.kind[4]
    assert distinct.kind[5] == -1
    assert sorted(distinct.totals(np.array([1.0, 10.0, 100.0, 5.0, 6.0, 99.0]))) == [10.0, 11.0, 101.0]


def test_the_order_of_candidates_does_not_depend_on_the_order_of_rows(data):
    X, _, _ = data
    shuffled = np.random.default_rng(1).permutation(3000)
    one = RowPasses(ArrayRows(X)).distinct_rows().indices
    other = RowPasses(ArrayRows(X[shuffled])).distinct_rows().indices
    assert np.array_equal(X[one], X[shuffled][other])


def test_constant_columns_are_checked_in_all_rows():
    X = np.ones((1000, 3))
    X[:, 1] = np.arange(1000)
    X[999, 2] = 2.0
    assert RowPasses(ArrayRows(X)).columns().constant.tolist() == [True, False, False]


def test_targets_stay_as_they_are_when_equal_rows_are_grouped():
    X, y = np.repeat(np.arange(5.0), 2)[:, None], np.arange(10.0)[:, None]
    passes = RowPasses(ArrayRows(X, y))
    passes.row_groups()
    assert passes.targets().tolist() == y.tolist()
    with pytest.raises(ValueError, match="read-only"):
        passes.targets()[0] = 7.0
