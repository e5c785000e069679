"""The packaged file of what training shows is what broken_vit.py's kept results say."""

import json

from broken_vit import RESULTS, RIGHT, SELECTIONS, Row
from for_library import LIBRARY, collect_training_outcomes


def test_the_packaged_file_is_what_the_kept_results_say():
    result = json.loads((RESULTS / SELECTIONS["all"].file).read_text())
    right, *wrong = (Row(**each) for each in result["rows"])
    assert right.name == RIGHT
    made = collect_training_outcomes(right, wrong, result["not_trained"], result["model"]["num_classes"])
    assert json.loads(LIBRARY.read_text()) == made, "run benchmarks/broken_vit.py with --list: it writes the file anew"
