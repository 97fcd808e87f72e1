"""A command imports what it needs, and the help says what the commands themselves say."""

import subprocess
import sys

import pytest

from serve_app.cli.main import Commands
from serve_app.cli.on_use import registered

HEAVY = ("scipy", "sqlalchemy", "ray", "ingest.run", "policies.learned", "rjieba")


@pytest.mark.parametrize("name", Commands.on_use)
def test_the_help_says_what_a_command_says_of_itself(name):
    listed = Commands(name="tactician").commands[name]
    command = registered(Commands.on_use[name].modules)[name]
    assert command.get_short_help_str(200).rstrip(".") == listed.help.rstrip(".")


def test_every_registered_command_is_listed():
    modules = {command.modules for command in Commands.on_use.values()}
    assert {name for m in modules for name in registered(m)} == set(Commands.on_use)


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["retrieve", "--help"]])
def test_help_and_questions_import_nothing_of_training_and_ingestion(arguments):
    program = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr))"
        f"\nsys.argv = ['tactician', *{arguments}]\n"
        "from serve_app.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (0, "[]") == (done.returncode, done.stderr.strip())
    assert "Usage: tactician" in done.stdout
