"""What LLVM can do with vectors and Numba does not offer."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefer_wide_vectors(typingctx):
    """Ask LLVM for 512-bit vectors in the calling function; it prefers 256 by default.

    The function is kept out of its callers, where the wish would be lost.
    """

    def codegen(context, builder, signature, arguments):
        # llvmlite lists the attributes it knows; this one is LLVM's own and is
        # ignored by targets without such vectors.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def _extremum(name):
    @intrinsic
    def extremum(typingctx, a, b):
        def codegen(context, builder, signature, arguments):
            number = arguments[0].type
            suffix = "f64" if signature.return_type == types.float64 else "f32"
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(number, (number, number)),
                f"llvm.{name}.{suffix}",
            )
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return a(a, a), codegen

    return extremum


# min() and max() of Numba are comparisons, which LLVM does not recognise as a reduction.
larger = _extremum("maxnum")
smaller = _extremum("minnum")


LANES = 8


def _flip(builder, rows):
    """LANES vectors of LANES numbers, as a matrix, transposed.

    Blocks of 1, 2 and 4 are swapped across the diagonal; each of these steps takes its
    numbers from two vectors.
    """
    distance = 1
    while distance < LANES:
        mask_type = ir.VectorType(ir.IntType(32), LANES)
        upper = [i if not i & distance else LANES + (i ^ distance) for i in range(LANES)]
        lower = [i ^ distance if not i & distance else LANES + i for i in range(LANES)]
        flipped = list(rows)
        for i in range(LANES):
            if not i & distance:
                pair = rows[i], rows[i | distance]
                flipped[i] = builder.shuffle_vector(*pair, ir.Constant(mask_type, upper))
                flipped[i | distance] = builder.shuffle_vector(
                    *pair, ir.Constant(mask_type, lower)
                )
        rows, distance = flipped, 2 * distance
    return rows


def _pointer(context, builder, array, place, lanes=1):
    """Where the number at a place of an array is, as that of a vector if there are lanes."""
    pointer = builder.gep(array.data, [place])
    if lanes == 1:
        return pointer
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, lanes).as_pointer())


@intrinsic
def transpose_tile(typingctx, columns, X, rows, origin, b, v):
    """columns[v + j, b + i] = X[rows[b + i], v + j] - origin[v + j] for i, j < LANES.

    `origin` may be None. All arrays are C-contiguous. The numbers may be rounded.
    """

    def codegen(context, builder, signature, arguments):
        def array(i):
            return context.make_array(signature.args[i])(context, builder, arguments[i])

        into, source, chosen = array(0), array(1), array(2)
        b, v = arguments[4:]
        index = b.type
        width = cgutils.unpack_tuple(builder, into.shape)[1]
        n_features = cgutils.unpack_tuple(builder, source.shape)[1]
        size = signature.args[1].dtype.bitwidth // 8
        target = context.get_value_type(signature.args[0].dtype)
        loaded, place = [], None
        if signature.args[3] != types.none:
            pointer = _pointer(context, builder, array(3), v, LANES)
            place = builder.load(pointer, align=size)
        for i in range(LANES):
            row = builder.load(_pointer(context, builder, chosen, builder.add(b, index(i))))
            begin = builder.add(builder.mul(row, n_features), v)
            numbers = builder.load(_pointer(context, builder, source, begin, LANES), align=size)
            if place is not None:
                numbers = builder.fsub(numbers, place)
            if numbers.type.element != target:
                numbers = builder.fptrunc(numbers, ir.VectorType(target, LANES))
            loaded.append(numbers)
        for j, column in enumerate(_flip(builder, loaded)):
            begin = builder.add(builder.mul(builder.add(v, index(j)), width), b)
            pointer = _pointer(context, builder, into, begin, LANES)
            builder.store(column, pointer, align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(columns, X, rows, origin, types.intp, types.intp), codegen


@intrinsic
def inside_window(typingctx, values, place, anchor, scale, window):
    """Bits that tell which of the LANES values from a place on are inside a window.

    Bit i is set where |(values[place + i] - anchor) scale| <= window.
    """

    def codegen(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        number = arguments[2].type
        vector, lane = ir.VectorType(number, LANES), ir.IntType(32)
        pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
        numbers = builder.load(pointer, align=number.get_abi_size(context.target_data))

        def spread(scalar):
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, lane(0))
            return builder.shuffle_vector(
                one, one, ir.Constant(ir.VectorType(lane, LANES), [0] * LANES)
            )

        anchor, scale, window = (spread(a) for a in arguments[2:])
        t = builder.fmul(builder.fsub(numbers, anchor), scale)
        suffix = "f64" if signature.args[2] == types.float64 else "f32"
        absolute = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, (vector,)), f"llvm.fabs.v{LANES}{suffix}"
        )
        inside = builder.fcmp_ordered("<=", builder.call(absolute, (t,)), window)
        bits = builder.bitcast(inside, ir.IntType(LANES))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(values, types.intp, anchor, scale, window), codegen


@intrinsic
def lowest_bit(typingctx, bits):
    """The number of the lowest bit that is set."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


def _bit_cast(source, target):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(target))

    return target(source), codegen


@intrinsic
def to_bits(typingctx, number):
    """The bits of a float, as an unsigned integer of the same width."""
    return _bit_cast(number, types.uint64 if number == types.float64 else types.uint32)


@intrinsic
def from_bits(typingctx, bits):
    """The float whose bits are given."""
    return _bit_cast(bits, types.float64 if bits == types.uint64 else types.float32)
