"""``python -m exercise_kit``: the commands of the course that the operator names, where it has none of its own."""

import typer

from exercise_kit.cli.commands import add_commands, run

app = typer.Typer(
    help="Build, release and grade the lessons of the course that VIT_COURSE_COURSE names, and report on them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
add_commands(app)
if __name__ == "__main__":
    run(app, "python -m exercise_kit")
