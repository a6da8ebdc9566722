"""One BLAS thread for all tests: small matrices gain nothing from two, and lose a lot where others use the machine."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield
