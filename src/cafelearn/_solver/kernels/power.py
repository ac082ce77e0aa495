"""|t|^q for whole blocks of numbers, written so that the compiler vectorises it.

A libm ``pow`` per term costs more than everything else in the algorithm together.
Here t = 2^e f with f in [1, 2), and

* small exponents: t^q = 2^(e q) f^q, with f^q a Chebyshev polynomial fitted to this q;
* large exponents: t^q = 2^(q (e + log2 f)), with log2 f a polynomial of higher degree;
* q in {0, 1, 2, 3, 4} and {-1/2, 3/2}: products, and a reciprocal square root.

The loops hold no branch, no division and no call, so LLVM turns them into SIMD code of
the host's full width. The relative error of float64 is below 1e-12 for q <= 8.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.polynomial import chebyshev

from cafelearn._solver.kernels.compiling import SUMS, VECTOR, njit
from cafelearn._solver.kernels.vectors import (
    from_bits,
    larger,
    prefer_wide_vectors,
    smaller,
    to_bits,
)

CONSTANT, LINEAR, SQUARE, CUBE, FOURTH, THREE_HALVES, DIRECT, LOGARITHM = range(8)
_SPECIAL = {
    0.0: CONSTANT,
    1.0: LINEAR,
    2.0: SQUARE,
    3.0: CUBE,
    4.0: FOURTH,
    1.5: THREE_HALVES,
}
# Up to this exponent a polynomial of moderate degree follows f^q on [1, 2) and t^q stays
# within the exponent range of the format for any sensible spread of the data.
LARGEST_DIRECT = {np.dtype(np.float64): 8.0, np.dtype(np.float32): 4.0}
# Number of coefficients of f^q, log2 f, 2^g, and of f^q for -1 < q < 0.
_N_TERMS = {
    "mantissa": {"float64": 12, "float32": 7},
    "logarithm": {"float64": 19, "float32": 10},
    "exponential": {"float64": 9, "float32": 6},
    "negative": {"float64": 16, "float32": 8},
}
# For -1 < q < 0 smaller numbers count as 0: sums of their powers, times weights of up to 2^32,
# would overflow.
NEAREST = {np.dtype(np.float64): 2.0**-900, np.dtype(np.float32): 2.0**-72}
# What _split adds to the exponent.
_BIAS = {np.dtype(np.float64): 2048 + 1023, np.dtype(np.float32): 256 + 127}


class PowerPlan(NamedTuple):
    """How to raise to one exponent: the branch to take and its coefficients."""

    exponent: float
    branch: int
    bias: float  # what _split adds to the exponent of the base
    shift: float  # exponent times bias
    least: float  # bases whose biased exponent is below count as 0 (small exponents)
    lowest: float  # results whose log2 is below count as 0
    most: float  # log2 of the result is cut here
    mantissa: np.ndarray  # coefficients of f^q,
    logarithm: np.ndarray  # of log2 f
    exponential: np.ndarray  # and of 2^g


def _monomials(function, low, high, terms):
    """Coefficients in (f - middle) of the Chebyshev interpolant on [low, high]."""
    middle, half = (low + high) / 2, (high - low) / 2
    series = chebyshev.chebinterpolate(lambda t: function(middle + half * t), terms - 1)
    return chebyshev.cheb2poly(series) / half ** np.arange(terms)


def power_plan(exponent, dtype=np.float64):
    """Prepare ``|t|**exponent``, exponent >= 0, for arrays of `dtype` (float32 or float64)."""
    dtype = np.dtype(dtype)
    exponent = float(exponent)
    branch = _SPECIAL.get(exponent)
    if branch is None:
        branch = DIRECT if abs(exponent) <= LARGEST_DIRECT[dtype] else LOGARITHM
    fitted = exponent if branch == DIRECT else 1.0
    polynomials = (
        _monomials(lambda f: f**fitted, 1.0, 2.0, _N_TERMS["mantissa"][dtype.name]),
        _monomials(np.log2, 1.0, 2.0, _N_TERMS["logarithm"][dtype.name]),
        _monomials(np.exp2, -0.5, 0.5, _N_TERMS["exponential"][dtype.name]),
    )
    limits = np.finfo(dtype)
    bias = _BIAS[dtype]
    # The kernel takes `shift` off in one fused step; what is lost by rounding it is a
    # constant factor, given back to the polynomial.
    shift = dtype.type(bias * exponent)
    polynomials[0][:] *= np.exp2(float(shift) - bias * float(dtype.type(exponent)))
    least = limits.minexp / max(exponent, 1.0) + 1
    return PowerPlan(
        dtype.type(exponent),
        branch,
        dtype.type(bias),
        shift,
        dtype.type(bias + least),
        dtype.type(limits.minexp + 1),
        dtype.type(limits.maxexp - 2),
        *(c.astype(dtype) for c in polynomials),
    )


class NegativePlan(NamedTuple):
    """|t|^q for -1 < q < 0, by table; only for loops without stores, which may gather."""

    exponent: np.floating
    nearest: np.floating  # smaller numbers count as 0
    table: np.ndarray  # 2^(e q) for every exponent e of the format; 0 for t = 0
    mantissa: np.ndarray


def negative_plan(exponent, dtype=np.float64):
    """Prepare ``|t|**exponent`` for -1 < exponent < 0."""
    dtype = np.dtype(dtype)
    size, bias = (2048, 1023) if dtype == np.float64 else (256, 127)
    table = np.exp2((np.arange(size) - bias) * float(exponent))
    nearest = NEAREST[dtype]
    table[: bias + int(np.log2(nearest))] = 0
    mantissa = _monomials(lambda f: f**exponent, 1.0, 2.0, _N_TERMS["negative"][dtype.name])
    return NegativePlan(
        dtype.type(exponent), dtype.type(nearest), table.astype(dtype), mantissa.astype(dtype)
    )


def _unpack(role):
    """A function that loads the coefficients of a polynomial into a tuple.

    Its length follows from the type of the numbers, so that the polynomial is unrolled.
    Kernels call it before their loops: loads inside could alias the stores there.
    """

    @intrinsic
    def unpack(typingctx, coefficients):
        terms = _N_TERMS[role][str(coefficients.dtype)]
        result = types.UniTuple(coefficients.dtype, terms)

        def codegen(context, builder, signature, arguments):
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            index = ir.IntType(64)
            values = [
                builder.load(builder.gep(array.data, [ir.Constant(index, i)]))
                for i in range(terms)
            ]
            return context.make_tuple(builder, signature.return_type, values)

        return result(coefficients), codegen

    return unpack


_mantissa_terms = _unpack("mantissa")
_logarithm_terms = _unpack("logarithm")
_exponential_terms = _unpack("exponential")
negative_terms = _unpack("negative")


@intrinsic
def _horner(typingctx, coefficients, argument):
    """Value of a polynomial, lowest coefficient first."""

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


def _split(number):
    """Exponent + EXPONENT_BIAS and mantissa in [1, 2) of |number|; see the overload."""
    raise TypeError("only for compiled code")


@overload(_split, jit_options=VECTOR)
def _split_overload(number):
    if number == types.float64:
        word, shift, mask, low = np.uint64, 11, 0x000FFE0000000000, 0x000FFFFFFFFFFFFF
        one, whole = 0x3FF0000000000000, 0x40A0000000000000
    else:
        word, shift, mask, low = np.uint32, 8, 0x007F8000, 0x007FFFFF
        one, whole = 0x3F800000, 0x43800000
    shift, mask, low, one, whole = (word(c) for c in (shift, mask, low, one, whole))

    def split(number):
        bits = to_bits(number)
        # The exponent's bits, moved into the mantissa of 2048 (256 for float32), make the
        # float 2048 + exponent + 1023: an integer becomes a float without a conversion.
        exponent = from_bits(word(((bits >> shift) & mask) | whole))
        return exponent, from_bits(word((bits & low) | one))

    return split


def _exp2(value, coefficients):
    """2^value for value below the format's largest exponent; see the overload."""
    raise TypeError("only for compiled code")


@overload(_exp2, jit_options=VECTOR)
def _exp2_overload(value, coefficients):
    # Adding this number rounds to an integer and leaves it, plus the format's exponent
    # bias, in the low bits.
    if value == types.float64:
        word, rounder, shift = np.uint64, np.float64(1.5 * 2.0**52 + 1023), np.uint64(52)
    else:
        word, rounder, shift = np.uint32, np.float32(1.5 * 2.0**23 + 127), np.uint32(23)

    def exp2(value, coefficients):
        rounded = value + rounder
        fraction = value - (rounded - rounder)
        return _horner(coefficients, fraction) * from_bits(word(to_bits(rounded) << shift))

    return exp2


def reciprocal_root(number):
    """1 / sqrt(number) for number > 0; Numba replaces it by the overload."""
    raise TypeError("only for compiled code")


@overload(reciprocal_root, jit_options=VECTOR)
def _reciprocal_root_overload(number):
    # Halving the exponent through the integer bits is right to 3.5%. One step of third
    # order and then Newton steps finish it; the square-root instruction is slower.
    if number == types.float64:
        word, as_float, magic, double = np.uint64, np.float64, 0x5FE6EB50C7B537A9, True
    else:
        word, as_float, magic, double = np.uint32, np.float32, 0x5F375A86, False
    magic, one = word(magic), word(1)
    a, b, c = as_float(1.875), as_float(1.25), as_float(0.375)
    half, three_halves = as_float(0.5), as_float(1.5)

    def reciprocal_root(number):
        root = from_bits(word(magic - (to_bits(number) >> one)))
        e = number * root * root
        root = root * (a - e * (b - c * e))
        root = root * (three_halves - half * number * root * root)
        if double:
            root = root * (three_halves - half * number * root * root)
        return root

    return reciprocal_root


def reciprocal(number):
    """1 / number for a number whose size is near 1; Numba replaces it by the overload."""
    raise TypeError("only for compiled code")


@overload(reciprocal, jit_options=VECTOR)
def _reciprocal_overload(number):
    # Negating the exponent through the integer bits is right to 12%; Newton steps finish it.
    # The division instruction is slower.
    if number == types.float64:
        word, as_float, magic, double = np.uint64, np.float64, 0x7FDE623822835EEA, True
    else:
        word, as_float, magic, double = np.uint32, np.float32, 0x7EF311C3, False
    magic, two = word(magic), as_float(2)

    def reciprocal(number):
        # The sign bit takes no part in the subtraction: magic is below it.
        inverse = from_bits(word(magic - to_bits(number)))
        inverse = inverse * (two - number * inverse)
        inverse = inverse * (two - number * inverse)
        inverse = inverse * (two - number * inverse)
        if double:
            inverse = inverse * (two - number * inverse)
        return inverse

    return reciprocal


def _bits(number):
    """Exponent field and mantissa in [1, 2) of |number|; see the overload."""
    raise TypeError("only for compiled code")


@overload(_bits, jit_options=VECTOR)
def _bits_overload(number):
    if number == types.float64:
        word, shift, mask = np.uint64, 52, 0x7FF
        low, one = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000
    else:
        word, shift, mask, low, one = np.uint32, 23, 0xFF, 0x007FFFFF, 0x3F800000
    shift, mask, low, one = (word(c) for c in (shift, mask, low, one))

    def bits(number):
        raw = to_bits(number)
        return (raw >> shift) & mask, from_bits(word((raw & low) | one))

    return bits


@njit(**VECTOR)
def negative_power(t, table, terms, middle):
    """|t|^q for -1 < q < 0, from the table and negative_terms of a plan; 0 for almost 0."""
    field, f = _bits(t)
    return _horner(terms, f - middle) * table[field]


@njit(**VECTOR)
def negative_powers(out, numbers, factors, negative, plan):
    """out = factors |numbers|^q for -1 < q < 0, 0 for almost 0; `plan` is of any other power.

    A table cannot be used in a loop that stores: it might be what is stored to.
    """
    prefer_wide_vectors()
    zero, middle = numbers.dtype.type(0), numbers.dtype.type(1.5)
    bias, exponent, nearest = plan.bias, negative.exponent, negative.nearest
    mantissa = negative_terms(negative.mantissa)
    exponential = _exponential_terms(plan.exponential)
    for i in range(len(numbers)):
        high, f = _split(numbers[i])
        power = _horner(mantissa, f - middle) * _exp2((high - bias) * exponent, exponential)
        out[i] = factors[i] * (power if abs(numbers[i]) >= nearest else zero)


@njit(**VECTOR)
def add_powers(out, row, columns, features, centers, weights, l, size, plan):
    """Raise some features of a block of rows and add them to out.

    out[into, b] += |weights[l, v] (columns[v, b] - centers[l, v])|^q for v in features and
    b < size; 0^q counts as 0. With row < 0 feature v goes into out[v].
    """
    prefer_wide_vectors()
    zero, middle = columns.dtype.type(0), columns.dtype.type(1.5)
    exponent, branch = plan.exponent, plan.branch
    bias, shift = plan.bias, plan.shift
    least, lowest, most = plan.least, plan.lowest, plan.most
    mantissa = _mantissa_terms(plan.mantissa)
    logarithm = _logarithm_terms(plan.logarithm)
    exponential = _exponential_terms(plan.exponential)
    if branch == DIRECT:
        for j in range(len(features)):
            v = features[j]
            into = row if row >= 0 else v
            center, weight = centers[l, v], columns.dtype.type(weights[l, v])
            for b in range(size):
                t = (columns[v, b] - center) * weight
                high, f = _split(t)
                log2 = smaller(high * exponent - shift, most)
                power = _horner(mantissa, f - middle) * _exp2(log2, exponential)
                out[into, b] += power if high > least else zero
    elif branch == CUBE:
        for j in range(len(features)):
            v = features[j]
            into = row if row >= 0 else v
            center, weight = centers[l, v], columns.dtype.type(weights[l, v])
            for b in range(size):
                t = (columns[v, b] - center) * weight
                out[into, b] += abs(t) * (t * t)
    elif branch == FOURTH:
        for j in range(len(features)):
            v = features[j]
            into = row if row >= 0 else v
            center, weight = centers[l, v], columns.dtype.type(weights[l, v])
            for b in range(size):
                t = (columns[v, b] - center) * weight
                out[into, b] += (t * t) * (t * t)
    elif branch == SQUARE:
        for j in range(len(features)):
            v = features[j]
            into = row if row >= 0 else v
            center, weight = centers[l, v], columns.dtype.type(weights[l, v])
            for b in range(size):
                t = (columns[v, b] - center) * weight
                out[into, b] += t * t
    elif branch == THREE_HALVES:
        for j in range(len(features)):
            v = features[j]
            into = row if row >= 0 else v
            center, weight = centers[l, v], columns.dtype.type(weights[l, v])
            for b in range(size):
                t = abs((columns[v, b] - center) * weight)
                out[into, b] += (t * t) * reciprocal_root(t)
    elif branch == LINEAR:
        for j in range(len(features)):
            v = features[j]
            into = row if row >= 0 else v
            center, weight = centers[l, v], columns.dtype.type(weights[l, v])
            for b in range(size):
                out[into, b] += abs((columns[v, b] - center) * weight)
    elif branch == CONSTANT:
        for j in range(len(features)):
            v = features[j]
            into = row if row >= 0 else v
            center, weight = centers[l, v], columns.dtype.type(weights[l, v])
            for b in range(size):
                out[into, b] += columns.dtype.type(1)
    else:
        for j in range(len(features)):
            v = features[j]
            into = row if row >= 0 else v
            center, weight = centers[l, v], columns.dtype.type(weights[l, v])
            for b in range(size):
                t = (columns[v, b] - center) * weight
                high, f = _split(t)
                log2 = (high - bias + _horner(logarithm, f - middle)) * exponent
                power = _exp2(smaller(log2, most), exponential)
                out[into, b] += power if log2 > lowest else zero


@njit(**VECTOR)
def add_squares(out, l, columns, features, centers, weights, size):
    """add_powers with q = 2 into row l, four features to one pass over it."""
    prefer_wide_vectors()
    count = len(features)
    for j in range(0, count - 3, 4):
        u, v, x, y = features[j], features[j + 1], features[j + 2], features[j + 3]
        z0, z1, z2, z3 = centers[l, u], centers[l, v], centers[l, x], centers[l, y]
        w0, w1, w2, w3 = weights[l, u], weights[l, v], weights[l, x], weights[l, y]
        for b in range(size):
            t0 = (columns[u, b] - z0) * w0
            t1 = (columns[v, b] - z1) * w1
            t2 = (columns[x, b] - z2) * w2
            t3 = (columns[y, b] - z3) * w3
            out[l, b] += (t0 * t0 + t1 * t1) + (t2 * t2 + t3 * t3)
    for j in range(count - count % 4, count):
        v = features[j]
        center, weight = centers[l, v], weights[l, v]
        for b in range(size):
            t = (columns[v, b] - center) * weight
            out[l, b] += t * t


@njit(**VECTOR)
def add_cubes(out, l, columns, features, centers, weights, size):
    """add_powers with q = 3 into row l, four features to one pass over it."""
    prefer_wide_vectors()
    count = len(features)
    for j in range(0, count - 3, 4):
        u, v, x, y = features[j], features[j + 1], features[j + 2], features[j + 3]
        z0, z1, z2, z3 = centers[l, u], centers[l, v], centers[l, x], centers[l, y]
        w0, w1, w2, w3 = weights[l, u], weights[l, v], weights[l, x], weights[l, y]
        for b in range(size):
            t0 = (columns[u, b] - z0) * w0
            t1 = (columns[v, b] - z1) * w1
            t2 = (columns[x, b] - z2) * w2
            t3 = (columns[y, b] - z3) * w3
            c0, c1 = abs(t0) * (t0 * t0), abs(t1) * (t1 * t1)
            c2, c3 = abs(t2) * (t2 * t2), abs(t3) * (t3 * t3)
            out[l, b] += (c0 + c1) + (c2 + c3)
    for j in range(count - count % 4, count):
        v = features[j]
        center, weight = centers[l, v], weights[l, v]
        for b in range(size):
            t = (columns[v, b] - center) * weight
            out[l, b] += abs(t) * (t * t)


@njit(**SUMS)
def find_peaks(peaks, l, columns, centers, weights, size):
    """peaks[l, b] = the largest |weights[l, v] (columns[v, b] - centers[l, v])|."""
    prefer_wide_vectors()
    for b in range(size):
        peaks[l, b] = 0
    for v in range(centers.shape[1]):
        center, weight = centers[l, v], weights[l, v]
        for b in range(size):
            peaks[l, b] = larger(peaks[l, b], abs((columns[v, b] - center) * weight))


@njit(**VECTOR)
def add_relative_powers(out, l, columns, centers, weights, inverse_peaks, size, plan):
    """add_powers of all features, the bases times inverse_peaks[l, b], for exponents so
    large that plain powers would leave the range of the format.
    """
    prefer_wide_vectors()
    zero, middle, bias = columns.dtype.type(0), columns.dtype.type(1.5), plan.bias
    logarithm = _logarithm_terms(plan.logarithm)
    exponential = _exponential_terms(plan.exponential)
    exponent, lowest, most = plan.exponent, plan.lowest, plan.most
    for v in range(centers.shape[1]):
        center, weight = centers[l, v], weights[l, v]
        for b in range(size):
            t = (columns[v, b] - center) * weight * inverse_peaks[l, b]
            high, f = _split(t)
            log2 = (high - bias + _horner(logarithm, f - middle)) * exponent
            power = _exp2(smaller(log2, most), exponential)
            out[l, b] += power if log2 > lowest else zero
