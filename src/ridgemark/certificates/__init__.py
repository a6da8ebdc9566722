"""How far a fit is from exact kernel ridge regression: numbers with their certainty, in words a user understands."""

from ridgemark.certificates.audit import KERNEL_ENTRIES, audit
from ridgemark.certificates.operator import operator_certificate
from ridgemark.certificates.points import distance_at
from ridgemark.certificates.record import Certificate, theorem_3_promise, what_would_help
from ridgemark.certificates.trace import trace_certificate

__all__ = [
    "KERNEL_ENTRIES",
    "Certificate",
    "audit",
    "distance_at",
    "operator_certificate",
    "theorem_3_promise",
    "trace_certificate",
    "what_would_help",
]
