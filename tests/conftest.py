"""One BLAS and OpenMP thread for all tests: small matrices gain nothing from two, and lose a lot on a busy machine.

The variables are set before NumPy and torch read them, and hold for the processes that tests start.

`RIDGEMARK_TEST_THREADS` asks for another number, to show that no statement depends on it. Hypothesis draws
the same examples every time, and measures no time: an example may take any time where others use the machine.
`RIDGEMARK_TEST_EXAMPLES` asks for more of them.
"""

import os

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

THREADS = os.environ.get("RIDGEMARK_TEST_THREADS", "1")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = THREADS

EXAMPLES = int(os.environ.get("RIDGEMARK_TEST_EXAMPLES", "30"))
settings.register_profile("ridgemark", deadline=None, derandomize=True, max_examples=EXAMPLES)
settings.load_profile("ridgemark")


@pytest.fixture(autouse=True, scope="session")
def blas_threads():
    with threadpool_limits(int(THREADS), user_api="blas"):
        yield


@pytest.fixture
def no_figures():
    """Draw no figures on the pages of fits."""
    from tests.helpers import without_figures

    with without_figures():
        yield
