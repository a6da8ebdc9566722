"""The backend on torch tensors, on a GPU or in host memory: the only module that imports torch."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ridgemark.backends.base import Array, Backend

_PANEL = 1024  # most columns of a panel of a product of which half is computed
_FEWEST_PANELS = 4
_HOST_MEMORY = 2**30  # bytes that large matrices may take where tensors are in host memory
_COPYING = 8  # threads that copy a large matrix to the host
_PINNED = 2**26  # largest copy, in bytes, that goes through page-locked memory: more of it takes long to allocate
_SMALL, _PIECE = 2**20, 2**22  # bytes: results up to the first come to the host in one copy, others in pieces
_loading = Lock()


class TorchBackend(Backend):
    """Tensors, float32 or float64."""

    out_of_memory = torch.OutOfMemoryError

    def __init__(self, device: Any) -> None:
        super().__init__("array_api_compat.torch", torch.device(device))
        if self.device.type == "cuda":
            with _loading:
                _load_linear_algebra()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self.device),)

    def from_host(self, values: Any, like: Array | None = None) -> Array:
        if isinstance(values, torch.Tensor):
            return values.to(self.device)
        if not isinstance(values, np.ndarray):
            return values
        dtype = None if like is None else like.dtype
        if self.device.type == "cuda" and 0 < values.nbytes <= _PINNED:
            # From page-locked memory the copy is queued, and the processor goes on with the next block. torch gives the
            # memory to another tensor only after the copy has ended.
            staged = torch.empty(values.shape, dtype=torch.from_numpy(np.empty(0, values.dtype)).dtype, pin_memory=True)
            np.copyto(staged.numpy(), values)
            return staged.to(self.device, non_blocking=True).to(dtype or staged.dtype)
        # torch warns of arrays that are read-only, and takes no negative strides.
        fit = values.flags.writeable and min(values.strides, default=0) >= 0
        return torch.from_numpy(values if fit else values.copy()).to(self.device, dtype)

    def to_host(self, values: Array) -> NDArray[Any]:
        values = values.detach()
        if self.device.type == "cpu" or values.nbytes <= _SMALL:
            return values.cpu().numpy()
        values = values.contiguous()
        # The first use of new memory takes longer than the copy; several threads share that time.
        host = np.empty(values.shape, dtype=torch.empty(0, dtype=values.dtype).numpy().dtype)
        step = max(1, _PIECE * len(values) // values.nbytes)
        with ThreadPoolExecutor(_COPYING) as pool:
            list(pool.map(lambda first: _copy_rows(values, host, first, first + step), range(0, len(values), step)))
        return host

    def bits(self, values: Array) -> Array:
        return values.view(torch.int64)

    def others(self) -> tuple[Backend, ...]:
        # "cuda" stands for all GPUs, of which the first has the results; "cuda:1" for one.
        if self.device.type != "cuda" or self.device.index is not None:
            return ()
        return tuple(TorchBackend(f"cuda:{k}") for k in range(1, torch.cuda.device_count()))

    def free_bytes(self) -> int:
        return torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else _HOST_MEMORY

    def release(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def matmul(self, left: Array, right: Array, out: Array | None = None) -> Array:
        return torch.matmul(left, right, out=out)

    def product_in_blocks(self, left: Array, right: Array, at_once: int) -> Array:
        # All blocks at once: thousands of small products take longer to start than to compute.
        whole = left.shape[1] // at_once * at_once
        total = left[:, whole:] @ right[whole:]
        if whole:
            blocks = left[:, :whole].unflatten(1, (-1, at_once)).transpose(0, 1)
            total += (blocks @ right[:whole].unflatten(0, (-1, at_once))).sum(dim=0)
        return total

    def gram(self, rows: Array) -> Array:
        """Return `rows' rows` in float64, exactly symmetric: half of the products are computed, panel by panel."""
        rows, size = rows.to(torch.float64), rows.shape[1]
        product = torch.empty((size, size), dtype=torch.float64, device=rows.device)
        step = max(1, min(_PANEL, -(-size // _FEWEST_PANELS)))
        for first in range(0, size, step):
            last = min(first + step, size)
            product[first:, first:last] = rows[:, first:].T @ rows[:, first:last]
            product[first:last, last:] = product[last:, first:last].T
            corner = product[first:last, first:last]
            corner.copy_(torch.tril(corner) + torch.tril(corner, -1).T)
        return product

    def times_triangle_(self, rows: Array, triangle: Array, transposed: bool = False) -> Array:
        if transposed:
            return super().times_triangle_(rows, triangle, transposed)
        for first in reversed(range(0, len(triangle), _PANEL)):  # a panel depends only on the columns up to its end
            last = min(first + _PANEL, len(triangle))
            rows[:, first:last] = rows[:, :last] @ triangle[:last, first:last]
        return rows

    def subtract_product_(self, values: Array, left: Array, right: Array) -> Array:
        return values.addmm_(left, right, alpha=-1.0)

    def differences(self, left: Array, right: Array, power: int, weights: Array | None, out: Array) -> Array:
        if power == 2 or weights is not None:
            return super().differences(left, right, power, weights, out)
        return out.copy_(torch.cdist(left, right, p=1.0))

    def exp_(self, values: Array) -> Array:
        return values.exp_()

    def sqrt_(self, values: Array) -> Array:
        return values.sqrt_()

    def clip_(self, values: Array, lowest: float = -np.inf, highest: float = np.inf) -> Array:
        return values.clamp_(lowest, highest)

    def within(self, values: Array, lowest: float, highest: float) -> Array:
        return values.clamp(lowest, highest)

    def at_least(self, values: Array, lowest: Any) -> Array:
        return values.clamp(min=lowest)

    def diagonal(self, matrix: Array) -> Array:
        return matrix.diagonal()

    def cholesky(self, matrix: Array) -> Array | None:
        factor, info = torch.linalg.cholesky_ex(matrix, upper=True)
        return None if int(info) else factor

    def solve_triangle(self, triangle: Array, right: Array, transposed: bool = False) -> Array:
        return torch.linalg.solve_triangular(triangle.T if transposed else triangle, right, upper=not transposed)

    def inverse_triangle(self, triangle: Array) -> Array:
        return self.solve_triangle(triangle, torch.eye(len(triangle), dtype=triangle.dtype, device=triangle.device))

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        try:
            values, vectors = torch.linalg.eigh(matrix)
        except RuntimeError as error:
            if isinstance(error, self.out_of_memory):
                raise
            raise np.linalg.LinAlgError(str(error)) from error
        return values, vectors


@cache
def _load_linear_algebra() -> None:
    """Let torch load its linear algebra for GPUs: loading fails if two threads begin it at the same time."""
    torch.linalg.inv(torch.ones((1, 1), device="cuda"))


def _copy_rows(values: Array, host: NDArray[Any], first: int, last: int) -> None:
    """Copy some rows through page-locked memory."""
    rows = values[first:last]
    staged = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
    staged.copy_(rows)
    np.copyto(host[first:last], staged.numpy())


def cuda_backend(device: str) -> TorchBackend | None:
    """Return the backend of a GPU, such as "cuda" or "cuda:1"; None where torch finds none of this name."""
    try:
        requested = torch.device(device)
    except RuntimeError:
        return None
    there = torch.cuda.is_available() and (requested.index or 0) < torch.cuda.device_count()
    return TorchBackend(requested) if there else None
