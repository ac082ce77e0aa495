"""LLVM vector operations that Numba does not expose, each with a Python equivalent."""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from cafelearn.kmeans.kernels.compiling import EXACT, njit

# Width of the square tiles that are transposed at once.
LANES = 8


def with_python_body(body):
    """Return a decorator that makes intrinsics, or uses `body` if the compiler is disabled."""

    def decorate(definition):
        return body if config.DISABLE_JIT else intrinsic(definition)

    return decorate


@with_python_body(lambda: None)
def prefer_wide_vectors(typingctx):
    """Request 512-bit vectors for the calling function; LLVM prefers 256 bits by default.

    Also prevent inlining of the calling function, which would drop this request.
    """

    def codegen(context, builder, signature, arguments):
        # set.add bypasses llvmlite, which accepts only the attributes it knows. Targets
        # without such vectors ignore this attribute.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def _extremum(name):
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


# Numba compiles min() and max() to comparisons, which LLVM does not recognise as a reduction.
larger = with_python_body(max)(_extremum("maxnum"))
smaller = with_python_body(min)(_extremum("minnum"))


# Numba compiles the built-in max() and min() anew for each call.
@njit(**EXACT)
def maximum(a, b):
    """Return max(a, b)."""
    return b if b > a else a


@njit(**EXACT)
def minimum(a, b):
    """Return min(a, b)."""
    return b if b < a else a


@njit(**EXACT)
def rounded(number, single):
    """Round a number to the type of the data."""
    return np.float64(np.float32(number)) if single else np.float64(number)


def _flip(builder, rows):
    """Transpose LANES vectors of LANES numbers.

    Swap squares of size 1, 2 and 4 across the diagonal; each shuffle combines two vectors.
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


def _pointer(builder, array, place, lanes=1):
    """Return a pointer to an array element, or to the `lanes` elements that begin with it."""
    pointer = builder.gep(array.data, [place])
    if lanes == 1:
        return pointer
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, lanes).as_pointer())


def _transpose_tile(columns, X, rows, b, v):
    columns[v : v + LANES, b : b + LANES] = X[rows[b : b + LANES], v : v + LANES].T


@with_python_body(_transpose_tile)
def transpose_tile(typingctx, columns, X, rows, b, v):
    """Set columns[v + j, b + i] = X[rows[b + i], v + j] for i, j < LANES.

    The arrays must be C-contiguous.
    """

    def codegen(context, builder, signature, arguments):
        into, source, chosen = (
            context.make_array(signature.args[i])(context, builder, arguments[i])
            for i in range(3)
        )
        b, v = arguments[3:]
        index = b.type
        width = cgutils.unpack_tuple(builder, into.shape)[1]
        n_features = cgutils.unpack_tuple(builder, source.shape)[1]
        size = signature.args[1].dtype.bitwidth // 8
        loaded = []
        for i in range(LANES):
            row = builder.load(_pointer(builder, chosen, builder.add(b, index(i))))
            begin = builder.add(builder.mul(row, n_features), v)
            loaded.append(builder.load(_pointer(builder, source, begin, LANES), align=size))
        for j, column in enumerate(_flip(builder, loaded)):
            begin = builder.add(builder.mul(builder.add(v, index(j)), width), b)
            builder.store(column, _pointer(builder, into, begin, LANES), align=size)
        return context.get_dummy_value()

    return types.none(columns, X, rows, types.intp, types.intp), codegen


def _bit_cast(source, target):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(target))

    return target(source), codegen


@with_python_body(lambda number: number.view(f"u{number.itemsize}"))
def to_bits(typingctx, number):
    """Return the bits of a float as an unsigned integer of the same width."""
    return _bit_cast(number, types.uint64 if number == types.float64 else types.uint32)


@with_python_body(lambda bits: bits.view(f"f{bits.itemsize}"))
def from_bits(typingctx, bits):
    """Return the float with the given bits."""
    return _bit_cast(bits, types.float64 if bits == types.uint64 else types.float32)


def load_terms(first, count_of):
    """Make a function that loads `count_of[dtype]` numbers of an array, from `first[dtype]` on.

    The count is known at compile time, so that loops over the numbers are unrolled. Kernels
    call the function before their loops: in a loop that stores, the compiler would repeat the
    loads.
    """

    def body(array):
        begin = first[array.dtype.name]
        return tuple(array[begin : begin + count_of[array.dtype.name]])

    @with_python_body(body)
    def load(typingctx, array):
        name = str(array.dtype)
        result = types.UniTuple(array.dtype, count_of[name])

        def codegen(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            index = ir.IntType(64)
            values = [
                builder.load(builder.gep(data, [ir.Constant(index, first[name] + i)]))
                for i in range(count_of[name])
            ]
            return context.make_tuple(builder, signature.return_type, values)

        return result(array), codegen

    return load


def _horner(coefficients, argument):
    result = coefficients[-1]
    for term in reversed(coefficients[:-1]):
        result = result * argument + term
    return result


@with_python_body(_horner)
def horner(typingctx, coefficients, argument):
    """Evaluate a polynomial; the first coefficient is the constant term."""

    def codegen(context, builder, signature, arguments):
        values, point = arguments
        terms = cgutils.unpack_tuple(builder, values)
        result = terms[-1]
        for term in reversed(terms[:-1]):
            result = builder.fadd(
                builder.fmul(result, point, flags=("contract",)), term, flags=("contract",)
            )
        return result

    return argument(coefficients, argument), codegen
