"""The numbers that decide: when threads pay, in what pieces they work, when stores pass the caches."""

# Work (operations, plus `BYTE_WORK` for every byte moved) below which a parallel loop runs on the calling thread.
LEAST_WORK = 1 << 19
BYTE_WORK = 1

# Work for which sleeping workers are woken, even if there was none for a while: waking takes as long as this much work.
WAKING_WORK = 1 << 22

# Work for which other Python threads are not let run meanwhile.
SHORT_WORK = 1 << 14

# How long a worker looks for another loop before it sleeps.
SPIN_NANOSECONDS = 100_000

# Operations that cost much more than an addition.
COSTLY = {"exp": 12, "log": 16, "sin": 16, "cos": 16, "tan": 24, "tanh": 20, "erf": 20, "pow": 40, "div": 4, "rem": 8,
          "sqrt": 6, "rsqrt": 8}  # fmt: skip

# Pieces of a parallel loop a thread takes in turn, so that a delayed thread leaves work to the others.
PIECES = 8

# Work of a loop for each of these pieces, at least. With fewer, longer ones, loops over arrays that the cores' own
# caches hold took 1.1 to 1.7 times less time on Sapphire Rapids, and no others took more.
PIECE_WORK = 1 << 22

# Results and temporaries of at least this many bytes, which the caches would not hold until they are read, are written
# past them: a third faster for copies on Zen 5, because the lines are not fetched before they are overwritten.
STREAMED_BYTES = 32 << 20
LEAST_STREAMED_STORE = 32  # bytes; narrower stores do not fill lines fast enough

# Into which caches a long stream is asked for ahead of time (LLVM's locality: 0 past all, 2 from the second on, 3 all),
# by how the processor's name in LLVM begins. On Zen 5 it is best to pass them. On Sapphire Rapids what passes the
# second cache waits in the few buffers of the first: sums of long arrays ran 2.5 times slower so, while asking the
# second cache gains 10 to 20 % over not asking where results are written or rows are short. Of two numbers, the second
# is for arrays that the last cache has room for: sums of 64 MiB ran 2 to 5 % faster there with lines in the first cache
# at once; products of 1 GiB matrices with vectors ran 5 to 10 % slower.
STREAM_LOCALITY = {"znver": (0, 0), "": (2, 3)}

# Private arrays above this size are allocated per thread rather than on the stack.
LARGEST_ON_STACK = 1 << 16

# Every buffer that we allocate starts at a multiple of this.
ALIGNMENT = 64

# Instructions that do nothing, before each one on tile registers. Measured on Emerald Rapids, products of bf16 at 1024,
# 1536 and 2048 cubed, in turn with those without, in three processes each: 0.98 to 1.14 times the rate, 1.13 to 1.26
# while others kept the host busy (a thread that shares the core, as it seems). A loop over tiles alone took 0.68 to
# 0.71 of the time then; with 4 of them 0.82, with 16 as with 8.
BETWEEN_TILES = 8

# Iterations that are written one after another, of loops that add to vectors in registers, and how many sums there are
# at least in one. Measured on Emerald Rapids (f32, a host that others use): 1.17, 1.03, 1.015 and 1.0 times as fast for
# 256, 512, 1024 cubed and 1000 x 1001 x 1003; two of them 1.12, 1.035, 1.01.
TIMES_IN_TURN, LEAST_SUMS_IN_TURN = 4, 4
