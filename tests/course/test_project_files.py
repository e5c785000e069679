"""The files around the package agree with each other and name nothing that they should not."""

import itertools
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from exercise_kit.authoring.build import build_files
from exercise_kit.engine.verdict import Part

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


_REPORT = re.compile(r"<!-- table: report -->.*?<!-- end of table -->", re.DOTALL)


def _list_committed_text_files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: nobody can say which files are committed")
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.suffix not in {".png", ".jpg", ".safetensors"} and path.is_file():
            yield name, path.read_text(encoding="utf-8")


def _read_package_name(requirement):
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


@pytest.mark.parametrize("name", ["docs/grade_json.md", "exercise_kit/templates/release_agents.md"])
def test_what_quotes_the_labels_of_a_report_has_all_of_them(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [label for label in Part if label not in text] == []


def test_environment_yml_installs_this_project_with_known_extras():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    extras = re.search(r"--editable \.\[([\w,]+)\]", text)[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert {"notebooks", "grading"} <= set(extras)
    minor = int(re.search(r"python=3\.(\d+)", text)[1])
    assert 11 <= minor <= 13
    assert "constraints.txt" in text


def test_every_dependency_is_pinned_by_name_and_version_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!]+", pin) for pin in pins), pins
    pinned = {_read_package_name(pin) for pin in pins}
    extras = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *itertools.chain.from_iterable(extras)]
    assert {_read_package_name(each) for each in wanted} - {"vit-course"} <= pinned


def test_what_installs_a_clone_takes_the_versions_that_are_tried():
    told = [
        (name, line)
        for name, text in _list_committed_text_files()
        for line in text.splitlines()
        if re.search(r"pip install[^`]*\[(notebooks|grading|postgres)", line) and "vit-course[" not in line
    ]
    assert len(told) > 4
    assert [each for each in told if not re.search(r"(-c|--constraint) \S*constraints\.txt", each[1])] == []


def test_a_student_needs_neither_nbgrader_nor_jupyterlab():
    assert not {"nbgrader", "jupyterlab"} & {_read_package_name(each) for each in PROJECT["dependencies"]}


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_a_fork_changes_one_line_and_builds(tmp_path):
    """Whatever names the repository or the site names another one after a build with another line."""
    urls = PROJECT["urls"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = (each for each in project.splitlines() if urls["Repository"] in each)
    other = 'urls = { Repository = "https://example.org/school/vit", Homepage = "https://school.example.org/vit" }'
    for path in ROOT.iterdir():
        if path.name != "pyproject.toml":
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "pyproject.toml").write_text(project.replace(line, other), encoding="utf-8")
    built = {path.as_posix(): content.decode() for path, content in build_files(tmp_path).items()}
    old = re.compile("|".join(re.escape(each.split("://")[1].rstrip("/")) for each in urls.values()))
    after = {name: built.get(name, text) for name, text in _list_committed_text_files() if old.search(text)}
    assert after.keys() > {"pyproject.toml", "README.md", "notebooks/00_start.ipynb"}
    # the course's own reports, until its package is built there
    assert [name for name, text in after.items() if old.search(_REPORT.sub("", text))] == ["pyproject.toml"]
    assert "https://school.example.org/vit/" in built["README.md"]
    assert "https://colab.research.google.com/github/school/vit/" in built["README.md"]


def test_everybody_cites_the_same_work():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    _, head, text = (ROOT / "paper.md").read_text(encoding="utf-8").split("---\n", 2)
    paper = yaml.safe_load(head)
    assert citation["title"] == zenodo["title"] == paper["title"]
    assert citation["title"].startswith(PROJECT["name"].replace("-", "_"))
    assert citation["version"] == zenodo["version"] == PROJECT["version"]
    assert PROJECT["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version {PROJECT['version']}" in text
    assert citation["license"] == zenodo["license"] == PROJECT["license"]
    assert f"under the {PROJECT['license']} License" in " ".join(text.split())
    authors = [each["name"] for each in citation["authors"]]
    assert authors == [each["name"] for each in PROJECT["authors"]]
    assert authors == [each["name"] for each in zenodo["creators"]] == [each["name"] for each in paper["authors"]]
    assert citation["keywords"] == zenodo["keywords"]
    assert {each["affiliation"] for each in paper["authors"]} == {each["index"] for each in paper["affiliations"]}


def test_the_paper_cites_what_its_bibliography_holds():
    keys = re.findall(r"^@\w+\{(\S+),$", (ROOT / "paper.bib").read_text(encoding="utf-8"), re.M)
    cited = re.findall(r"\[@([\w-]+)\]", (ROOT / "paper.md").read_text(encoding="utf-8"))
    assert len(keys) == len(set(keys))
    assert set(cited) == set(keys)


def test_the_paper_has_what_its_journal_asks_for():
    _, _, text = (ROOT / "paper.md").read_text(encoding="utf-8").split("---\n", 2)
    headings = re.findall(r"^# (.+)$", text, re.M)
    assert headings[:2] == ["Summary", "Statement of need"]
    assert headings[-1] == "References"
    assert {"Learning objectives and content", "How it is taught", "The story of the project"} <= set(headings)
    assert len(re.sub(r"<!--.*?-->", "", text).split()) < 1100, "around 1,000 words"


def test_the_paper_quotes_the_logs_that_it_names():
    text = " ".join((ROOT / "paper.md").read_text(encoding="utf-8").split())
    named = re.findall(r"`((?:benchmarks|vit_course|docs)/[\w/.]+)`", text)
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []
    scale = json.loads((ROOT / "benchmarks/results/scale.json").read_bytes())
    assert f"took {scale['grading']['core_seconds_each']:.1f} s of a core each" in text
    assert f"took {scale['stock_over_ours']['the_same_notebooks']} times as long" in text


def test_the_cost_of_a_large_class_is_quoted_from_its_log():
    log = json.loads((ROOT / "benchmarks/results/scale.json").read_bytes())
    grading, ratio, times = (
        log["grading"],
        log["stock_over_ours"],
        [each["times"] for each in log["core_seconds_by_lesson"]],
    )
    last = grading["course"][-1]
    assert (last["submissions"], log["again_from_what_is_kept"]["from_cache"]) == (2000, 2000)
    minutes, gigabytes = f"{last['seconds'] / 60:.0f} minutes", f"{last['peak_megabytes'] / 1024:.1f} GB"
    each, over = f"{grading['core_seconds_each']:.1f} s of a core each", f"{ratio['the_same_notebooks']} times as long"
    text = " ".join((ROOT / "docs/many_machines.md").read_text(encoding="utf-8").split())
    assert [words for words in (minutes, gigabytes, each, over) if words not in text] == []
    assert f"took {log['again_from_what_is_kept']['seconds']:.0f} s" in text
    assert f"report {log['report_seconds']:.0f} s" in text
    assert (
        f"({min(times)} times in lesson 03, {max(times)} times in lesson 08; the median is {ratio['median_lesson']})"
        in text
    )


@pytest.mark.parametrize(
    "path",
    [
        *(f".github/workflows/{name}.yml" for name in ("release", "site", "tests")),
        "exercise_kit/templates/grade_workflow.yml",
    ],
)
def test_a_workflow_is_yaml_whose_actions_are_pinned_and_which_grades_nothing_unguarded(path):
    workflow = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w./-]+@(v\d+|release/v\d+)", each) for each in used), used
    assert not any("--no-sandbox" in step.get("run", "") for step in steps)
    assert "write" not in json.dumps(workflow["permissions"])


def test_a_push_runs_the_tests_and_a_release_the_proofs_too():
    """What CI calls is what the README tells a user to call."""
    for name, command in (("tests", ".ci/run"), ("release", "make test-all")):
        workflow = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))
        assert command in [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]


def test_no_committed_file_names_a_path_of_one_machine():
    machine = re.compile(r"(?<![\w.])/(?:work|root|home|farm)/\w|pypi\.org|pythonhosted|/opt/")
    found = [name for name, text in _list_committed_text_files() if machine.search(text)]
    assert found in ([], ["tests/course/test_project_files.py"])


def test_no_test_depends_on_how_fast_a_machine_is():
    """What hangs ends after `tests.waiting.GIVE_UP`, and hypothesis has one profile, in `tests/kit/conftest.py`."""
    near = re.compile(r"\b(?:timeout=\d\d?\b|timeout=\d\d_|(?:wait|join|result)\([1-9]|@settings\(|deadline=None)")
    # what an attack waits for is part of the attack
    tests = [
        (name, text) for name, text in _list_committed_text_files() if re.match(r"tests/(?!e2e/attacks/).*\.py", name)
    ]
    found = {name: near.findall(text) for name, text in tests if near.search(text) and ROOT / name != Path(__file__)}
    assert found == {"tests/kit/conftest.py": ["deadline=None"]}
