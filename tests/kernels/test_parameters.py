"""Kernels are their parameters: equality, printing, copying, nested names."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from ridgemark.errors import ParameterError
from ridgemark.kernels import Bernoulli, Gaussian, Linear, Polynomial, Product, Scaled, Sum
from ridgemark.tuning import Tuner


def test_kernels_are_equal_when_their_parameters_are():
    assert Gaussian(2.0) == Gaussian(2.0)
    assert Gaussian(2.0) != Gaussian(3.0)
    assert Gaussian(2.0) != Linear()
    assert Gaussian(np.array([1.0, 2.0])) == Gaussian([1.0, 2.0])
    assert Gaussian(np.array([1.0, 2.0])) != Gaussian(1.0)
    assert Gaussian() + 2 * Linear() == Sum(Gaussian(), Scaled(Linear(), 2))


def test_equal_kernels_have_equal_hashes():
    assert len({Gaussian(2.0), Gaussian(2.0), Gaussian([1.0, 2.0]), Gaussian(np.array([1.0, 2.0]))}) == 2


def test_a_kernel_prints_as_the_call_that_makes_it():
    kernel = Gaussian(2.5) * Bernoulli(3) + 0.5 * Polynomial(2)
    names = {cls.__name__: cls for cls in (Bernoulli, Gaussian, Polynomial, Product, Scaled, Sum)}
    assert eval(repr(kernel), names) == kernel


def test_inner_parameters_are_read_and_set_by_nested_names():
    kernel = Gaussian(2.0) + 3.0 * Linear()
    assert kernel.get_params()["left__bandwidth"] == 2.0
    kernel.set_params(left__bandwidth=5.0, right__factor=4.0)
    assert kernel == Gaussian(5.0) + 4.0 * Linear()


def test_clone_and_pickle_give_an_equal_kernel():
    kernel = Gaussian(np.array([1.0, 2.0])) + 3.0 * Linear()
    copy = clone(kernel)
    assert copy == kernel
    assert copy is not kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_an_unknown_parameter_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="Gaussian has no parameter 'gamma'; it has bandwidth"):
        Gaussian().set_params(gamma=1.0)
    with pytest.raises(ParameterError, match="no parameters of its own"):
        Gaussian().set_params(bandwidth__x=1.0)


def test_a_kernel_adds_only_to_a_kernel():
    with pytest.raises(TypeError):
        Gaussian() + 1.0


def test_a_list_of_lists_of_different_lengths_is_shown_as_it_is():
    assert "levels=['shared', []]" in repr(Tuner(levels=["shared", []]))
