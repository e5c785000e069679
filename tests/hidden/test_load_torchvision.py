"""Hidden checks of ``load_torchvision``.

The model that receives the weights is a stand-in with the right parameter names; no two of its numbers, or of
those to be loaded, are equal.
"""

from exercise_kit.judge.claims import as_hidden
from vit_course.exercises.l05_vit.load_torchvision import claims

test_kernels_become_rows_of_the_projection = as_hidden(
    claims.kernels_become_rows_of_the_projection, load_torchvision=0.75
)
test_queries_keys_and_values_stay_in_order = as_hidden(
    claims.queries_keys_and_values_stay_in_order, load_torchvision=0.75
)
test_every_block_gets_its_own_weights = as_hidden(claims.every_block_gets_its_own_weights, load_torchvision=0.75)
test_both_ends_are_loaded = as_hidden(claims.both_ends_are_loaded, load_torchvision=0.75)
test_the_logits_become_torchvisions = as_hidden(claims.the_logits_become_torchvisions, load_torchvision=1.75)
test_the_model_comes_back = as_hidden(claims.the_model_comes_back, load_torchvision=0.5)
test_the_weights_are_copies = as_hidden(claims.the_weights_are_copies, load_torchvision=0.25)
test_the_state_dict_is_left_alone = as_hidden(claims.the_state_dict_is_left_alone, load_torchvision=0.25)
test_a_missing_tensor_is_named = as_hidden(claims.a_missing_tensor_is_named, load_torchvision=0.5)
test_a_tensor_too_many_is_named = as_hidden(claims.a_tensor_too_many_is_named, load_torchvision=0.25)
test_a_tensor_that_does_not_fit_is_named = as_hidden(claims.a_tensor_that_does_not_fit_is_named, load_torchvision=0.5)
