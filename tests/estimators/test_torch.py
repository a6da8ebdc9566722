"""Estimators on torch tensors, here in host memory, give what they give on NumPy arrays."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromClassifier, NystromFeatures, NystromRidge, leverage_scores
from ridgemark.errors import DataTypeError, NumericalError, ParameterError
from ridgemark.kernels import Bernoulli, Cosine, Custom, Gaussian, Laplacian, Linear, Matern32, Mixture, Polynomial
from ridgemark.linalg import product_in_blocks
from ridgemark.losses import class_loss
from ridgemark.passes.columns import Columns
from ridgemark.rows import Block
from ridgemark.rows.distinct import row_hashes
from ridgemark.tuning import Tuner
from ridgemark.tuning.criterion import Sample, SmallDesign, best_ridge, evaluate
from tests.helpers import slowly

torch = pytest.importorskip("torch")
from ridgemark.backends.torch import TorchBackend  # noqa: E402


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """Check in every test that nothing on the device meets something of the host."""
    from tests.fake_device import fake_device

    with fake_device(monkeypatch):
        yield


RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.normal(size=len(X))
WEIGHTS = RNG.integers(0, 3, len(X)).astype(float)
CLOSE = 1e-10 * Y.std()
OPTIONS = {"kernel": "gaussian", "bandwidth": 2.0, "n_landmarks": 80, "random_state": 0}


def _both(estimator, y=Y, **fit):
    """Return the estimator fitted on arrays, and on tensors."""
    return estimator().fit(X, y, **fit), estimator().fit(torch.from_numpy(X), y, **fit)


def _apart(one, other):
    assert isinstance(other, torch.Tensor)
    return np.abs(one - other.numpy()).max()


@pytest.mark.parametrize(
    "selection", ["uniform", "leverage", "rpcholesky", pytest.param("recursive", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("ridge", [1e-6, "loo"])
def test_predictions_agree(selection, ridge):
    one, other = _both(lambda: NystromRidge(**OPTIONS, selection=selection, ridge=ridge), sample_weight=WEIGHTS)
    assert (one.landmark_indices_ == other.landmark_indices_).all()
    assert _apart(one.predict(X), other.predict(torch.from_numpy(X))) <= CLOSE


@pytest.mark.parametrize(
    "kernel",
    [
        Matern32(2.0),
        Laplacian(3.0),
        Polynomial(2),
        Gaussian(1.5) + Linear(),
        Mixture(
            [Gaussian(1.5), Matern32(3.0)],
            [Laplacian(3.0), Linear()],
            [0.5, 0.3, 0.2, 0.1],
            bandwidth=[1.0, 2.0, 1.0, 0.5],
        ),
        Gaussian(metric=np.diag([1.0, 0.8, 0.6, 0.5])),
    ],
)
def test_kernels_agree(kernel):
    one, other = _both(lambda: NystromRidge(kernel, n_landmarks=60, selection="uniform", ridge=1e-5, random_state=0))
    assert _apart(one.predict(X), other.predict(torch.from_numpy(X))) <= CLOSE


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_deviations_and_intervals_agree(weights):
    one, other = _both(lambda: NystromRidge(**OPTIONS, ridge="loo"), sample_weight=weights)
    rows = X[:40]
    for name, options in [("predict", {"return_std": True}), ("predict_interval", {"adaptive": False})]:
        ours, theirs = (
            getattr(model, name)(given, **options) for model, given in ((one, rows), (other, torch.from_numpy(rows)))
        )
        assert _apart(np.asarray(ours[-1]), theirs[-1]) <= CLOSE
    assert _apart(one.predict_interval(rows), other.predict_interval(torch.from_numpy(rows))) <= CLOSE


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")
@pytest.mark.parametrize("ridge", [1e-4, (1e-3, 1e-4)])
def test_large_matrices_agree(ridge, monkeypatch):
    monkeypatch.setattr("ridgemark.linalg._WORTH_SENDING", 1)
    # Without and with landmarks that others nearly explain; the kernel of these has the condition 3e9.
    for width, apart in ((0.5, CLOSE), (3.0, 100 * CLOSE)):
        options = OPTIONS | {"bandwidth": width, "selection": "uniform", "ridge": ridge}
        one, other = _both(partial(NystromRidge, **options))
        assert _apart(one.predict(X), other.predict(torch.from_numpy(X))) <= apart
        assert other.effective_dimension_.lower == pytest.approx(one.effective_dimension_.lower, rel=1e-6)


def test_rows_have_the_same_hashes_and_columns():
    rows = np.vstack([X, -0.0 * X[:1], 1e300 * X[:1]])
    assert (row_hashes(Block(0, torch.from_numpy(rows))) == row_hashes(Block(0, rows))).all()
    one, other = Columns.of(X, np.ones(len(X))), Columns.of(torch.from_numpy(X), torch.ones(len(X)).double())
    assert other.mean == pytest.approx(one.mean)
    assert (other.two_valued == one.two_valued).all()


@pytest.mark.parametrize("n_terms", [3, 8, 21])
def test_products_in_blocks_agree(n_terms):
    left, right = np.random.default_rng(0).normal(size=(5, n_terms)), X[:n_terms, :2]
    found = product_in_blocks(torch.from_numpy(left), torch.from_numpy(right), 8)
    assert np.allclose(found, product_in_blocks(left, right, 8), rtol=1e-14)


def test_lapack_has_eigenvalues_where_the_device_has_none(monkeypatch):
    monkeypatch.setattr("ridgemark.linalg._WORTH_SENDING", 1)
    rows, model = torch.from_numpy(X), NystromRidge(**OPTIONS, selection="uniform", ridge="gcv")
    expected = model.fit(rows, Y).predict(rows)

    def fails(matrix):
        raise RuntimeError("cusolver error")

    monkeypatch.setattr(torch.linalg, "eigh", fails)
    assert _apart(expected.numpy(), model.fit(rows, Y).predict(rows)) <= CLOSE


@pytest.mark.parametrize("kind", ["audit", pytest.param("operator", marks=pytest.mark.slow), "trace"])
def test_certificates_agree(kind):
    one, other = _both(lambda: NystromRidge(**OPTIONS, ridge=1e-4))
    tensors = torch.from_numpy(X)
    assert other.certify(tensors, Y, kind).bound == pytest.approx(one.certify(X, Y, kind).bound, rel=1e-6)


def test_bounds_at_new_points_agree():
    one, other = _both(lambda: NystromRidge(**OPTIONS, ridge=1e-4))
    ours, theirs = (
        model.distance_to_exact(rows[:50] + 0.1, model.certify(rows, Y), rows, Y)
        for model, rows in ((one, X), (other, torch.from_numpy(X)))
    )
    assert _apart(ours, theirs) <= 1e-6 * ours.max()


def test_coordinates_that_are_not_kept_agree():
    one, other = _both(lambda: NystromRidge(**OPTIONS, selection="rpcholesky", ridge=1e-3, memory_budget=2**18))
    assert (one.landmark_indices_ == other.landmark_indices_).all()


def test_scores_agree():
    one, other = _both(lambda: NystromRidge(**OPTIONS, selection="leverage", ridge=1e-5))
    for name in ("lower", "upper"):
        ours, theirs = (getattr(model.leverage_scores_, name) for model in (one, other))
        assert np.abs(ours - theirs).max() <= 1e-8
    options = {"bandwidth": 2.0, "ridge": 1e-3, "n_landmarks": 80, "random_state": 0}
    ours, theirs = (leverage_scores(rows, **options, sample_weight=WEIGHTS) for rows in (X, torch.from_numpy(X)))
    assert isinstance(theirs.upper, np.ndarray)
    assert np.abs(ours.upper - theirs.upper).max() <= 1e-8
    assert ours.effective_dimension.lower == pytest.approx(theirs.effective_dimension.lower)


@pytest.mark.parametrize("budget", [None, 2**22])
def test_exact_solutions_agree(budget):
    def estimator():
        return ExactKernelRidge(**OPTIONS, ridge=1e-3, memory_budget=budget)

    one, other = _both(estimator)
    assert _apart(one.predict(X), other.predict(torch.from_numpy(X))) <= 2e-6
    assert other.history_[-1].returned[0] <= 1e-6


def test_gradients_agree():
    one, other = _both(lambda: NystromRidge(**OPTIONS, selection="uniform", ridge=1e-4, solver="gradient"))
    apart = _apart(one.predict(X), other.predict(torch.from_numpy(X)))
    assert apart <= 4 * (one.solver_bound_ + other.solver_bound_)


def test_kernel_values_held_in_single_precision_give_the_same_solution(monkeypatch):
    monkeypatch.setattr("ridgemark.linalg._WORTH_SENDING", 1)
    options = OPTIONS | {"selection": "uniform", "ridge": 1e-4, "solver": "gradient"}
    direct = NystromRidge(**options | {"solver": "direct"}).fit(X, Y).predict(X)
    rows = torch.from_numpy(X)
    monkeypatch.setattr("ridgemark.operators.held._FREE", 0)
    for free in (2**30, 4 * len(X) * 80, 0):  # in double precision, in single precision, and not at all
        monkeypatch.setattr("ridgemark.backends.torch.TorchBackend.free_bytes", lambda self, free=free: free)
        model = NystromRidge(**options).fit(rows, Y)
        found = model.predict(rows).numpy()
        assert np.sqrt(np.mean((found - direct) ** 2)) <= model.solver_bound_ + CLOSE  # rounding of both solutions
        assert model.solver_bound_ <= 0.02 * Y.std()


def test_classes_agree():
    labels = Y > 1
    one, other = _both(lambda: NystromClassifier(**OPTIONS, ridge=1e-3), labels)
    rows = torch.from_numpy(X)
    assert _apart(one.decision_function(X), other.decision_function(rows)) <= 1e-6
    assert _apart(one.predict_proba(X), other.predict_proba(rows)) <= 1e-6
    assert other.predict(rows).dtype == torch.bool
    assert other.score(rows, torch.from_numpy(labels)) == one.score(X, labels)
    ours, theirs = one.diagnose(X, labels), other.diagnose(rows, labels)
    assert theirs.log_probabilities == pytest.approx(ours.log_probabilities, abs=1e-6)
    assert theirs.leverage == pytest.approx(ours.leverage, abs=1e-6)


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")
@pytest.mark.parametrize(
    ("n_classes", "few", "free", "sent_from"), [(2, 0, 2**30, 1), (3, 1000, 0, 1024), (3, 0, 2**30, 1024), (3, 0, 0, 1)]
)
def test_newton_steps_agree(n_classes, few, free, sent_from, monkeypatch):
    """With all targets jointly, by conjugate gradients, and with features held on the device."""
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", few)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_FEATURES", 1)
    monkeypatch.setattr("ridgemark.backends.torch.TorchBackend.free_bytes", lambda self: free)
    loss, places = type(class_loss(n_classes)), []
    slopes = loss.slopes
    monkeypatch.setattr(loss, "slopes", lambda self, y, eta: places.append(type(eta)) or slopes(self, y, eta))
    model = NystromClassifier(**OPTIONS | {"n_landmarks": 40}, selection="uniform", ridge=(1e-2, 1e-3))
    labels = np.digitize(Y, [0.3, 1.2][: n_classes - 1])
    one = model.fit(X, labels, WEIGHTS).predict_proba(X)
    assert set(places) == {np.ndarray}
    places.clear()
    monkeypatch.setattr("ridgemark.linalg._WORTH_SENDING", sent_from)
    other = model.fit(torch.from_numpy(X), labels, WEIGHTS).predict_proba(torch.from_numpy(X))
    assert torch.Tensor in places
    assert n_classes == 2 or np.ndarray not in places  # of one function, rows left out are summed on the host
    assert _apart(one, other) <= 1e-6


def test_features_agree():
    one, other = _both(lambda: NystromFeatures(bandwidth=2.0, n_landmarks=50, random_state=0))
    assert _apart(one.transform(X), other.transform(torch.from_numpy(X))) <= 1e-9


@pytest.mark.parametrize(
    "kernel",
    [Gaussian([1.5, 2.0, 2.5, 3.0]), Gaussian(metric=np.eye(4)[:, :3] / 2) * Cosine(), Laplacian(3.0) + Polynomial(2)],
)
def test_effects_agree(kernel):
    rows = np.column_stack([X[:, :3], X[:, 3] > 0])
    model = NystromRidge(kernel, n_landmarks=40, selection="uniform", ridge=1e-3, random_state=0)
    ours = model.fit(rows, Y).effects(rows, return_std=True), model.effects_summary(rows)
    tensors = torch.from_numpy(rows)
    theirs = model.fit(tensors, Y).effects(tensors, return_std=True), model.effects_summary(tensors)
    for one, other in zip(ours[0], theirs[0], strict=True):
        assert _apart(one, other) <= 1e-9 * np.abs(one).max()
    for name in ("average", "standard_error", "quartiles"):
        expected = getattr(ours[1], name)
        assert getattr(theirs[1], name) == pytest.approx(expected, rel=1e-8, abs=1e-9 * np.abs(expected).max())


def test_periodic_effects_agree():
    rows = X[:, :1]
    model = NystromRidge(Bernoulli(2), n_landmarks=40, selection="uniform", ridge=1e-3, random_state=0)
    one, other = (model.fit(given, Y).effects(given) for given in (rows, torch.from_numpy(rows)))
    assert _apart(one, other) <= 1e-9 * np.abs(one).max()


def test_single_precision_stays_within_rounding():
    rows = torch.from_numpy(X.astype(np.float32))
    model = NystromRidge(**OPTIONS, selection="uniform", ridge=1e-6).fit(rows, torch.from_numpy(Y.astype(np.float32)))
    found = model.predict(rows)
    assert found.dtype == torch.float32
    same = X.astype(np.float32).astype(np.float64)
    double = NystromRidge(**OPTIONS, selection="uniform", ridge=1e-6).fit(same, Y.astype(np.float32)).predict(same)
    assert np.abs(found.numpy() - double).max() <= 1e-6 * Y.std()  # only the predictions are rounded


def test_targets_and_weights_of_any_kind_follow_the_rows():
    model = NystromRidge(**OPTIONS, ridge=1e-4)
    rows = torch.from_numpy(X)
    found = [
        model.fit(rows, y, w).predict(rows)
        for y, w in ((Y, WEIGHTS), (torch.from_numpy(Y), torch.from_numpy(WEIGHTS)), (Y.tolist(), WEIGHTS))
    ]
    assert all(torch.equal(found[0], one) for one in found)


def test_rows_of_another_kind_are_refused():
    model = NystromRidge(**OPTIONS, ridge=1e-4)
    with pytest.raises(DataTypeError, match=r"fitted on torch tensors, got rows in host memory.*torch\.asarray"):
        model.fit(torch.from_numpy(X), Y).predict(X)
    with pytest.raises(DataTypeError, match=r"got torch tensors; convert them: X\.cpu"):
        model.fit(X, Y).predict(torch.from_numpy(X))
    assert model.score(X, Y) > 0.9


def test_scores_of_tensors_and_saved_models(tmp_path):
    import ridgemark

    model = NystromRidge(**OPTIONS, ridge=1e-4).fit(torch.from_numpy(X), Y)
    assert model.score(torch.from_numpy(X), torch.from_numpy(Y)) > 0.9
    for again in (pickle.loads(pickle.dumps(model)), ridgemark.load(model.save(tmp_path / "m.ridgemark"))):
        assert torch.equal(again.predict(torch.from_numpy(X)), model.predict(torch.from_numpy(X)))


def test_the_fake_device_refuses_what_a_gpu_refuses():
    from ridgemark.backends import backend_of
    from tests.fake_device import FakeDevice

    backend = backend_of(torch.ones(1))
    with FakeDevice():
        there, here = backend.from_host(np.ones(3)), torch.ones(3)
        for wrong in (lambda: there + here, lambda: there * np.ones(3), lambda: np.sqrt(there), lambda: there.numpy()):
            with pytest.raises((RuntimeError, TypeError), match="device"):
                wrong()
        assert (backend.to_host((2.0 * there)[np.array([0, 2])] + there[0]) == 3.0).all()


def test_tensors_without_an_array_are_refused():
    for rows in (torch.from_numpy(X).bfloat16(), torch.from_numpy(X).to_sparse()):
        with pytest.raises(DataTypeError, match=r"tensors must be dense, of float64.*convert them"):
            NystromRidge(**OPTIONS, ridge=1e-4).fit(rows, Y)


def test_partitions_of_dask_are_computed_on_the_workers_device(monkeypatch):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    from ridgemark.backends.torch import TorchBackend
    from ridgemark.losses.sums import LossSums

    plain, seen = LossSums.__call__, []

    def watched(task, block, workspace):
        seen.append((id(task), workspace.backend.namespace, type(block.features)))
        return plain(task, block, workspace)

    monkeypatch.setattr(LossSums, "__call__", watched)
    monkeypatch.setattr("ridgemark.estimators.computing.device_backend", lambda device: TorchBackend("cpu"))
    rows, options = da.from_array(X, chunks=(300, 4)), OPTIONS | {"selection": "uniform", "ridge": 1e-5}
    with dask.config.set(scheduler="synchronous"):
        model = NystromRidge(**options).fit(rows, Y)
        found = model.predict(rows).compute()
    assert len(seen) == 3
    assert len(set(seen)) == 1  # the task was sent to the device once
    assert seen[0][1:] == ("array_api_compat.torch", torch.Tensor)
    monkeypatch.undo()
    assert np.abs(NystromRidge(**options).fit(X, Y).predict(X) - found).max() <= CLOSE


def test_own_kernels_stay_on_the_host():
    def kernel(left, right):
        assert isinstance(left, np.ndarray)
        return np.exp(-((left[:, None] - right[None]) ** 2).sum(axis=2) / 8)

    model = NystromRidge(Custom(kernel), n_landmarks=60, ridge=1e-4, random_state=0)
    assert isinstance(model.fit(torch.from_numpy(X), Y).predict(torch.from_numpy(X)), torch.Tensor)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ParameterError, match=r'device must be "cpu", "cuda", .* or "auto"'):
        NystromRidge(**OPTIONS, device="gpu").fit(X, Y)
    with pytest.raises(ParameterError, match=r'device must be "cpu", "cuda", .* or "auto"'):
        leverage_scores(X, ridge=1e-3, device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ParameterError, match=r"device='cuda' needs a GPU that torch finds"):
            NystromRidge(**OPTIONS, device="cuda").fit(X, Y)
        auto, cpu = (NystromRidge(**OPTIONS, device=device, ridge=1e-3).fit(X, Y) for device in ("auto", "cpu"))
        assert (auto.predict(X) == cpu.predict(X)).all()


class _Small:
    """Fails as a device without memory does, for blocks of more than some rows."""

    def __init__(self, monkeypatch, most):
        from ridgemark.losses.sums import LossSums

        plain = LossSums.__call__

        def limited(task, block, workspace):
            if block.n_rows > most:
                raise torch.OutOfMemoryError("no memory")
            return plain(task, block, workspace)

        monkeypatch.setattr(LossSums, "__call__", limited)


def test_smaller_blocks_answer_a_full_memory(monkeypatch):
    model, rows = NystromRidge(**OPTIONS, selection="uniform", ridge=1e-4), torch.from_numpy(X)
    whole = model.fit(rows, Y).predict(rows)
    _Small(monkeypatch, 70)
    # Sums in another order: their rounding errors, a few 1e-15, are divided by lambda.
    assert _apart(whole.numpy(), model.fit(rows, Y).predict(rows)) <= 10 * CLOSE


def test_a_memory_that_holds_no_block_is_named(monkeypatch):
    _Small(monkeypatch, 5)
    model = NystromRidge(**OPTIONS, selection="uniform", ridge=1e-4)
    with pytest.raises(NumericalError, match=r"memory of the device cpu does not hold a block of .* rows"):
        model.fit(torch.from_numpy(X), Y)

    def full(*_, **__):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr("ridgemark.linalg._WORTH_SENDING", 1)
    monkeypatch.setattr(torch.linalg, "cholesky_ex", full)
    with pytest.raises(NumericalError, match=r"memory of the device cpu does not hold the matrices of the landmarks"):
        model.fit(torch.from_numpy(X), Y)


@pytest.mark.parametrize("others", [[], [Laplacian(np.full(4, 5.0)), Linear(widths=np.full(4, 2.0))]], ids=len)
def test_the_criterion_of_tuning_agrees(others):
    metric, targets = np.diag([1.0, 0.5, 0.3, 0.1]), Y[:, None] - Y.mean()
    kernel = Mixture([Gaussian(1.0), Matern32(2.0)], others, [0.25] * (2 + len(others)), metric=metric)
    here = Sample(X, targets, np.full(len(X), 1.0 / len(X)), 60, True)
    there = replace(here, backend=TorchBackend("cpu"))
    one, other = (evaluate(kernel, 1e-4, sample) for sample in (here, there))
    assert other.error == pytest.approx(one.error, rel=1e-9)
    for name in ("ridge", "weights", "lengths", "outer", *(["widths"] if others else [])):
        expected = np.asarray(getattr(one.slopes, name))
        assert getattr(other.slopes, name) == pytest.approx(expected, rel=1e-6, abs=1e-9 * np.abs(expected).max())
    assert other.model.squared_errors(there) == pytest.approx(one.model.squared_errors(here), rel=1e-6, abs=1e-12)
    ridges = np.logspace(-8, 0, 9)
    assert best_ridge(kernel, there, ridges) == pytest.approx(best_ridge(kernel, here, ridges), rel=1e-9)


def test_the_criterion_in_single_precision_agrees():
    kernel = Mixture(
        [Gaussian(1.0), Matern32(2.0)], [Laplacian(np.full(4, 5.0))], [0.4, 0.3, 0.3], bandwidth=np.ones(4)
    )
    here = Sample(X, Y[:, None] - Y.mean(), np.full(len(X), 1.0 / len(X)), 60, True).in_single_precision()
    there = replace(here, backend=TorchBackend("cpu"))
    one, other = (evaluate(kernel, 1e-3, sample) for sample in (here, there))
    assert other.error == pytest.approx(one.error, rel=1e-4)
    assert other.slopes.outer == pytest.approx(
        one.slopes.outer, rel=1e-2, abs=1e-3 * float(np.abs(one.slopes.outer).max())
    )
    ridges = np.logspace(-5, 0, 6)
    assert best_ridge(kernel, there, ridges) == pytest.approx(best_ridge(kernel, here, ridges), rel=1e-4)


def test_a_kernel_that_is_not_definite_is_refused_on_a_device():
    sample = Sample(X[:50], Y[:50, None], np.full(50, 0.02), 5, True, TorchBackend("cpu"))
    with pytest.raises(np.linalg.LinAlgError):
        SmallDesign.of(sample, torch.ones(50, 5).double(), -torch.eye(5).double())


FEW = {"rows": 200, "judging_rows": 100, "evaluations": 4, "kernels": ("gaussian", "matern32", "laplacian")}
MORE = {"rows": 400, "judging_rows": 200, "evaluations": 6}


@pytest.mark.parametrize("options", [FEW, *slowly(MORE)], ids=["few rows", "more rows"])
def test_tuned_fits_agree(options):
    tuner = Tuner(landmarks=40, **options)
    one, other = _both(lambda: NystromRidge(bandwidth=tuner, n_landmarks=60, random_state=0))
    assert other.tuning_.level == one.tuning_.level
    assert _apart(one.predict(X), other.predict(torch.from_numpy(X))) <= 1e-3 * Y.std()
