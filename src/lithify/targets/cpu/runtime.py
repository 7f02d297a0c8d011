"""The pool of threads, in native code: no interpreter lock is taken between two parallel loops.

A kernel's parallel loop calls `lithify_dispatch`; its range is cut into as many equal shares as there are threads, each
in some pieces. The caller and the workers take pieces of their own shares first, so that a thread meets the same part
of an array at each call, and finds it in the caches of its core; then what is left of the others'. A worker that comes
after all pieces have been taken is not waited for. The workers are Python threads that stay in one native call
(`lithify_worker`) until the pool is closed.

A share's counter says how many of its pieces have been taken, and in which loop: nobody has to set it back.

A worker that has finished looks for more work for a while before it sleeps, because waking it costs more than many
loops take: after each loop, for as long as the pool's limit. Sleeping workers are woken only for much work, or when the
loop before was as recent, so that loops now and then cause no waiting. The caller waits for its workers in the same
way. One word, STATE, says everything that both must agree on: the number of the loop,
whether it is still open to workers, and how many have joined it.

The text is LLVM IR over POSIX threads; where they are missing there is no pool and programs run on the calling thread.
"""

from __future__ import annotations

import sys

from lithify.targets.cpu import policy

# The pool in memory, as 8-byte words. What different threads write stands in cache lines of its own.
MUTEX, WORK_READY, WORK_DONE = 0, 16, 32  # room for the platform's pthread types
STATE, TASK, FRAME, EXTENT, PIECE = 48, 49, 50, 51, 52
# Set once: the threads, the longest spinning in nanoseconds, the CPU where the caller works (-1: anywhere), and the
# addresses of the sets of CPUs of the process and of the caller.
THREADS, SPIN, PLACE, ALL_CPUS, ONE_CPU, CLOSED = 56, 57, 58, 59, 60, 61
SLEEPERS, WAITING = 64, 65
BUSY, LAST = 72, 73
TAKEN = 80  # the counters of the shares; side by side: a thread that has done its own looks at all
SET_BYTES = 128  # of a set of CPUs

_JOINED, _OPEN, _STOP, _LOOP = 0xFFFF, 1 << 16, 1 << 17, 18  # the parts of STATE
_PIECES = (1 << _LOOP) - 1  # of a counter in TAKEN, the pieces; the loop is where STATE has it


def words(threads: int) -> int:
    """The 8-byte words of a pool of so many threads."""
    return TAKEN + threads


_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def source(architecture: str) -> str:
    """The module for an architecture, the first part of LLVM's triple."""
    declared, pause = _PAUSES.get({"arm64": "aarch64"}.get(architecture, architecture), ("", ""))
    clock = 6 if sys.platform == "darwin" else 1  # CLOCK_MONOTONIC
    placed = _PLACED if sys.platform == "linux" else _UNPLACED
    return f"{declared}\n{placed}\n" + _SOURCE.replace("PAUSE", pause).replace("CLOCK", str(clock))


# The caller stays on its CPU while it works, so that it does not meet a worker on that one's. A caller that is there
# already is left alone, and so is one that has a set of CPUs of its own.
_PLACED = f"""
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @memcmp(ptr, ptr, i64)

define internal i1 @place_caller(ptr %pool) {{
entry:
  %own = alloca [{SET_BYTES} x i8], align 8
  %place.p = getelementptr i64, ptr %pool, i64 {PLACE}
  %place = load i64, ptr %place.p
  %free = icmp slt i64 %place, 0
  br i1 %free, label %leave, label %where
where:
  %cpu = call i32 @sched_getcpu()
  %here = sext i32 %cpu to i64
  %there = icmp eq i64 %here, %place
  br i1 %there, label %leave, label %compare
compare:
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 {SET_BYTES}, i1 false)
  %got = call i32 @sched_getaffinity(i32 0, i64 {SET_BYTES}, ptr %own)
  %all.p = getelementptr i64, ptr %pool, i64 {ALL_CPUS}
  %all = load ptr, ptr %all.p
  %difference = call i32 @memcmp(ptr %own, ptr %all, i64 {SET_BYTES})
  %usual = icmp eq i32 %difference, 0
  br i1 %usual, label %move, label %leave
move:
  %one.p = getelementptr i64, ptr %pool, i64 {ONE_CPU}
  %one = load ptr, ptr %one.p
  %r = call i32 @sched_setaffinity(i32 0, i64 {SET_BYTES}, ptr %one)
  ret i1 true
leave:
  ret i1 false
}}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @release_caller(ptr %pool) {{
entry:
  %all.p = getelementptr i64, ptr %pool, i64 {ALL_CPUS}
  %all = load ptr, ptr %all.p
  %r = call i32 @sched_setaffinity(i32 0, i64 {SET_BYTES}, ptr %all)
  ret void
}}
"""

_UNPLACED = """
define internal i1 @place_caller(ptr %pool) {
  ret i1 false
}

define internal void @release_caller(ptr %pool) {
  ret void
}
"""

# Until `look` leaves: a pause, and every 16 turns a look at the clock; asleep after %longest since %since.
_SPINNING = """\
spin:
  PAUSE
  %next.turn = add i64 %turn, 1
  %some = and i64 %turn, 15
  %asks = icmp eq i64 %some, 15
  %never = icmp eq i64 %longest, 0
  %check = or i1 %asks, %never
  br i1 %check, label %clock, label %idle
clock:
  %time = call i64 @now()
  %spent = sub i64 %time, %since
  %tired = icmp sge i64 %spent, %longest
  br i1 %tired, label %sleep, label %idle
idle:
  br label %look
"""

_SOURCE = f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()

define void @lithify_pool_init(ptr %pool) {{
entry:
  %ready = getelementptr i64, ptr %pool, i64 {WORK_READY}
  %finished = getelementptr i64, ptr %pool, i64 {WORK_DONE}
  %a = call i32 @pthread_mutex_init(ptr %pool, ptr null)
  %b = call i32 @pthread_cond_init(ptr %ready, ptr null)
  %c = call i32 @pthread_cond_init(ptr %finished, ptr null)
  ret void
}}

; nanoseconds since some time
define internal i64 @now() {{
entry:
  %time = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %rest.p = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.p
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}}

; pieces of the range of a loop by its number: of the worker's own share, then of those after it, until all are taken
define internal void @take_pieces(ptr %pool, i64 %loop, ptr %task, ptr %frame, i64 %extent, i64 %piece, i64 %worker) {{
entry:
  %threads.p = getelementptr i64, ptr %pool, i64 {THREADS}
  %threads = load i64, ptr %threads.p
  %each = udiv i64 %extent, %threads
  %longer = urem i64 %extent, %threads
  br label %next
next:
  %tried = phi i64 [ 0, %entry ], [ %more, %used.up ]
  %all = icmp eq i64 %tried, %threads
  br i1 %all, label %done, label %choose
choose:
  %far = add i64 %worker, %tried
  %wraps = icmp uge i64 %far, %threads
  %round = select i1 %wraps, i64 %threads, i64 0
  %share = sub i64 %far, %round
  %is.longer = icmp ult i64 %share, %longer
  %before = select i1 %is.longer, i64 %share, i64 %longer
  %even = mul i64 %each, %share
  %first = add i64 %even, %before
  %one = zext i1 %is.longer to i64
  %size = add i64 %each, %one
  %last = add i64 %first, %size
  %place = add i64 %share, {TAKEN}
  %taken.p = getelementptr i64, ptr %pool, i64 %place
  br label %again
again:
  %old = load atomic i64, ptr %taken.p seq_cst, align 8
  %of = lshr i64 %old, {_LOOP}
  %known = icmp eq i64 %of, %loop
  %fresh = shl i64 %loop, {_LOOP}
  %now = select i1 %known, i64 %old, i64 %fresh
  %taken = and i64 %now, {_PIECES}
  %passed = mul i64 %taken, %piece
  %begin = add i64 %first, %passed
  %some = icmp slt i64 %begin, %last
  br i1 %some, label %claim, label %used.up
claim:
  %then = add i64 %now, 1
  %swap = cmpxchg ptr %taken.p, i64 %old, i64 %then seq_cst seq_cst
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %run, label %again
run:
  %limit = add i64 %begin, %piece
  %beyond = icmp sgt i64 %limit, %last
  %end = select i1 %beyond, i64 %last, i64 %limit
  call void %task(i64 %begin, i64 %end, ptr %frame, i64 %worker)
  br label %again
used.up:
  %more = add i64 %tried, 1
  br label %next
done:
  ret void
}}

; whether a state is of another loop than the one known, or the order to stop
define internal i1 @is_news(i64 %state, i64 %known) {{
entry:
  %loop = lshr i64 %state, {_LOOP}
  %other = icmp ne i64 %loop, %known
  %stop.bit = and i64 %state, {_STOP}
  %stop = icmp ne i64 %stop.bit, 0
  %news = or i1 %other, %stop
  ret i1 %news
}}

define void @lithify_worker(ptr %pool, i64 %worker) {{
entry:
  %ready = getelementptr i64, ptr %pool, i64 {WORK_READY}
  %finished = getelementptr i64, ptr %pool, i64 {WORK_DONE}
  %state.p = getelementptr i64, ptr %pool, i64 {STATE}
  %task.p = getelementptr i64, ptr %pool, i64 {TASK}
  %frame.p = getelementptr i64, ptr %pool, i64 {FRAME}
  %extent.p = getelementptr i64, ptr %pool, i64 {EXTENT}
  %piece.p = getelementptr i64, ptr %pool, i64 {PIECE}
  %spin.p = getelementptr i64, ptr %pool, i64 {SPIN}
  %sleepers.p = getelementptr i64, ptr %pool, i64 {SLEEPERS}
  %waiting.p = getelementptr i64, ptr %pool, i64 {WAITING}
  %longest = load i64, ptr %spin.p
  br label %rest
rest:
  %known = phi i64 [ 0, %entry ], [ %loop, %late ], [ %loop, %worked ]
  %since = call i64 @now()
  br label %look
look:
  %turn = phi i64 [ 0, %rest ], [ %next.turn, %idle ], [ %turn, %missed ]
  %state = load atomic i64, ptr %state.p seq_cst, align 8
  %news = call i1 @is_news(i64 %state, i64 %known)
  br i1 %news, label %heard, label %spin
{_SPINNING}sleep:
  %l = call i32 @pthread_mutex_lock(ptr %pool)
  %s0 = atomicrmw add ptr %sleepers.p, i64 1 seq_cst
  br label %peek
peek:
  %seen = load atomic i64, ptr %state.p seq_cst, align 8
  %called = call i1 @is_news(i64 %seen, i64 %known)
  br i1 %called, label %awake, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr %ready, ptr %pool)
  br label %peek
awake:
  %s1 = atomicrmw sub ptr %sleepers.p, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr %pool)
  br label %heard
heard:
  %found = phi i64 [ %state, %look ], [ %seen, %awake ]
  %stop.bit = and i64 %found, {_STOP}
  %stop = icmp ne i64 %stop.bit, 0
  br i1 %stop, label %leave, label %learn
leave:
  ret void
learn:
  %loop = lshr i64 %found, {_LOOP}
  %open.bit = and i64 %found, {_OPEN}
  %open = icmp ne i64 %open.bit, 0
  br i1 %open, label %join, label %late
late:  ; the others have finished it
  br label %rest
join:
  %joined = add i64 %found, 1
  %swap = cmpxchg ptr %state.p, i64 %found, i64 %joined seq_cst seq_cst
  %in = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %in, label %work, label %missed
missed:  ; the state has changed meanwhile
  br label %look
work:
  %task = load ptr, ptr %task.p
  %frame = load ptr, ptr %frame.p
  %extent = load i64, ptr %extent.p
  %piece = load i64, ptr %piece.p
  call void @take_pieces(ptr %pool, i64 %loop, ptr %task, ptr %frame, i64 %extent, i64 %piece, i64 %worker)
  %before = atomicrmw sub ptr %state.p, i64 1 seq_cst
  %waiting = load atomic i64, ptr %waiting.p seq_cst, align 8
  %alone = icmp eq i64 %waiting, 0
  br i1 %alone, label %worked, label %tell
tell:
  %l2 = call i32 @pthread_mutex_lock(ptr %pool)
  %s = call i32 @pthread_cond_signal(ptr %finished)
  %u2 = call i32 @pthread_mutex_unlock(ptr %pool)
  br label %worked
worked:
  br label %rest
}}

; a parallel loop of `extent` iterations, in `pieces` a thread; `amount` is how much work it is
define void @lithify_dispatch(ptr %pool, ptr %task, ptr %frame, i64 %extent, i64 %pieces, i64 %amount) {{
entry:
  %ready = getelementptr i64, ptr %pool, i64 {WORK_READY}
  %finished = getelementptr i64, ptr %pool, i64 {WORK_DONE}
  %state.p = getelementptr i64, ptr %pool, i64 {STATE}
  %task.p = getelementptr i64, ptr %pool, i64 {TASK}
  %frame.p = getelementptr i64, ptr %pool, i64 {FRAME}
  %extent.p = getelementptr i64, ptr %pool, i64 {EXTENT}
  %piece.p = getelementptr i64, ptr %pool, i64 {PIECE}
  %threads.p = getelementptr i64, ptr %pool, i64 {THREADS}
  %spin.p = getelementptr i64, ptr %pool, i64 {SPIN}
  %sleepers.p = getelementptr i64, ptr %pool, i64 {SLEEPERS}
  %waiting.p = getelementptr i64, ptr %pool, i64 {WAITING}
  %last.p = getelementptr i64, ptr %pool, i64 {LAST}
  %longest = load i64, ptr %spin.p
  %threads = load i64, ptr %threads.p
  %sleepers = load atomic i64, ptr %sleepers.p seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %consider, label %open
consider:  ; waking pays for much work, or for more of it that is to follow
  %start = call i64 @now()
  %last = load i64, ptr %last.p
  store i64 %start, ptr %last.p
  %since.last = sub i64 %start, %last
  %recent = icmp slt i64 %since.last, %longest
  %much = icmp sge i64 %amount, {policy.WAKING_WORK}
  %pays = or i1 %recent, %much
  br i1 %pays, label %open, label %count
count:
  %workers = sub i64 %threads, 1
  %some.awake = icmp slt i64 %sleepers, %workers
  br i1 %some.awake, label %open, label %alone
alone:
  call void %task(i64 0, i64 %extent, ptr %frame, i64 0)
  ret void
open:
  %wakes = phi i1 [ false, %entry ], [ true, %consider ], [ false, %count ]
  %shares = mul i64 %threads, %pieces
  %rounded = add i64 %extent, %shares
  %up = sub i64 %rounded, 1
  %piece = udiv i64 %up, %shares
  store ptr %task, ptr %task.p
  store ptr %frame, ptr %frame.p
  store i64 %extent, ptr %extent.p
  store i64 %piece, ptr %piece.p
  %old = load atomic i64, ptr %state.p seq_cst, align 8
  %counted = lshr i64 %old, {_LOOP}
  %number = add i64 %counted, 1
  %shifted = shl i64 %number, {_LOOP}
  %new = or i64 %shifted, {_OPEN}
  %x = atomicrmw xchg ptr %state.p, i64 %new seq_cst
  br i1 %wakes, label %wake, label %share
wake:
  %l = call i32 @pthread_mutex_lock(ptr %pool)
  %s = call i32 @pthread_cond_broadcast(ptr %ready)
  %u = call i32 @pthread_mutex_unlock(ptr %pool)
  br label %share
share:
  call void @take_pieces(ptr %pool, i64 %number, ptr %task, ptr %frame, i64 %extent, i64 %piece, i64 0)
  %closed = atomicrmw and ptr %state.p, i64 {~_OPEN} seq_cst
  %joined = and i64 %closed, {_JOINED}
  %together = icmp ne i64 %joined, 0
  br i1 %together, label %await, label %done
await:  ; who has joined is usually about to finish
  %since = call i64 @now()
  br label %look
look:
  %turn = phi i64 [ 0, %await ], [ %next.turn, %idle ]
  %state = load atomic i64, ptr %state.p seq_cst, align 8
  %left = and i64 %state, {_JOINED}
  %busy = icmp ne i64 %left, 0
  br i1 %busy, label %spin, label %done
{_SPINNING}sleep:
  %l2 = call i32 @pthread_mutex_lock(ptr %pool)
  %w0 = atomicrmw xchg ptr %waiting.p, i64 1 seq_cst
  br label %peek
peek:
  %seen = load atomic i64, ptr %state.p seq_cst, align 8
  %rest = and i64 %seen, {_JOINED}
  %still = icmp ne i64 %rest, 0
  br i1 %still, label %wait, label %over
wait:
  %w = call i32 @pthread_cond_wait(ptr %finished, ptr %pool)
  br label %peek
over:
  %w1 = atomicrmw xchg ptr %waiting.p, i64 0 seq_cst
  %u2 = call i32 @pthread_mutex_unlock(ptr %pool)
  br label %done
done:
  ret void
}}

; a compiled program's entry with the pool to itself, or without a pool where another call has it
define void @lithify_pool_run(ptr %pool, ptr %program, ptr %frame) {{
entry:
  %busy.p = getelementptr i64, ptr %pool, i64 {BUSY}
  %swap = cmpxchg ptr %busy.p, i64 0, i64 1 seq_cst seq_cst
  %have = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %have, label %together, label %alone
alone:
  store ptr null, ptr %frame
  call void %program(ptr %frame)
  ret void
together:
  %dispatch.p = getelementptr i64, ptr %frame, i64 1
  store ptr %pool, ptr %frame
  store ptr @lithify_dispatch, ptr %dispatch.p
  %moved = call i1 @place_caller(ptr %pool)
  call void %program(ptr %frame)
  br i1 %moved, label %release, label %free
release:
  call void @release_caller(ptr %pool)
  br label %free
free:
  store atomic i64 0, ptr %busy.p seq_cst, align 8
  ret void
}}

; the pool stays busy: what comes later runs without it
define void @lithify_pool_stop(ptr %pool) {{
entry:
  %busy.p = getelementptr i64, ptr %pool, i64 {BUSY}
  %state.p = getelementptr i64, ptr %pool, i64 {STATE}
  %ready = getelementptr i64, ptr %pool, i64 {WORK_READY}
  br label %again
again:
  %swap = cmpxchg ptr %busy.p, i64 0, i64 1 seq_cst seq_cst
  %have = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %have, label %stop, label %wait
wait:
  %y = call i32 @sched_yield()
  br label %again
stop:
  %old = atomicrmw or ptr %state.p, i64 {_STOP} seq_cst
  %l = call i32 @pthread_mutex_lock(ptr %pool)
  %s = call i32 @pthread_cond_broadcast(ptr %ready)
  %u = call i32 @pthread_mutex_unlock(ptr %pool)
  ret void
}}
"""
