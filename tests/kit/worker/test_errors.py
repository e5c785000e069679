"""A student's exception in words."""

from pathlib import Path

import pytest
import torch

from exercise_kit.worker import outputs

GRADING = Path(outputs.__file__).parents[1]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (f'File "{GRADING}/worker/call_trace.py", line 3', 'File "worker/call_trace.py", line 3'),
        (f"in {Path(torch.__file__).parent}/jit/frontend.py", "in torch/jit/frontend.py"),
        ("at /srv/grader/site-packages/torch/x.py", "at site-packages/torch/x.py"),
        ("a / b, 3/4 and cells/5", "a / b, 3/4 and cells/5"),
    ],
)
def test_words_tell_no_folder_of_the_graders(words, shown):
    assert outputs.read_error_message(ValueError(words)) == shown
