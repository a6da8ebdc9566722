"""An estimator is pickled whole: fitted, or as it was before; never in the middle of a fit."""

import copy
import pickle
import threading

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge
from ridgemark.errors import RidgemarkError

X = np.random.default_rng(0).normal(size=(120, 3))
Y = np.sin(X[:, 0])


class _Gate:
    """A kernel that waits, in the middle of a fit, until it is let go."""

    def __init__(self, fails=False):
        self.reached, self.let_go = threading.Event(), threading.Event()

        def kernel(X, Z):
            self.reached.set()
            assert self.let_go.wait(60)
            if fails:
                raise RuntimeError("the kernel fails")
            return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))

        self.kernel = kernel  # a function, which a copy of the estimator shares


def _in_the_middle_of(model, gate, checks):
    """Run the checks while a fit of the model waits in another thread."""
    failures = []

    def fit():
        try:
            model.fit(X[:, :2], Y)
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=fit)
    thread.start()
    assert gate.reached.wait(60)
    try:
        checks()
    finally:
        gate.let_go.set()
        thread.join()
    return failures


@pytest.mark.parametrize("make", [NystromRidge, ExactKernelRidge, NystromFeatures])
def test_an_estimator_is_not_pickled_while_it_is_fitted(make, tmp_path):
    gate = _Gate()
    model = make("gaussian", ridge=1e-3, n_landmarks=10, random_state=0).fit(X, Y).set_params(kernel=gate.kernel)

    def refuses():
        uses = [pickle.dumps, copy.copy, copy.deepcopy]
        if hasattr(model, "save"):
            uses.append(lambda model: model.save(tmp_path / "m"))
        for use in uses:
            with pytest.raises(RidgemarkError, match=r"a fit of this .* is running"):
                use(model)

    assert not _in_the_middle_of(model, gate, refuses)
    assert not list(tmp_path.iterdir())
    assert copy.copy(model).n_features_in_ == 2
    assert pickle.loads(pickle.dumps(model.set_params(kernel="gaussian").fit(X, Y))).n_features_in_ == 3


@pytest.mark.parametrize("make", [NystromRidge, ExactKernelRidge])
def test_after_a_fit_that_failed_the_earlier_one_is_pickled_and_saved(make, tmp_path):
    gate = _Gate(fails=True)
    model = make("gaussian", ridge=1e-3, n_landmarks=10, random_state=0).fit(X, Y)
    before, attributes = model.predict(X), set(vars(model))
    model.set_params(kernel=gate.kernel)
    assert len(_in_the_middle_of(model, gate, lambda: None)) == 1
    model.set_params(kernel="gaussian")
    assert set(vars(model)) == attributes
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), before)
    assert model.save(tmp_path / "m").stat().st_size > 0
    fresh = make()
    with pytest.raises(ValueError, match="infinity"):
        fresh.fit(np.full((9, 2), np.inf), np.zeros(9))
    assert vars(pickle.loads(pickle.dumps(fresh))) == vars(fresh) == fresh.get_params()
