"""The Python files of NVIDIA's DeepLearningExamples, unchanged, through what the Jobs run; the checkout is never
committed."""
