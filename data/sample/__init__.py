"""The generated sample benchmark.

Reading order: vocabulary, draws, world, dialogue, pictures, questions, picture_questions, generate.
"""
