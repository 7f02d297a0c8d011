"""The text of the function that `native_call` is about, in LLVM IR, and the layouts that it relies on.

Offsets in objects are those of CPython's `PyObject` and of NumPy's `PyArrayObject_fields`, which code compiled against
NumPy's headers has built in. Functions of the interpreter are called through a table that is filled at run time, so
that the compiled code can be kept on disk.
"""

from __future__ import annotations

from lithify.targets.cpu import runtime
from lithify.targets.cpu.frame import POOL

# Offsets in objects, in bytes.
TYPE, HEAD = 8, 16
ARRAY_DATA, ARRAY_NDIM, ARRAY_DIMS, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 56, 64

# NumPy's flags: C-contiguous 1, aligned 0x100, writeable 0x400; the highest bit warns of writing.
INPUT_FLAGS, OUTPUT_FLAGS = 0x101, 0x501
_INPUT_MASK, _OUTPUT_MASK = INPUT_FLAGS, OUTPUT_FLAGS | 1 << 31

# The table: functions of the interpreter, then NumPy's two, then objects.
FUNCTIONS = (
    "PyTuple_GetItem", "PyTuple_Size", "PyBytes_AsString", "PyErr_Clear", "Py_IncRef", "Py_DecRef", "PyFloat_AsDouble",
    "PyLong_AsLongLongAndOverflow", "PyEval_SaveThread", "PyEval_RestoreThread", "PyTuple_New", "PyTuple_SetItem",
    "PyLong_FromLongLong", "PyObject_CallOneArg",
)  # fmt: skip
_TABLE = (
    *FUNCTIONS, "NewFromDescr", "SetBaseObject", "ndarray", "NotImplemented", "None", "float", "int", "uint8", "take",
    "give",
)  # fmt: skip

# The words of a plan, and of the record of a parameter or result in it. A number's record has in place of the number of
# dimensions whether it is an integer, and in place of the dimensions its least and largest value.
_PLAIN, _STREAMING, _SLOTS, _POOL, _POOL_RUN, _SWITCH = range(6)
_PARAMETERS, _RESULTS, _WIDTH, _RELEASE, _BYTES, _SPARE, _PLACES, _RECORDS = range(6, 14)
_KIND, _SLOT, _THING, _SIZE, _NDIM, DIMS = range(6)

# Bytes of temporaries that lie on the stack, which may be that of a thread with a small one; and those that a program
# has a spare block for instead: to ask for a block takes 3 to 8 microseconds, a row of 2304 columns times a matrix 90.
ON_STACK, SPARE_BYTES = 1 << 14, 1 << 16
_ALIGNMENT = 64


def _api(name: str) -> str:
    """An expression for the table's entry."""
    return f"getelementptr inbounds ([{len(_TABLE)} x ptr], ptr @lithify_api, i64 0, i64 {_TABLE.index(name)})"


def _word(name: str, base: str, index: int | str, kind: str = "i64") -> str:
    """Lines that load word `index` of `base` as %name."""
    return f"%{name}.p = getelementptr i64, ptr {base}, i64 {index}\n  %{name} = load {kind}, ptr %{name}.p"


def _field(name: str, base: str, offset: int, kind: str) -> str:
    """Lines that load the field of an object as %name."""
    return f"%{name}.p = getelementptr i8, ptr {base}, i64 {offset}\n  %{name} = load {kind}, ptr %{name}.p"


def _load(name: str, entry: str) -> str:
    return f"%{name} = load ptr, ptr {_api(entry)}"


_CHECKS = f"""
@lithify_api = global [{len(_TABLE)} x ptr] zeroinitializer

; the address of an array's elements, or null where it is not an array such as the record says
define internal ptr @take_array(ptr %object, ptr %record, i32 %mask, i32 %flags) {{
entry:
  {_field("type", "%object", TYPE, "ptr")}
  {_load("ndarray", "ndarray")}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %fields, label %no
fields:
  {_field("descr", "%object", ARRAY_DESCR, "ptr")}
  {_word("wanted", "%record", _THING, "ptr")}
  %same.type = icmp eq ptr %descr, %wanted
  {_field("has", "%object", ARRAY_FLAGS, "i32")}
  %relevant = and i32 %has, %mask
  %same.flags = icmp eq i32 %relevant, %flags
  {_field("ndim.short", "%object", ARRAY_NDIM, "i32")}
  %ndim = sext i32 %ndim.short to i64
  {_word("dimensions", "%record", _NDIM)}
  %same.ndim = icmp eq i64 %ndim, %dimensions
  %two = and i1 %same.type, %same.flags
  %three = and i1 %two, %same.ndim
  {_field("dims", "%object", ARRAY_DIMS, "ptr")}
  {_field("data", "%object", ARRAY_DATA, "ptr")}
  br i1 %three, label %next, label %no
next:
  %d = phi i64 [ 0, %fields ], [ %d.next, %compare ]
  %more = icmp slt i64 %d, %ndim
  br i1 %more, label %compare, label %yes
compare:
  {_word("given", "%dims", "%d")}
  %at = add i64 %d, {DIMS}
  {_word("expected", "%record", "%at")}
  %same = icmp eq i64 %given, %expected
  %d.next = add i64 %d, 1
  br i1 %same, label %next, label %no
yes:
  ret ptr %data
no:
  ret ptr null
}}

; a number into the frame; whether it could be taken
define internal i1 @take_number(ptr %object, ptr %record, ptr %place) {{
entry:
  %overflow = alloca i32
  {_word("kinds", "%record", _KIND)}
  {_word("size", "%record", _SIZE)}
  {_word("integer", "%record", _NDIM)}
  {_field("type", "%object", TYPE, "ptr")}
  {_load("float", "float")}
  {_load("int", "int")}
  {_word("scalar", "%record", _THING, "ptr")}
  %is.float = icmp eq ptr %type, %float
  %is.int = icmp eq ptr %type, %int
  %is.scalar = icmp eq ptr %type, %scalar
  %is.integer = icmp ne i64 %integer, 0
  %takes.float = trunc i64 %kinds to i1
  %kinds.1 = lshr i64 %kinds, 1
  %takes.int = trunc i64 %kinds.1 to i1
  %kinds.2 = lshr i64 %kinds, 2
  %takes.scalar = trunc i64 %kinds.2 to i1
  %a.float = and i1 %is.float, %takes.float
  br i1 %a.float, label %read.float, label %else.int
else.int:
  %an.int = and i1 %is.int, %takes.int
  br i1 %an.int, label %read.int, label %else.scalar
else.scalar:
  %a.scalar = and i1 %is.scalar, %takes.scalar
  br i1 %a.scalar, label %copy, label %no
copy:
  %value.p = getelementptr i8, ptr %object, i64 {HEAD}
  call void @llvm.memcpy.p0.p0.i64(ptr %place, ptr %value.p, i64 %size, i1 false)
  ret i1 true

read.float:
  {_load("as.double", "PyFloat_AsDouble")}
  %exact = call double %as.double(ptr %object)
  br label %floating
read.int:
  {_load("as.long", "PyLong_AsLongLongAndOverflow")}
  %whole = call i64 %as.long(ptr %object, ptr %overflow)
  %lost = load i32, ptr %overflow
  %fits = icmp eq i32 %lost, 0
  br i1 %fits, label %kept, label %no
kept:
  br i1 %is.integer, label %range, label %convert
range:
  {_word("least", "%record", DIMS)}
  {_word("largest", "%record", DIMS + 1)}
  %above = icmp sge i64 %whole, %least
  %below = icmp sle i64 %whole, %largest
  %inside = and i1 %above, %below
  br i1 %inside, label %write.int, label %no
write.int:
  store i64 %whole, ptr %place
  ret i1 true

convert:  ; what both floating-point types hold exactly
  %moved = add i64 %whole, 16777216
  %small = icmp ule i64 %moved, 33554432
  br i1 %small, label %widen, label %no
widen:
  %whole.double = sitofp i64 %whole to double
  br label %floating
floating:
  %double = phi double [ %exact, %read.float ], [ %whole.double, %widen ]
  %is.double = icmp eq i64 %size, 8
  br i1 %is.double, label %write.double, label %narrow
write.double:
  store double %double, ptr %place
  ret i1 true
narrow:  ; what becomes an infinity or less than a normal number is for NumPy, which may warn
  %magnitude = call double @llvm.fabs.f64(double %double)
  %special = fcmp ueq double %magnitude, 0x7FF0000000000000
  %zero = fcmp oeq double %magnitude, 0.0
  %normal = fcmp oge double %magnitude, 0x3810000000000000
  %finite = fcmp olt double %magnitude, 0x47EFFFFFF0000000
  %usual = and i1 %normal, %finite
  %either = or i1 %special, %zero
  %good = or i1 %either, %usual
  br i1 %good, label %write.float, label %no
write.float:
  %single = fptrunc double %double to float
  store float %single, ptr %place
  ret i1 true
no:
  ret i1 false
}}

; a new array whose elements start at a multiple of the alignment, or null
define internal ptr @new_array(ptr %record) {{
entry:
  %count = alloca i64
  {_word("size", "%record", _SIZE)}
  {_word("ndim", "%record", _NDIM)}
  {_word("descr", "%record", _THING, "ptr")}
  %dims = getelementptr i64, ptr %record, i64 {DIMS}
  %room = add i64 %size, {_ALIGNMENT}
  store i64 %room, ptr %count
  {_load("keep", "Py_IncRef")}
  {_load("drop", "Py_DecRef")}
  {_load("new", "NewFromDescr")}
  {_load("join", "SetBaseObject")}
  {_load("ndarray", "ndarray")}
  {_load("uint8", "uint8")}
  call void %keep(ptr %uint8)
  %raw = call ptr %new(ptr %ndarray, ptr %uint8, i32 1, ptr %count, ptr null, ptr null, i32 0, ptr null)
  %no.raw = icmp eq ptr %raw, null
  br i1 %no.raw, label %no, label %view
view:
  {_field("data", "%raw", ARRAY_DATA, "i64")}
  %up = add i64 %data, {_ALIGNMENT - 1}
  %aligned = and i64 %up, {-_ALIGNMENT}
  %start = inttoptr i64 %aligned to ptr
  call void %keep(ptr %descr)
  %short = trunc i64 %ndim to i32
  %array = call ptr %new(ptr %ndarray, ptr %descr, i32 %short, ptr %dims, ptr null, ptr %start, i32 {OUTPUT_FLAGS},
                         ptr null)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %failed, label %base
base:
  %r = call i32 %join(ptr %array, ptr %raw)
  %bad = icmp ne i32 %r, 0
  br i1 %bad, label %loose, label %yes
yes:
  ret ptr %array
loose:
  call void %drop(ptr %array)
  ret ptr null
failed:
  call void %drop(ptr %raw)
  ret ptr null
no:
  ret ptr null
}}

; whether two stretches of memory have a byte in common
define internal i1 @overlap(i64 %a, i64 %a.size, i64 %b, i64 %b.size) {{
entry:
  %a.end = add i64 %a, %a.size
  %b.end = add i64 %b, %b.size
  %one = icmp ult i64 %a, %b.end
  %two = icmp ult i64 %b, %a.end
  %some.a = icmp ne i64 %a.size, 0
  %some.b = icmp ne i64 %b.size, 0
  %both = and i1 %one, %two
  %some = and i1 %some.a, %some.b
  %overlaps = and i1 %both, %some
  ret i1 %overlaps
}}

; the result of a function of Python's called with a number, or null
define internal ptr @call_with_number(ptr %function, i64 %number) {{
entry:
  {_load("drop", "Py_DecRef")}
  {_load("from.long", "PyLong_FromLongLong")}
  {_load("call", "PyObject_CallOneArg")}
  %object = call ptr %from.long(i64 %number)
  %none = icmp eq ptr %object, null
  br i1 %none, label %no, label %yes
yes:
  %result = call ptr %call(ptr %function, ptr %object)
  call void %drop(ptr %object)
  ret ptr %result
no:
  ret ptr null
}}

declare double @llvm.fabs.f64(double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_CALL = f"""
define ptr @lithify_call(ptr %self, ptr %args, i64 %nargs) {{
entry:
  {_load("item", "PyTuple_GetItem")}
  {_load("length", "PyTuple_Size")}
  {_load("bytes", "PyBytes_AsString")}
  {_load("clear", "PyErr_Clear")}
  {_load("keep", "Py_IncRef")}
  {_load("drop", "Py_DecRef")}
  {_load("none", "None")}
  {_load("not.implemented", "NotImplemented")}
  %plan.object = call ptr %item(ptr %self, i64 0)
  %plan = call ptr %bytes(ptr %plan.object)
  {_word("slots", "%plan", _SLOTS)}
  {_word("parameters", "%plan", _PARAMETERS)}
  {_word("results", "%plan", _RESULTS)}
  {_word("width", "%plan", _WIDTH)}
  {_word("pool", "%plan", _POOL, "ptr")}
  {_word("switch", "%plan", _SWITCH, "ptr")}
  %frame = alloca i64, i64 %slots, align 64
  %made = alloca ptr, i64 %results
  %made.bytes = shl i64 %results, 3
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 %made.bytes, i1 false)
  %records = getelementptr i64, ptr %plan, i64 {_RECORDS}
  %skipped = mul i64 %parameters, %width
  %result.records = getelementptr i64, ptr %records, i64 %skipped
  %all.results = mul i64 %results, %width
  %places = getelementptr i64, ptr %result.records, i64 %all.results
  %one = icmp eq i64 %results, 1
  %two = icmp eq i64 %nargs, 2
  br i1 %two, label %usable, label %refuse
usable:
  %off = load volatile i64, ptr %switch
  %on = icmp eq i64 %off, 0
  br i1 %on, label %has.pool, label %refuse
has.pool:
  %alone = icmp eq ptr %pool, null
  br i1 %alone, label %count, label %pool.open
pool.open:
  %closed.p = getelementptr i64, ptr %pool, i64 {runtime.CLOSED}
  %closed = load volatile i64, ptr %closed.p
  %open = icmp eq i64 %closed, 0
  br i1 %open, label %count, label %refuse
count:
  %arguments = load ptr, ptr %args
  %out.p = getelementptr ptr, ptr %args, i64 1
  %out = load ptr, ptr %out.p
  %given = call i64 %length(ptr %arguments)
  %right = icmp eq i64 %given, %parameters
  br i1 %right, label %parameter, label %refuse

parameter:
  %p = phi i64 [ 0, %count ], [ %p.next, %taken ]
  %p.more = icmp slt i64 %p, %parameters
  br i1 %p.more, label %check, label %output
check:
  %object = call ptr %item(ptr %arguments, i64 %p)
  %p.offset = mul i64 %p, %width
  %record = getelementptr i64, ptr %records, i64 %p.offset
  {_word("kind", "%record", _KIND)}
  {_word("slot", "%record", _SLOT)}
  %place = getelementptr i64, ptr %frame, i64 %slot
  %is.array = icmp eq i64 %kind, 0
  br i1 %is.array, label %array, label %number
array:
  %data = call ptr @take_array(ptr %object, ptr %record, i32 {_INPUT_MASK}, i32 {INPUT_FLAGS})
  store ptr %data, ptr %place
  %fits = icmp ne ptr %data, null
  br i1 %fits, label %taken, label %refuse
number:
  %good = call i1 @take_number(ptr %object, ptr %record, ptr %place)
  br i1 %good, label %taken, label %refuse
taken:
  %p.next = add i64 %p, 1
  br label %parameter

output:
  %fresh = icmp eq ptr %out, %none
  br i1 %fresh, label %result, label %how.many
how.many:
  br i1 %one, label %result, label %several
several:
  %outs = call i64 %length(ptr %out)
  %enough = icmp eq i64 %outs, %results
  br i1 %enough, label %result, label %refuse

result:
  %r = phi i64 [ 0, %output ], [ 0, %how.many ], [ 0, %several ], [ %r.next, %placed ]
  %bits = phi i64 [ 0, %output ], [ 0, %how.many ], [ 0, %several ], [ %bits.next, %placed ]
  %r.more = icmp slt i64 %r, %results
  br i1 %r.more, label %one.result, label %memory
one.result:
  %r.offset = mul i64 %r, %width
  %r.record = getelementptr i64, ptr %result.records, i64 %r.offset
  {_word("r.slot", "%r.record", _SLOT)}
  {_word("r.size", "%r.record", _SIZE)}
  {_word("r.kind", "%r.record", _KIND)}
  %r.place = getelementptr i64, ptr %frame, i64 %r.slot
  br i1 %fresh, label %make, label %look
make:
  %native = icmp eq i64 %r.kind, 0
  br i1 %native, label %make.here, label %make.there
make.here:
  %made.here = call ptr @new_array(ptr %r.record)
  br label %new
make.there:
  %maker = call ptr %item(ptr %self, i64 1)
  %made.there = call ptr @call_with_number(ptr %maker, i64 %r)
  br label %new
new:
  %new.array = phi ptr [ %made.here, %make.here ], [ %made.there, %make.there ]
  %made.p = getelementptr ptr, ptr %made, i64 %r
  store ptr %new.array, ptr %made.p
  %failed = icmp eq ptr %new.array, null
  br i1 %failed, label %refuse, label %have.new
have.new:
  {_field("new.data", "%new.array", ARRAY_DATA, "i64")}
  br label %placed

look:
  br i1 %one, label %target, label %pick
pick:
  %picked = call ptr %item(ptr %out, i64 %r)
  br label %target
target:
  %target.array = phi ptr [ %out, %look ], [ %picked, %pick ]
  %out.data = call ptr @take_array(ptr %target.array, ptr %r.record, i32 {_OUTPUT_MASK}, i32 {OUTPUT_FLAGS})
  %out.address = ptrtoint ptr %out.data to i64
  %unfit = icmp eq ptr %out.data, null
  br i1 %unfit, label %refuse, label %apart
apart:  ; from the arguments, then from the results before
  %q = phi i64 [ 0, %target ], [ %q.next, %apart.next ]
  %q.end = add i64 %parameters, %r
  %q.more = icmp slt i64 %q, %q.end
  br i1 %q.more, label %compare, label %placed
compare:
  %q.offset = mul i64 %q, %width
  %q.record = getelementptr i64, ptr %records, i64 %q.offset
  {_word("q.kind", "%q.record", _KIND)}
  {_word("q.slot", "%q.record", _SLOT)}
  {_word("q.size", "%q.record", _SIZE)}
  {_word("q.address", "%frame", "%q.slot")}
  %shared = call i1 @overlap(i64 %out.address, i64 %r.size, i64 %q.address, i64 %q.size)
  %is.result = icmp sge i64 %q, %parameters
  %q.array = icmp eq i64 %q.kind, 0
  %counts = or i1 %is.result, %q.array
  %meets = and i1 %shared, %counts
  br i1 %meets, label %refuse, label %apart.next
apart.next:
  %q.next = add i64 %q, 1
  br label %apart
placed:
  %address = phi i64 [ %new.data, %have.new ], [ %out.address, %apart ]
  store i64 %address, ptr %r.place
  %bits.next = or i64 %bits, %address
  %r.next = add i64 %r, 1
  br label %result

memory:
  {_word("needed", "%plan", _BYTES)}
  %no.memory = icmp eq i64 %needed, 0
  br i1 %no.memory, label %ready, label %how.much
how.much:
  {_word("spare", "%plan", _SPARE, "ptr")}
  %no.spare = icmp eq ptr %spare, null
  br i1 %no.spare, label %size, label %borrow
borrow:  ; under the interpreter's lock: a word says whether another call has it
  %lent.out = load i64, ptr %spare
  %is.lent = icmp ne i64 %lent.out, 0
  br i1 %is.lent, label %ask, label %borrowed
borrowed:
  store i64 1, ptr %spare
  %spare.data = getelementptr i8, ptr %spare, i64 {_ALIGNMENT}
  br label %spread
size:
  %little = icmp sle i64 %needed, {ON_STACK}
  br i1 %little, label %on.stack, label %ask
on.stack:
  %stack = alloca i8, i64 %needed, align {_ALIGNMENT}
  br label %spread
ask:
  {_load("take", "take")}
  %asked = call ptr @call_with_number(ptr %take, i64 %needed)
  %refused = icmp eq ptr %asked, null
  br i1 %refused, label %refuse, label %asked.data
asked.data:
  {_field("block.data", "%asked", ARRAY_DATA, "ptr")}
  br label %spread
spread:
  %block = phi ptr [ null, %on.stack ], [ null, %borrowed ], [ %asked, %asked.data ]
  %lent.word = phi ptr [ null, %on.stack ], [ %spare, %borrowed ], [ null, %asked.data ]
  %start = phi ptr [ %stack, %on.stack ], [ %spare.data, %borrowed ], [ %block.data, %asked.data ]
  {_word("pieces", "%plan", _PLACES)}
  br label %piece
piece:
  %m = phi i64 [ 0, %spread ], [ %m.next, %piece.next ]
  %m.more = icmp slt i64 %m, %pieces
  br i1 %m.more, label %piece.set, label %ready
piece.set:
  %m.offset = mul i64 %m, 3
  %m.record = getelementptr i64, ptr %places, i64 %m.offset
  {_word("m.slot", "%m.record", 0)}
  {_word("m.skip", "%m.record", 1)}
  {_word("m.size", "%m.record", 2)}
  %m.place = getelementptr i64, ptr %frame, i64 %m.slot
  %m.address = getelementptr i8, ptr %start, i64 %m.skip
  store ptr %m.address, ptr %m.place
  %has.size = icmp sge i64 %m.size, 0
  br i1 %has.size, label %piece.size, label %piece.next
piece.size:
  %m.after = getelementptr i64, ptr %m.place, i64 1
  store i64 %m.size, ptr %m.after
  br label %piece.next
piece.next:
  %m.next = add i64 %m, 1
  br label %piece

ready:
  %held = phi ptr [ null, %memory ], [ %block, %piece ]
  %lent = phi ptr [ null, %memory ], [ %lent.word, %piece ]
  {_word("plain", "%plan", _PLAIN, "ptr")}
  {_word("streaming", "%plan", _STREAMING, "ptr")}
  {_word("long", "%plan", _RELEASE)}
  %odd = and i64 %bits, {_ALIGNMENT - 1}
  %even = icmp eq i64 %odd, 0
  %streams = icmp ne ptr %streaming, null
  %past = and i1 %even, %streams
  %program = select i1 %past, ptr %streaming, ptr %plain
  %short = icmp eq i64 %long, 0
  br i1 %short, label %run, label %release
release:
  {_load("save", "PyEval_SaveThread")}
  %saved = call ptr %save()
  br label %run
run:
  %thread = phi ptr [ null, %ready ], [ %saved, %release ]
  br i1 %alone, label %run.alone, label %run.together
run.alone:
  %pool.p2 = getelementptr i64, ptr %frame, i64 {POOL}
  store i64 0, ptr %pool.p2
  call void %program(ptr %frame)
  br label %ran
run.together:
  {_word("pool.run", "%plan", _POOL_RUN, "ptr")}
  call void %pool.run(ptr %pool, ptr %program, ptr %frame)
  br label %ran
ran:
  br i1 %short, label %return.memory, label %restore
restore:
  {_load("restore.thread", "PyEval_RestoreThread")}
  call void %restore.thread(ptr %thread)
  br label %return.memory
return.memory:
  %nothing.lent = icmp eq ptr %lent, null
  br i1 %nothing.lent, label %return.block, label %return.spare
return.spare:
  store i64 0, ptr %lent
  br label %return.block
return.block:
  %nothing.held = icmp eq ptr %held, null
  br i1 %nothing.held, label %finish, label %give.back
give.back:
  {_load("give", "give")}
  {_load("call.one", "PyObject_CallOneArg")}
  %gave = call ptr %call.one(ptr %give, ptr %held)
  call void %drop(ptr %held)
  %not.given = icmp eq ptr %gave, null
  br i1 %not.given, label %lost, label %given.back
lost:
  call void %clear()
  br label %finish
given.back:
  call void %drop(ptr %gave)
  br label %finish

finish:
  br i1 %fresh, label %new.results, label %old.result
old.result:
  call void %keep(ptr %out)
  ret ptr %out
new.results:
  br i1 %one, label %new.single, label %tuple
new.single:
  %only = load ptr, ptr %made
  ret ptr %only
tuple:
  {_load("new.tuple", "PyTuple_New")}
  {_load("set.item", "PyTuple_SetItem")}
  %all = call ptr %new.tuple(i64 %results)
  %no.tuple = icmp eq ptr %all, null
  br i1 %no.tuple, label %refuse, label %fill
fill:
  %f = phi i64 [ 0, %tuple ], [ %f.next, %filling ]
  %f.more = icmp slt i64 %f, %results
  br i1 %f.more, label %filling, label %filled
filling:
  %f.p = getelementptr ptr, ptr %made, i64 %f
  %f.array = load ptr, ptr %f.p
  %f.set = call i32 %set.item(ptr %all, i64 %f, ptr %f.array)
  %f.next = add i64 %f, 1
  br label %fill
filled:
  ret ptr %all

refuse:
  call void %clear()
  br label %undo
undo:
  %u = phi i64 [ 0, %refuse ], [ %u.next, %undone ]
  %u.more = icmp slt i64 %u, %results
  br i1 %u.more, label %undo.one, label %end
undo.one:
  %u.p = getelementptr ptr, ptr %made, i64 %u
  %u.array = load ptr, ptr %u.p
  %u.none = icmp eq ptr %u.array, null
  br i1 %u.none, label %undone, label %undo.drop
undo.drop:
  call void %drop(ptr %u.array)
  br label %undone
undone:
  %u.next = add i64 %u, 1
  br label %undo
end:
  call void %keep(ptr %not.implemented)
  ret ptr %not.implemented
}}
"""

SOURCE = _CHECKS + _CALL
