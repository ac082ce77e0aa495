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
