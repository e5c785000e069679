"""A roster from a spreadsheet of any country, and what is said of the lines that are none."""

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from exercise_kit.__main__ import app
from exercise_kit.nbgrader.roster import RosterError, Student, import_roster, read_roster

ADA = Student("ada", "Ada", "Lovelace", "ada@example.org")
PLAIN = "id,first,last,email\nada,Ada,Lovelace,ada@example.org\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        PLAIN.encode("utf-8-sig"),
        PLAIN.encode("utf-16"),
        PLAIN.replace(",", ";").replace("\n", "\r\n").encode(),
        PLAIN.replace(",", "\t").encode(),
        b"Email,Last name,First name,Student ID\nada@example.org,Lovelace,Ada,ada\n\n",
        b"id,first_name,last_name,email,lms_user_id\nada,Ada,Lovelace,ada@example.org,7\n",
    ],
)
def test_a_spreadsheet_s_file_is_read(tmp_path, content):
    (tmp_path / "roster.csv").write_bytes(content)
    read = read_roster(tmp_path / "roster.csv")
    assert read.students == (ADA,)
    assert not read.problems


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name,mail\nada,a@b\n", "no column 'id' in its first line, which is: name, mail"),
        (b"", "the file is empty"),
        (b"\xe9t\xe9,id\n", "not UTF-8"),
        (b"PK\x03\x04\x00\x00", "no column 'id'"),
        (b'id,first\n"ada,Ada\n', "no roster"),
    ],
)
def test_what_is_no_roster_gets_a_sentence(tmp_path, content, words):
    (tmp_path / "roster.csv").write_bytes(content)
    with pytest.raises(RosterError, match=words):
        read_roster(tmp_path / "roster.csv")
    with pytest.raises(RosterError, match="No such file"):
        read_roster(tmp_path / "none.csv")


def test_a_malformed_line_costs_itself_alone(tmp_path):
    lines = [PLAIN.strip(), ",No,Id,", "ben", "../eve,E,V,e@x", "ada,A,B,c@d", "cleo,Cleo,,"]
    (tmp_path / "roster.csv").write_text("\n".join(lines))
    read = read_roster(tmp_path / "roster.csv")
    assert read.students == (ADA, Student("cleo", "Cleo"))
    assert [problem.partition(":")[0] for problem in read.problems] == [
        "line 3 has no id",
        "line 4 has 1 columns, where the first line names 4",
        "line 5",
        "line 6",
    ]


@pytest.mark.parametrize("odd", ["a\\b", "a#b", "a?b", "a%20b"])
def test_an_id_that_formgrader_cannot_name_is_refused_at_the_start(tmp_path, odd):
    (tmp_path / "roster.csv").write_text(f"{PLAIN}{odd},A,B,c@d\n")
    read = read_roster(tmp_path / "roster.csv")
    assert read.students == (ADA,)
    (problem,) = read.problems
    assert f"'{odd}': formgrader's buttons cannot name" in problem


def test_names_go_into_the_gradebook_and_nobody_is_removed(tmp_path):
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as gradebook:
        gradebook.add_student("ada", email="old@example.org")
        gradebook.add_student("guest")
    (tmp_path / "submitted" / "dan").mkdir(parents=True)
    (tmp_path / "roster.csv").write_text(PLAIN + "ben,Ben,Bit,\n")
    done = import_roster(read_roster(tmp_path / "roster.csv"), tmp_path)
    assert (done.new, done.changed, done.unlisted, done.without_work) == (
        ("ben",),
        ("ada",),
        ("dan", "guest"),
        ("ada", "ben"),
    )
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as gradebook:
        assert gradebook.find_student("ada").email == "ada@example.org"
        assert gradebook.find_student("ben").last_name == "Bit"
        assert gradebook.find_student("guest").last_name is None
    again = import_roster(read_roster(tmp_path / "roster.csv"), tmp_path)
    assert (again.new, again.changed, again.unchanged) == ((), (), ("ada", "ben"))


def test_the_command_tells_who_is_missing_and_which_lines_were_left_out(tmp_path):
    (tmp_path / "nbgrader_config.py").touch()
    (tmp_path / "submitted" / "dan").mkdir(parents=True)
    (tmp_path / "roster.csv").write_text(PLAIN + ",,,\nx\n")
    done = CliRunner().invoke(app, ["roster", str(tmp_path / "roster.csv"), "--class", str(tmp_path)])
    assert done.exit_code == 1
    assert "In the gradebook from roster.csv: 1 new, 0 changed" in done.output
    assert "roster.csv, line 4 has 1 columns" in done.output
    assert "1 in the class, but not in the file: dan." in done.output
