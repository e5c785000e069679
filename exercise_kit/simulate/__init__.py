"""Classes of invented students whose true scores are known, to rehearse grading on."""
