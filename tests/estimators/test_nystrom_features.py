"""NystromFeatures in the place of scikit-learn's Nystroem."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from ridgemark import NystromFeatures, exact, open_rows
from ridgemark.errors import LandmarkCountWarning, NumericalError, ParameterError
from ridgemark.kernels import Custom, Gaussian


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(200, 3))


def test_with_the_same_landmarks_it_gives_what_nystroem_gives(rows):
    peer = Nystroem(gamma=1 / 8, n_components=40, random_state=0).fit(rows)
    ours = NystromFeatures(bandwidth=2.0, selection=peer.components_).fit(rows)
    assert ours.normalization_ == pytest.approx(peer.normalization_, abs=1e-6)
    assert ours.transform(rows) == pytest.approx(peer.transform(rows), abs=1e-7)


def _overlap(x, z):
    return np.minimum(x, z).sum()


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("function", [_overlap, np.dot], ids=["overlap", "dot"])
def test_a_function_of_two_rows_is_taken_as_nystroem_takes_it(rows, function, n_features):
    X = np.abs(rows[:, :n_features])
    peer = Nystroem(kernel=function, n_components=n_features, random_state=0).fit(X)
    ours = NystromFeatures(kernel=function, selection=peer.components_).fit(X)
    B, C = ours.transform(X), peer.transform(X)
    assert B @ B.T == pytest.approx(C @ C.T, abs=1e-6)


def test_functions_of_two_rows_and_of_two_blocks_give_the_same_features(rows):
    X = np.abs(rows[:80])

    def overlaps(X, Z):
        return np.minimum(X[:, None], Z[None]).sum(axis=2)

    one, two = (NystromFeatures(kernel, n_landmarks=20, random_state=0).fit(X) for kernel in (_overlap, overlaps))
    assert np.array_equal(one.component_indices_, two.component_indices_)
    assert one.transform(X) == pytest.approx(two.transform(X), abs=1e-9)
    assert Custom(_overlap).diagonal(X) == pytest.approx(X.sum(axis=1))
    as_sparse = NystromFeatures(lambda x, z: (x @ z.T).toarray()[0, 0], selection=sparse.csr_array(X[:3]))
    B = as_sparse.fit_transform(sparse.csr_array(X[:20]))
    assert B @ B.T == pytest.approx(X[:20] @ X[:20].T, abs=1e-8)


def test_a_feature_beyond_single_precision_is_refused(rows):
    kernel, single = 1e300 * Gaussian(0.5), rows.astype(np.float32)
    assert np.isfinite(NystromFeatures(kernel, n_landmarks=20).fit(rows).transform(rows)).all()
    with pytest.raises(NumericalError, match="the feature for row 0 exceeds the floating-point range"):
        NystromFeatures(kernel, n_landmarks=20).fit(single).transform(single)
    with pytest.raises(NumericalError, match="kernel values"):
        kernel(single)


def test_inner_products_are_the_nystrom_approximation(rows):
    ours = NystromFeatures(bandwidth=2.0, n_landmarks=30, random_state=1).fit(rows)
    K = exact.kernel_matrix(rows, Gaussian(2.0))
    L = exact.nystrom_approximation(K, exact.column_sketch(ours.component_indices_, np.full(200, 1 / 200)))
    B = ours.transform(rows)
    assert B @ B.T == pytest.approx(L, abs=1e-10)
    assert np.array_equal(ours.components_, rows[ours.component_indices_])


def test_a_precomputed_kernel_may_have_fewer_landmarks_than_rows(rows):
    K = exact.kernel_matrix(rows, Gaussian(2.0))
    by_kernel = NystromFeatures("precomputed", n_landmarks=30, random_state=1).fit(K)
    J = by_kernel.component_indices_
    assert len(J) == 30
    assert by_kernel.transform(K[:7]).shape == (7, 30)
    B = by_kernel.transform(K)
    assert B @ B.T == pytest.approx(K[:, J] @ np.linalg.pinv(K[np.ix_(J, J)], hermitian=True) @ K[J], abs=1e-6)


def test_equal_landmarks_leave_no_infinite_root(rows):
    ours = NystromFeatures(bandwidth=2.0, selection=np.r_[rows[:10], rows[:10]]).fit(rows)
    once = NystromFeatures(bandwidth=2.0, selection=rows[:10]).fit(rows)
    B, C = ours.transform(rows), once.transform(rows)
    assert B @ B.T == pytest.approx(C @ C.T, abs=1e-8)


def test_it_keeps_names_precision_and_frames(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    ours = NystromFeatures(n_landmarks=5, random_state=0).set_output(transform="pandas").fit(frame)
    assert list(ours.transform(frame).columns) == [f"nystromfeatures{i}" for i in range(5)]
    single = rows.astype(np.float32)
    assert NystromFeatures(n_landmarks=5).fit(single).transform(single).dtype == np.float32


def test_it_reads_rows_from_anywhere(rows):
    from_array = NystromFeatures(n_landmarks=20, random_state=0).fit(rows).transform(rows)
    source = open_rows(rows)
    assert NystromFeatures(n_landmarks=20, random_state=0).fit(source).transform(source) == pytest.approx(from_array)


def test_a_searched_ridge_is_refused_and_too_many_landmarks_warn(rows):
    with pytest.raises(ParameterError, match=r"ridge must be a positive number here.*got 'loo'"):
        NystromFeatures(ridge="loo").fit(rows)
    with pytest.warns(LandmarkCountWarning, match="n_landmarks=500 exceeds the 200 distinct rows"):
        assert make_pipeline(NystromFeatures(n_landmarks=500)).fit_transform(rows).shape == (200, 200)
