"""How numbers, times and names are written on pages and in printed lines."""


def spoken(seconds: float) -> str:
    """Return a time in a suitable unit."""
    unit, size = ("s", 1) if seconds < 90 else ("min", 60) if seconds < 5400 else ("h", 3600)
    return f"{seconds / size:.2g} {unit}"


def printable(name: str) -> str:
    """Return text from a file without invisible characters or those that change the text direction."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)


def shortened(name: str, letters: int = 24) -> str:
    """Return a name of so many letters at most."""
    return name if len(name) <= letters else f"{name[: letters - 11]}...{name[-8:]}"
