"""How numbers, times and names are written on pages and in printed lines."""

_LETTERS = 24  # of a name in a figure or a table


def spoken(seconds: float) -> str:
    """Return a time in a suitable unit."""
    unit, size = ("s", 1) if seconds < 90 else ("min", 60) if seconds < 5400 else ("h", 3600)
    return f"{seconds / size:.2g} {unit}"


def printable(name: str) -> str:
    """Return text from a file without invisible characters or those that change the text direction."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)


def shortened(name: str) -> str:
    """Return a name of at most 24 letters."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 11]}...{name[-8:]}"
