"""The exercises of the course: public checks, known mistakes, and what they are measured with.

How a mistake looks "in training" means lesson 06: square color pictures, float32, the course's loop; for weights that
are loaded it is the fine-tuning that follows. What an architecture mistake does was measured: benchmarks/broken_vit.py
trains every one of them and writes in_training.json. All others were decided one by one.
"""
