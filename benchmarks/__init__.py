"""What is measured, against whom, and the recorded results (`results/`).

`python -m benchmarks` runs everything; a benchmark is a module with `main(quick: bool)`.
"""
