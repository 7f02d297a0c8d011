"""Kernels: the language, the translation from lowered programs, the passes, the evaluator.

A way through, in the order of the work: `ir` is the language, and `show` its text. `translate.translate` takes a term
to a program in it, by the functions of the `translate_*` modules over the state in `builder`: what is read and what is
written are the two kinds of value in `places`, guards are in `conditions`, the launch and its indices in `hardware`,
the check of accumulation in place in `inplace`. `passes` then cut loops, drop conditions, share memory and insert
barriers (`walk` is how code is gone through and rebuilt). `evaluator` runs the result and reports what a device would
leave undefined.
"""
