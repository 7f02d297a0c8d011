"""Matrix multiplication, C = epilogue(op(A) op(B), ..): any sums of products of rows with columns, batched, with work
before and after, and what parametrised strategies there are for it.

    problem    which programs these are, in what normal form, and how they are named
    register   the register tile: the innermost loops, one reduction of tiles
    cpu        blocks, packed panels and threads for CPUs
    gpu        tiles in local memory and in registers for GPUs; gpu_space: their parameters
    family     the family `gemm` for the tables of `families`
"""
