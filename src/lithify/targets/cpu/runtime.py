"""The pool of threads, in native code: no interpreter lock is taken between two parallel loops.

A kernel's parallel loop calls `lithify_dispatch`; the caller and the waiting workers take pieces of its range from one
counter. A worker that wakes up after the others have finished the range is not waited for. The workers are Python
threads that stay in one native call (`lithify_worker`) until the pool is closed. The text is LLVM IR over POSIX
threads; where they are missing there is no pool and programs run on the calling thread.
"""

from __future__ import annotations

# The pool in memory, as 8-byte words. What different threads write stands in cache lines of its own.
MUTEX, WORK_READY, WORK_DONE = 0, 16, 32  # room for the platform's pthread types
GENERATION, STOP, TASK, FRAME, EXTENT, PIECE, THREADS, OPEN = 48, 49, 50, 51, 52, 53, 54, 55
NEXT = 64
RUNNING = 72
WORDS = 80

SOURCE = f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)

define void @lithify_pool_init(ptr %pool) {{
entry:
  %ready = getelementptr i64, ptr %pool, i64 {WORK_READY}
  %finished = getelementptr i64, ptr %pool, i64 {WORK_DONE}
  %a = call i32 @pthread_mutex_init(ptr %pool, ptr null)
  %b = call i32 @pthread_cond_init(ptr %ready, ptr null)
  %c = call i32 @pthread_cond_init(ptr %finished, ptr null)
  ret void
}}

; pieces of the range, one after another, until it is used up
define internal void @take_pieces(ptr %pool, ptr %task, ptr %frame, i64 %extent, i64 %piece, i64 %worker) {{
entry:
  %next = getelementptr i64, ptr %pool, i64 {NEXT}
  br label %again
again:
  %begin = atomicrmw add ptr %next, i64 %piece seq_cst
  %some = icmp slt i64 %begin, %extent
  br i1 %some, label %run, label %done
run:
  %limit = add i64 %begin, %piece
  %beyond = icmp sgt i64 %limit, %extent
  %end = select i1 %beyond, i64 %extent, i64 %limit
  call void %task(i64 %begin, i64 %end, ptr %frame, i64 %worker)
  br label %again
done:
  ret void
}}

define void @lithify_worker(ptr %pool, i64 %worker) {{
entry:
  %ready = getelementptr i64, ptr %pool, i64 {WORK_READY}
  %finished = getelementptr i64, ptr %pool, i64 {WORK_DONE}
  %generation.p = getelementptr i64, ptr %pool, i64 {GENERATION}
  %stop.p = getelementptr i64, ptr %pool, i64 {STOP}
  %task.p = getelementptr i64, ptr %pool, i64 {TASK}
  %frame.p = getelementptr i64, ptr %pool, i64 {FRAME}
  %extent.p = getelementptr i64, ptr %pool, i64 {EXTENT}
  %piece.p = getelementptr i64, ptr %pool, i64 {PIECE}
  %open.p = getelementptr i64, ptr %pool, i64 {OPEN}
  %running.p = getelementptr i64, ptr %pool, i64 {RUNNING}
  br label %rest
rest:
  %known = phi i64 [ 0, %entry ], [ %generation, %worked ]
  %l = call i32 @pthread_mutex_lock(ptr %pool)
  br label %look
look:
  %seen = phi i64 [ %known, %rest ], [ %seen, %wait ], [ %generation, %join ]
  %stop = load volatile i64, ptr %stop.p
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %compare
compare:
  %generation = load volatile i64, ptr %generation.p
  %new = icmp ne i64 %generation, %seen
  br i1 %new, label %join, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr %ready, ptr %pool)
  br label %look
leave:
  %u0 = call i32 @pthread_mutex_unlock(ptr %pool)
  ret void
join:  ; unless the caller has finished it alone meanwhile
  %open = load volatile i64, ptr %open.p
  %joins = icmp ne i64 %open, 0
  br i1 %joins, label %work, label %look
work:
  %already = atomicrmw add ptr %running.p, i64 1 seq_cst
  %task = load ptr, ptr %task.p
  %frame = load ptr, ptr %frame.p
  %extent = load i64, ptr %extent.p
  %piece = load i64, ptr %piece.p
  %u1 = call i32 @pthread_mutex_unlock(ptr %pool)
  call void @take_pieces(ptr %pool, ptr %task, ptr %frame, i64 %extent, i64 %piece, i64 %worker)
  %before = atomicrmw sub ptr %running.p, i64 1 seq_cst
  %last = icmp eq i64 %before, 1
  br i1 %last, label %tell, label %worked
tell:
  %l2 = call i32 @pthread_mutex_lock(ptr %pool)
  %s = call i32 @pthread_cond_signal(ptr %finished)
  %u2 = call i32 @pthread_mutex_unlock(ptr %pool)
  br label %worked
worked:
  br label %rest
}}

define void @lithify_dispatch(ptr %pool, ptr %task, ptr %frame, i64 %extent, i64 %pieces) {{
entry:
  %ready = getelementptr i64, ptr %pool, i64 {WORK_READY}
  %finished = getelementptr i64, ptr %pool, i64 {WORK_DONE}
  %generation.p = getelementptr i64, ptr %pool, i64 {GENERATION}
  %task.p = getelementptr i64, ptr %pool, i64 {TASK}
  %frame.p = getelementptr i64, ptr %pool, i64 {FRAME}
  %extent.p = getelementptr i64, ptr %pool, i64 {EXTENT}
  %piece.p = getelementptr i64, ptr %pool, i64 {PIECE}
  %threads.p = getelementptr i64, ptr %pool, i64 {THREADS}
  %open.p = getelementptr i64, ptr %pool, i64 {OPEN}
  %next.p = getelementptr i64, ptr %pool, i64 {NEXT}
  %running.p = getelementptr i64, ptr %pool, i64 {RUNNING}
  %threads = load i64, ptr %threads.p
  %shares = mul i64 %threads, %pieces
  %rounded = add i64 %extent, %shares
  %up = sub i64 %rounded, 1
  %piece = udiv i64 %up, %shares
  %l = call i32 @pthread_mutex_lock(ptr %pool)
  store ptr %task, ptr %task.p
  store ptr %frame, ptr %frame.p
  store i64 %extent, ptr %extent.p
  store i64 %piece, ptr %piece.p
  store i64 0, ptr %next.p
  store i64 1, ptr %open.p
  %old = load i64, ptr %generation.p
  %new = add i64 %old, 1
  store i64 %new, ptr %generation.p
  %s = call i32 @pthread_cond_broadcast(ptr %ready)
  %u = call i32 @pthread_mutex_unlock(ptr %pool)
  call void @take_pieces(ptr %pool, ptr %task, ptr %frame, i64 %extent, i64 %piece, i64 0)
  %l1 = call i32 @pthread_mutex_lock(ptr %pool)
  store i64 0, ptr %open.p
  %u1 = call i32 @pthread_mutex_unlock(ptr %pool)
  br label %spin
spin:  ; who has joined is usually about to finish
  %turn = phi i64 [ 0, %entry ], [ %turned, %spinning ]
  %running = load atomic i64, ptr %running.p seq_cst, align 8
  %busy = icmp ne i64 %running, 0
  br i1 %busy, label %spinning, label %done
spinning:
  %turned = add i64 %turn, 1
  %patient = icmp slt i64 %turned, 2000
  br i1 %patient, label %spin, label %sleep
sleep:
  %l2 = call i32 @pthread_mutex_lock(ptr %pool)
  br label %check
check:
  %left = load atomic i64, ptr %running.p seq_cst, align 8
  %some = icmp ne i64 %left, 0
  br i1 %some, label %wait, label %over
wait:
  %w = call i32 @pthread_cond_wait(ptr %finished, ptr %pool)
  br label %check
over:
  %u2 = call i32 @pthread_mutex_unlock(ptr %pool)
  br label %done
done:
  ret void
}}

define void @lithify_pool_stop(ptr %pool) {{
entry:
  %ready = getelementptr i64, ptr %pool, i64 {WORK_READY}
  %stop.p = getelementptr i64, ptr %pool, i64 {STOP}
  %l = call i32 @pthread_mutex_lock(ptr %pool)
  store volatile i64 1, ptr %stop.p
  %s = call i32 @pthread_cond_broadcast(ptr %ready)
  %u = call i32 @pthread_mutex_unlock(ptr %pool)
  ret void
}}
"""
