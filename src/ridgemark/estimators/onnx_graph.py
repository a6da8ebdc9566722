"""Predictions as an ONNX graph in double precision."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import ParameterError, require
from ridgemark.kernels import Gaussian, Laplacian, Linear, Mixture, Product, Scaled, Sum
from ridgemark.kernels.base import Kernel
from ridgemark.kernels.columns import BEND, LIMIT, ColumnMap
from ridgemark.kernels.stationary import Matern, Matern12, Matern32
from ridgemark.rows import dense

_OPSET = 18


def onnx_model(model: Any) -> Any:
    """Return the ONNX model of a fitted estimator of numbers: from "X", shape (n, d), to "prediction"."""
    onnx = require("onnx", "An ONNX graph", "onnx", "onnx.helper", "onnx.numpy_helper")
    record = model._model
    function, form = record.function, record.schema
    if form.table is not None:
        raise ParameterError("to_onnx needs a fit to an array of numbers; this model encodes the columns of a table")
    if getattr(record, "transform", None) is not None:
        raise ParameterError("to_onnx needs a target in its own unit; this model was fitted with target_transform")
    graph = _Graph(onnx)
    if function.points is None:
        graph.refuse(function.kernel)
    values = graph.kernel(function.kernel, "X", dense(function.points).astype(np.float64))
    values = graph.op("Add", graph.op("MatMul", values, function.dual_coef), function.intercept)
    values = graph.predicted(values, getattr(record, "loss", None))
    if form.targets.flat:
        graph.op("Squeeze", values, np.array([1]), name="prediction")
    else:
        graph.op("Identity", values, name="prediction")
    return graph.model(form.n_features, () if form.targets.flat else (form.targets.count,))


class _Graph:
    """Nodes and constants of a graph, added in the order in which they are computed."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def op(self, kind: str, *inputs: Any, name: str = "", unused: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node, whose inputs are names of others or constants, and return the name of its first output."""
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        output = name or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, names, [output, *unused], **attributes))
        return output

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        array = array.astype(np.int64 if array.dtype.kind == "i" and array.ndim else np.float64)
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def kernel(self, kernel: Kernel, rows: str, points: Floats) -> str:
        """Add the kernel values of the rows with the points, shape (n, p)."""
        if isinstance(kernel, Mixture):
            return self._mixture(kernel, rows, points)
        if isinstance(kernel, Gaussian | Matern):
            return self._profile(kernel, self._distances(rows, points, kernel), 1.0)
        if isinstance(kernel, Laplacian):
            return self.op("Exp", self.op("Neg", self._sum_of_columns("Abs", rows, points, kernel.bandwidth)))
        if isinstance(kernel, Linear):
            origin, widths = np.zeros(points.shape[1]), np.ones(points.shape[1]) * kernel.widths
            origin += 0.0 if kernel.origin is None else kernel.origin
            moved = self.op("Div", self.op("Sub", rows, origin), widths)
            return self.op("MatMul", moved, ((points - origin) / widths).T)
        if isinstance(kernel, Sum | Product):
            parts = [self.kernel(part, rows, points) for part in (kernel.left, kernel.right)]
            return self.op("Add" if isinstance(kernel, Sum) else "Mul", *parts)
        if isinstance(kernel, Scaled):
            return self._times(self.kernel(kernel.kernel, rows, points), kernel.factor, points)
        return self.refuse(kernel)

    def refuse(self, kernel: Kernel) -> NoReturn:
        """Raise the error for a kernel that has no graph."""
        raise ParameterError(
            "to_onnx has graphs of Gaussian, Matern, Laplacian and linear kernels, and of mixtures, sums, products and "
            f"multiples of them; got {kernel!r:.100}"
        )

    def _mixture(self, kernel: Mixture, rows: str, points: Floats) -> str:
        parts, n_radial = kernel.parts(), len(kernel.radial)
        if kernel.columns is not None:
            rows, points = self._mapped(kernel.columns, rows), kernel.columns.apply(points)
        values = []
        if n_radial:
            rho = self._distances(rows, points, kernel)
            values = [self._profile(part, rho, float(part.bandwidth)) for _, part in parts[:n_radial]]
        values += [self.kernel(part, rows, points) for _, part in parts[n_radial:]]
        weighted = [self._times(value, weight, points) for value, (weight, _) in zip(values, parts, strict=True)]
        return weighted[0] if len(weighted) == 1 else self.op("Sum", *weighted)

    def _times(self, values: str, factor: float, points: Floats) -> str:
        """Add kernel values times a number: as a row of numbers, since runtimes round a single one to float32."""
        return self.op("Mul", values, np.full(len(points), float(factor)))

    def _distances(self, rows: str, points: Floats, kernel: Any) -> str:
        """Add squared distances in units of the bandwidth, or by the metric."""
        if kernel.metric is None:
            return self._sum_of_columns("Square", rows, points, kernel.bandwidth)
        centre = np.median(points, axis=0)
        projected = self.op("MatMul", self.op("Sub", rows, centre), np.asarray(kernel.metric, dtype=np.float64))
        return self._sum_of_columns("Square", projected, (points - centre) @ kernel.metric, 1.0)

    def _sum_of_columns(self, kind: str, rows: str, points: Floats, width: Any) -> str:
        """Add the sum over columns of squared or absolute differences: exact for near rows, far from the origin too."""
        widths, total = np.broadcast_to(np.asarray(width, dtype=np.float64), points.shape[1]), ""
        for j in range(points.shape[1]):
            column = self.op("Gather", rows, np.array([j]), axis=1)
            difference = self.op("Div", self.op("Sub", column, points[:, j]), widths[j])
            term = self.op("Abs", difference) if kind == "Abs" else self.op("Mul", difference, difference)
            total = self.op("Add", total, term) if total else term
        return total

    def _profile(self, kernel: Any, rho: str, length: float) -> str:
        """Add `phi(rho/length^2)`."""
        scale = kernel._form.factor / length**2
        if isinstance(kernel, Gaussian):
            return self.op("Exp", self.op("Mul", rho, scale))
        s = self.op("Sqrt", self.op("Mul", rho, scale))
        decay = self.op("Exp", self.op("Neg", s))
        if isinstance(kernel, Matern12):
            return decay
        polynomial = self.op("Add", s, 1.0)
        if not isinstance(kernel, Matern32):
            polynomial = self.op("Add", self.op("Mul", self.op("Add", self.op("Div", s, 3.0), 1.0), s), 1.0)
        return self.op("Mul", polynomial, decay)

    def _mapped(self, columns: ColumnMap, rows: str) -> str:
        """Add the map of the columns."""
        inside = self.op("Max", self.op("Min", rows, np.asarray(columns.high)), np.asarray(columns.low))
        if columns.width is None:
            return inside
        width, centre = np.asarray(columns.width, dtype=np.float64), np.asarray(columns.centre, dtype=np.float64)
        z = self.op("Div", self.op("Sub", inside, centre), np.where(columns.soft, width, 1.0))
        z = self.op("Max", self.op("Min", z, LIMIT), -LIMIT)
        bent = self.op("Div", z, BEND)
        root = self.op("Sqrt", self.op("Add", self.op("Mul", bent, bent), 1.0))
        soft = self.op("Add", self.op("Mul", self.op("Div", z, root), width), centre)
        # The map of a column that is not soft is the column: products with 0 and 1 choose.
        chosen = self.op("Mul", soft, columns.soft.astype(float)), self.op("Mul", inside, 1.0 - columns.soft)
        return self.op("Add", *chosen)

    def predicted(self, values: str, loss: Any) -> str:
        """Add what a loss predicts: the exponential where it has a logarithmic link, quantiles in order."""
        if getattr(loss, "positive", False):
            return self.op("Exp", values)
        count = len(getattr(loss, "levels", ()))
        if count < 2:
            return values
        return self.op("TopK", values, np.array([count]), unused=["order"], axis=1, largest=0, sorted=1)

    def model(self, n_features: int, shape: tuple[int, ...]) -> Any:
        """Return the model of the nodes."""
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        ends = [
            helper.make_tensor_value_info(name, double, ("n", *sides))
            for name, sides in (("X", (n_features,)), ("prediction", shape))
        ]
        graph = helper.make_graph(self.nodes, "ridgemark", ends[:1], ends[1:], self.constants)
        operators = [helper.make_opsetid("", _OPSET)]
        oldest = helper.find_min_ir_version_for(operators)  # any runtime that knows the operators reads it
        return helper.make_model(graph, opset_imports=operators, ir_version=oldest)
