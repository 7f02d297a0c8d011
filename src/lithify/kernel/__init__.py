"""The kernel language: translation from lowered programs, passes, and the evaluator that checks kernels."""
