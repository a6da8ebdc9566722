"""Certificates: bounds on the distance of a fit from exact kernel ridge regression, with their certainty."""

from typing import Any

import numpy as np

from ridgemark.backends import Indices
from ridgemark.certificates.audit import KERNEL_ENTRIES, audit
from ridgemark.certificates.classes import audit_classes
from ridgemark.certificates.losses import audit_loss
from ridgemark.certificates.points import distance_at
from ridgemark.certificates.record import Certificate, theorem_3_promise, what_would_help
from ridgemark.certificates.residual import operator_certificate, trace_certificate
from ridgemark.errors import ParameterError
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

__all__ = [
    "KERNEL_ENTRIES",
    "Certificate",
    "audit",
    "audit_classes",
    "audit_loss",
    "certify",
    "distance_at",
    "operator_certificate",
    "theorem_3_promise",
    "trace_certificate",
    "what_would_help",
]

KINDS = ("audit", "operator", "trace")


def certify(
    kind: Any,
    passes: RowPasses,
    fit: LandmarkFit,
    landmark_indices: Indices | None,
    failure_probability: float,
    rng: np.random.Generator,
) -> Certificate:
    """Return the certificate of this kind; `passes` must read the rows of the fit."""
    if kind == "audit":
        return audit(passes, fit, rng=rng, landmark_indices=landmark_indices, failure_probability=failure_probability)
    if kind == "operator":
        return operator_certificate(passes, fit, rng=rng, failure_probability=failure_probability)
    if kind == "trace":
        return trace_certificate(fit)
    raise ParameterError(f"the kind of a certificate must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
