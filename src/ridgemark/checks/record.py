"""What `check` returns: one finding for each thing seen, and all findings of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ridgemark.rows.places import listed

_MOST_NAMED = 12  # columns in a line of code


@dataclass(frozen=True)
class Finding:
    """One thing seen in a table, which prints as a sentence.

    Attributes
    ----------
    fault : str
        What it is, in one word or two: "identifier", "row number", "constant", "repeated rows", "codes", "text",
        "far values", "leak", "groups", "skewed target", "rare class", "unseen levels" or "drift".
    columns : tuple of str
        The columns concerned; none where it concerns rows or the target.
    seen : str
        What was seen, with its numbers.
    why : str
        Why it matters.
    remedy : str
        The option that answers it, in Python and on the command line.
    numbers : mapping
        The numbers of `seen`, by name.
    """

    fault: str
    columns: tuple[str, ...]
    seen: str
    why: str
    remedy: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.seen}: {self.why}; {self.remedy}"


@dataclass(frozen=True)
class DataCheck:
    """All findings of `ridgemark.check`; prints as one line for each.

    Attributes
    ----------
    findings : tuple of Finding
        In the order of the checks.
    n_rows, n_columns : int
        Size of the table, without the target.
    n_looked_at : int
        Rows that were read: all, or stretches spread evenly over a large table.
    """

    findings: tuple[Finding, ...]
    n_rows: int
    n_columns: int
    n_looked_at: int

    def about(self, fault: str) -> tuple[Finding, ...]:
        """Return the findings of one fault."""
        return tuple(finding for finding in self.findings if finding.fault == fault)

    def to_record(self) -> dict[str, Any]:
        """Return everything as plain values, for a machine."""
        return asdict(self) | {"findings": [asdict(finding) for finding in self.findings]}

    @property
    def size(self) -> str:
        """The size of the table in words, and how much of it was read."""
        part = "" if self.n_looked_at == self.n_rows else f", of which {rows(self.n_looked_at)} were looked at"
        return f"{rows(self.n_rows)}, {self.n_columns:,} columns{part}"

    def __str__(self) -> str:
        lines = [f"{finding.fault}: {finding}" for finding in self.findings]
        return "\n".join([self.size, *(lines or ["nothing was found"])])


def named(names: Sequence[str], verb: str = "") -> str:
    """Return columns as the subject of a sentence, with its verb, as for one column."""
    if len(names) == 1:
        return f"column {listed(names)} {verb}".rstrip()
    return f"columns {listed(names)} {'have' if verb == 'has' else verb.removesuffix('s')}".rstrip()


def rows(count: int) -> str:
    """Return a number of rows in words."""
    return f"{count:,} row{'s' * (count != 1)}"


def left_out(names: Sequence[str]) -> str:
    """Return how to leave columns out."""
    return f"leave {'them' if len(names) > 1 else 'it'} out: X.drop(columns={_some(names)}); command line: --drop"


def _some(names: Sequence[str]) -> str:
    """Return a list in Python, shortened."""
    shortened = len(names) > _MOST_NAMED
    return f"[{', '.join(map(repr, names[:_MOST_NAMED]))}{', ...' * shortened}]"


def as_categories(names: Sequence[str]) -> str:
    """Return how to fit columns as categories."""
    return f"categorical_features={_some(names)}; command line: --categorical"


def share(part: float, whole: float) -> str:
    """Return a share in per cent, with more digits where it is small."""
    ratio = part / max(whole, 1)
    return f"{ratio:.0%}" if 0.1 <= ratio <= 0.99 else f"{ratio:.2g}" if ratio < 1e-4 else f"{ratio:.2%}"
