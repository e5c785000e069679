"""The commands that any course gets: its lessons built, its classes made, graded, rehearsed and reported on."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exercise_kit.cli.class_lessons import (
    build_class,
    find_class_with_lessons,
    new_exercise,
    open_lessons_root,
    prove_exercises,
    require_clone,
)
from exercise_kit.cli.doctor import doctor
from exercise_kit.cli.errors import exit_on_errors, needs, stop
from exercise_kit.cli.export import export
from exercise_kit.cli.simulate import simulate
from exercise_kit.engine.course import CourseError, course
from exercise_kit.engine.release_settings import ReleaseSettings, Route
from exercise_kit.files import write
from exercise_kit.progress_bar import progress_bar
from exercise_kit.quoting import make_legible, make_one_line
from exercise_kit.submission.released import CLONE, CONFIG, find_current_class, is_class, remember_class

# a path or a command is never broken over two lines: it is there to be copied
console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)
BOOK, PAGE = "gradebook.db", "similarity.html"  # in a class folder
_MOST_NAMES = 10


Lessons = Annotated[
    Path,
    typer.Option(help="The clone of the course whose lessons are used.", resolve_path=True, callback=require_clone),
]


def build(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a built notebook is stale.")] = False,
    root: Lessons = CLONE,
) -> None:
    """Build the notebooks from solutions/*.py; in a class folder, those of its own exercises, and prove these."""
    if (class_dir := find_class_with_lessons()) is not None:
        build_class(class_dir, root, check)
        return
    with needs("grading"):
        from exercise_kit.authoring.build import build as build_notebooks
        from exercise_kit.authoring.lesson import AuthoringError
    with exit_on_errors(AuthoringError):
        built = build_notebooks(root, check=check)
    for path in (*built.written, *built.stale):
        console.print(f"{'stale  ' if check else 'written'} {path}", markup=False)
    for path in built.counts:
        console.print(f"an old count in {path}: the next build writes it", markup=False)
    for path in built.orphaned:
        console.print(f"without a source: {path}; remove it", markup=False)
    if built.stale:
        raise stop("Some notebooks or tables are not what their sources say. Run: vit-course build")
    if built.orphaned:
        raise stop("Some notebooks have no source. Remove them, or write solutions/NN_topic.py for them.")
    notebooks = [
        path for path in (*built.written, *built.unchanged) if path.suffix == ".ipynb" and path.parts[0] != "docs"
    ]
    console.print(f"{len(notebooks)} notebooks are up to date.")


def new_class(
    directory: Annotated[Path, typer.Argument(help="The folder to make; it must not exist, or be empty.")],
    root: Lessons = CLONE,
) -> None:
    """Make an nbgrader course folder, ready for generate_assignment and formgrader."""
    with needs("grading"):
        from exercise_kit.authoring.build import build as build_notebooks
        from exercise_kit.authoring.lesson import AuthoringError
        from exercise_kit.nbgrader.class_folder import ClassFolderError
        from exercise_kit.nbgrader.class_folder import new_class as make
    with (
        exit_on_errors(ClassFolderError),
        open_lessons_root(root) as lessons_root,
        progress_bar(errors, "making the class"),
    ):
        made = make(directory, lessons_root)
    remember_class(made.path)
    console.print(f"Made {made.path} with {len(made.lessons)} lessons: {', '.join(made.lessons)}.", markup=False)
    with exit_on_errors(AuthoringError), progress_bar(errors, "comparing the lessons with their sources"):
        stale = build_notebooks(root, check=True, pages=False).stale
    if stale:
        console.print("Older than their sources: " + ", ".join(str(path) for path in stale), markup=False)
        console.print("The class has them as they are. For the newest: vit-course build, and a new class.")
    console.print("Next (the folder's README.md says more):")
    console.print(f"  cd {shlex.quote(str(made.path))}", markup=False)
    console.print(f"  nbgrader generate_assignment {made.lessons[0]}", markup=False)


def release(
    directory: Annotated[Path, typer.Argument(help="A new or empty folder, or an earlier release to be replaced.")],
    as_zip: Annotated[bool, typer.Option("--zip", help="Write the same files into DIRECTORY.zip, too.")] = False,
    route: Annotated[
        Route | None, typer.Option(help="The core's lessons alone, or all; else what the class has set.")
    ] = None,
    borrow: Annotated[
        bool | None, typer.Option("--borrow/--no-borrow", help="Whether students may borrow the course's parts.")
    ] = None,
    root: Lessons = CLONE,
) -> None:
    """Make what students get: notebooks, wheel, AGENTS.md; no solutions, no hidden check."""
    with needs("grading"):
        from exercise_kit.authoring import release as releasing
        from exercise_kit.authoring.build import build as build_notebooks
        from exercise_kit.authoring.class_lessons import copy_packages_for_wheel, read_settings
        from exercise_kit.authoring.lesson import AuthoringError
    class_dir = find_class_with_lessons()
    with exit_on_errors(AuthoringError):
        if class_dir is None and (stale := build_notebooks(root, check=True, pages=False).stale):
            raise stop(f"{stale[0]} is not what its source says. Run: vit-course build")
        settings = read_settings(class_dir).release if class_dir else ReleaseSettings()
    settings = ReleaseSettings(route or settings.route, settings.borrow if borrow is None else borrow)
    with exit_on_errors(releasing.ReleaseError), open_lessons_root(root) as lessons_root:
        if class_dir:
            prove_exercises(class_dir)
            sheet = [releasing.SHEET] if (root / releasing.SHEET).is_file() else []
            copy_packages_for_wheel(lessons_root, root, [*releasing.list_package_files(root), *sheet])
        made = releasing.release(directory, lessons_root, settings)
        packed = releasing.as_zip(made) if as_zip else None
    console.print(f"Made {made.path} with {len(made.files) - 1} files: no solutions, no hidden check.", markup=False)
    for path in made.put_aside:
        console.print(f"Somebody had changed a file; theirs is now {path}", markup=False)
    if packed:
        console.print(f"The same in one file: {packed}", markup=False)


def grade(
    paths: Annotated[
        list[Path], typer.Argument(help="Notebooks, .py files, folders of them, or nbgrader's submitted/ tree.")
    ],
    class_dir: Annotated[
        Path | None,
        typer.Option("--class", metavar="DIR", help="Your class folder; else the one that the command runs in."),
    ] = None,
    exercise: Annotated[str | None, typer.Option(help="Grade this exercise alone.")] = None,
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many submissions are graded at the same time.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="The address of a dask scheduler, whose workers grade.", metavar="ADDRESS")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run ended; say how many results were taken over.")
    ] = False,
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="Run students' code unguarded, with your rights.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade all again, whatever was graded before.")] = False,
    device: Annotated[
        str, typer.Option(help="Where students' code computes: cpu, cuda, or cuda:1 for the second GPU.")
    ] = "cpu",
) -> None:
    """Grade submissions with the hidden checks, each in a sandbox of its own."""
    with needs("grading"):
        from exercise_kit.batch.locations import GradeError
        from exercise_kit.cli.grade import GradeOptions, GradeUsageError
        from exercise_kit.cli.grade import grade as grade_paths
        from exercise_kit.sandbox.limits import Limits
    options = GradeOptions(
        paths,
        class_dir,
        json,
        jobs,
        scheduler,
        resume,
        exercise=exercise,
        sandboxed=not no_sandbox,
        fresh=fresh,
        limits=Limits(device=device),
    )
    try:
        with exit_on_errors(), needs("grading"):
            every_one = grade_paths(options, console, errors)
    except GradeUsageError as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from None
    except GradeError as error:
        raise stop(str(error)) from None
    except KeyboardInterrupt:
        raise stop("Stopped. What was graded is kept; the same command goes on from there.", 130) from None
    if not every_one:
        raise typer.Exit(1)


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A class folder, or a JSON file that vit-course grade wrote.")
    ],
    out: Annotated[Path | None, typer.Option(help="The page's file; else report.html in the class folder.")] = None,
    lesson: Annotated[str | None, typer.Option(help="Report on this lesson alone.")] = None,
    names: Annotated[
        Path | None, typer.Option(help="Write a second page to this file, which tells who is who: keep it private.")
    ] = None,
) -> None:
    """Write one page about a class: scores, mistakes, what to teach next; without names, to be shown in a lecture."""
    with needs("grading"):
        from exercise_kit.report.collect import ReportError
        from exercise_kit.report.page import write_report
    with exit_on_errors(ReportError), needs("grading"):
        written = write_report(directory, out, lesson, names)
    # a path is never broken over two lines: it is there to be copied
    console = Console(highlight=False, soft_wrap=True)
    for sentence in written.sentences:
        console.print(sentence, markup=False)
    book = written.work.manual_grading
    if book and book.problem:
        console.print(make_legible(f"What waits to be graded by hand is not known: {book.problem}."), markup=False)
        console.print(
            "The answers shown may hold names that only the gradebook knows: look at the page before you show it."
        )
    console.print(f"\nThe report: {written.page}", markup=False)
    if written.names:
        console.print(f"Who is who, for you alone: {written.names}", markup=False)


def roster(
    file: Annotated[Path, typer.Argument(help="A CSV file whose first line is id,first,last,email.")],
    class_dir: Annotated[
        Path | None,
        typer.Option("--class", metavar="DIR", help="Your class folder; else the one that the command runs in."),
    ] = None,
) -> None:
    """Tell nbgrader who is in the class: ids (the folders in submitted/), names, addresses."""
    with needs("grading"):
        from exercise_kit.nbgrader.roster import RosterError, import_roster, read_roster
    folder = class_dir or find_current_class()
    if folder is None or not is_class(folder):
        raise stop(f"{folder or 'This'} is no class folder: it has no {CONFIG}; name yours with --class DIR")
    with exit_on_errors(RosterError):
        read = read_roster(file)
        done = import_roster(read, folder.resolve())
    console = Console(highlight=False, soft_wrap=True)
    counts = f"{len(done.new)} new, {len(done.changed)} changed, {len(done.unchanged)} as before"
    console.print(f"In the gradebook from {file.name}: {counts}.", markup=False)
    for sentence in (
        *(f"{file.name}, {problem}." for problem in read.problems),
        *_write_count_and_names("in the class, but not in the file", done.unlisted),
        *_write_count_and_names("in the file, but without work in submitted/", done.without_work),
    ):
        console.print(make_one_line(sentence), markup=False)
    if read.problems:
        raise typer.Exit(1)


def _write_count_and_names(label: str, names: tuple[str, ...]) -> Iterable[str]:
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        yield f"{len(names)} {label}: {', '.join(names[:_MOST_NAMES])}{more}."


def similarity(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A class folder.")],
    lesson: Annotated[str | None, typer.Option(help="Compare the answers to this lesson alone.")] = None,
    out: Annotated[Path | None, typer.Option(help="The page's file; else similarity.html in the class folder.")] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write no page, but files for JPlag, Dolos or compare50 to this new folder.")
    ] = None,
) -> None:
    """Show pairs of submissions that are alike beyond what the task forces: to ask about, never a score."""
    with needs("similarity"):
        from exercise_kit.report import similarity as engine
    console = Console(highlight=False, soft_wrap=True)
    with exit_on_errors(engine.SimilarityError):
        if export is None:
            target = out or directory / PAGE
            count = engine.write_similarity_page(directory, target, lesson)
            console.print(f"{count} {'pair' if count == 1 else 'pairs'} alike, for you alone: {target}", markup=False)
            return
        found = engine.read_answer_texts(directory, lesson)
        count = engine.export(found, export)
    console.print(f"{count} students' answers are in {export}. For instance:", markup=False)
    for name in found:
        home = shlex.quote(str(export / name))
        for command in (
            f"java -jar jplag.jar -l python3 -bc {home}/basecode {home}/submissions",
            f"dolos run -l python --ignore {home}/basecode/basecode.py {home}/submissions/*.py",
            f"compare50 {home}/submissions/*.py -d {home}/basecode/*.py",
        ):
            console.print(f"  {command}", markup=False)


def progress(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Where your notebooks are; else this folder, or your Drive.")
    ] = None,
    card: Annotated[Path | None, typer.Option(help="Draw a card with your numbers to this file: .png or .svg.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what is kept of your progress.")] = False,
) -> None:
    """Show what is done, what it earned, and what comes next; kept in a file of yours, for nobody else."""
    from exercise_kit.progress.log import FILE, LogError
    from exercise_kit.progress.log import delete as delete_log

    console = Console(highlight=False)
    folder = _find_log_folder(directory, FILE)
    if delete:
        with exit_on_errors():
            gone = delete_log(folder / FILE)
        names = ", ".join(str(each) for each in gone)
        console.print(
            f"Deleted: {names}" if gone else f"No progress is kept in {folder}.", markup=False, soft_wrap=True
        )
        return
    if not (folder / FILE).exists():
        raise stop(f"No progress is kept in {folder}: the lessons' checks write {FILE} there while you work.")
    from exercise_kit.progress.show import show
    from exercise_kit.progress.summary import read_progress

    with exit_on_errors(LogError):
        found = read_progress(folder)
    show(found, console)
    if card:
        if card.suffix.lower() not in (".png", ".svg"):
            raise stop(f"{card}: a card is a .png or an .svg")
        picture = io.BytesIO()
        found.card().savefig(picture, format=card.suffix[1:].lower(), dpi=150)
        with exit_on_errors():
            write(card, picture.getvalue())
        console.print(f"Drawn: {card}", markup=False, soft_wrap=True)


def _find_log_folder(directory: Path | None, file: str) -> Path:
    """Where the log is: in the folder, beside it where each lesson has its own, or among the notebooks of a clone."""
    if directory is None:
        from exercise_kit.engine.own_folder import find_own_folder

        directory = find_own_folder()
    if not directory.exists():
        raise stop(f"there is no folder {directory}")
    if not directory.is_dir():
        raise stop(f"{directory} is not a folder; name the one that your notebooks are in")
    if (directory / CONFIG).exists() or (directory / BOOK).exists():
        raise stop(f"{directory} is a class folder, with many students; for them: vit-course report {directory}")
    around = (directory, directory / "notebooks", directory.resolve().parent)
    return next((each for each in around if (each / file).is_file()), directory)


def misconceptions(
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
) -> None:
    """List every mistake that the checks know by name."""
    from exercise_kit.engine.library import make_misconceptions_json, make_misconceptions_table

    find_class_with_lessons()
    if json is None:
        console.print(make_misconceptions_table(), soft_wrap=False)
    elif json == "-":
        typer.echo(make_misconceptions_json())
    else:
        with exit_on_errors():
            write(Path(json), f"{make_misconceptions_json()}\n".encode())


def add_commands(app: typer.Typer) -> None:
    """Give a course's command line those of the kit, in the order of its help."""
    app.command()(build)
    app.command("new-class")(new_class)
    app.command("new-exercise")(new_exercise)
    app.command()(release)
    for command in (grade, doctor, simulate, report, export, roster, similarity, misconceptions, progress):
        app.command()(command)


def run(app: typer.Typer, name: str) -> None:
    """Run a course's command line under its name; a course that is not there ends it."""
    try:
        course()
    except CourseError as error:
        sys.exit(str(error))
    app(prog_name=name)
