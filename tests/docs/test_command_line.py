"""The page of commands is what the commands say of themselves."""

import re
from pathlib import Path

from tools.command_line import PAGE, all_commands, page

ROOT = Path(__file__).parents[2]


def test_the_page_of_commands_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tools/command_line.py"


def test_commands_shown_in_the_documentation_exist_with_their_options():
    shown = [
        line
        for path in (ROOT / "README.md", PAGE)
        for line in re.findall(r"^\$ ridgemark (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]
    assert shown
    for line in shown:
        name, *words = line.split()
        options = {spelling for one in all_commands()[name].params for spelling in one.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_every_option_says_what_it_is_for():
    for command in all_commands().values():
        for option in command.params:
            assert not option.opts[0].startswith("--") or option.help, (command.name, option.name)
