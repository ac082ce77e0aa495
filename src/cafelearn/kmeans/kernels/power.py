"""|t|^q for whole blocks of numbers, written so that the compiler vectorises it.

Calling ``pow`` of libm for each term would take longer than the rest of the algorithm. With
|t| = 2^e f and f in [1, 2), powers are computed as follows:

* small q: 2^(e q) f^q, where f^q is approximated by a polynomial fitted to this q;
* large q: 2^(q (e + log2 f)), where log2 f is approximated by a polynomial of higher degree;
* q = 2, 3 and 4: products; q = 3/2: a reciprocal square root;
* -1 < q < 0: 2^(e q) f^q, where 2^(e q) is looked up in a table.

The loops contain no branch, no division and no call, so LLVM turns them into SIMD code of the
host's full width. Relative errors are below 2e-11 for float64 and 4e-6 for float32; for float32
powers near the limits of the format they reach 2e-5.
"""

from inspect import signature
from types import SimpleNamespace

import numpy as np
from numba.extending import overload
from numpy.polynomial import chebyshev

from cafelearn.kmeans.kernels.compiling import INLINE, SUMS, VECTOR, njit
from cafelearn.kmeans.kernels.vectors import (
    from_bits,
    horner,
    larger,
    load_terms,
    prefer_wide_vectors,
    smaller,
    to_bits,
)

SQUARE, CUBE, FOURTH, THREE_HALVES, DIRECT, LOGARITHM = range(6)
_SPECIAL = {2.0: SQUARE, 3.0: CUBE, 4.0: FOURTH, 1.5: THREE_HALVES}
# Up to this exponent a polynomial of moderate degree approximates f^q on [1, 2), and t^q stays
# within the range of the format for ordinary data.
LARGEST_DIRECT = {np.dtype(np.float64): 8.0, np.dtype(np.float32): 4.0}
# For -1 < q < 0 the powers of numbers below this are taken as 0: sums of these powers, times
# weights of up to 2^32, could overflow.
NEAREST = {np.dtype(np.float64): 2.0**-900, np.dtype(np.float32): 2.0**-72}

# A plan contains the constants for one exponent q: numbers at the following indices, then the
# coefficients of f^q, log2 f and 2^g for |g| <= 1/2. It is one array, because every argument of
# a compiled function adds to the compilation time.
EXPONENT = 0  # q
BRANCH = 1  # SQUARE, ..., LOGARITHM
BIAS = 2  # number that _split adds to e
SHIFT = 3  # q times BIAS
LEAST = 4  # for small q, the power is 0 if e + BIAS is not above this
LOWEST = 5  # for large q, the power is 0 if its log2 is not above this
MOST = 6  # largest log2 of a power; larger ones are replaced by this
_HEADER = 7
_N_MANTISSA = {"float64": 12, "float32": 7}
_N_LOGARITHM = {"float64": 19, "float32": 10}
_N_EXPONENTIAL = {"float64": 9, "float32": 6}
# The plan of a negative exponent contains the coefficients of f^q, then 2^(e q) for each e.
_N_NEGATIVE = {"float64": 16, "float32": 8}


def _after(first, count):
    return {name: first[name] + count[name] for name in first}


_FIRST = {"float64": _HEADER, "float32": _HEADER}
_mantissa_terms = load_terms(_FIRST, _N_MANTISSA)
_logarithm_terms = load_terms(_after(_FIRST, _N_MANTISSA), _N_LOGARITHM)
_exponential_terms = load_terms(
    _after(_after(_FIRST, _N_MANTISSA), _N_LOGARITHM), _N_EXPONENTIAL
)
_negative_terms = load_terms({"float64": 0, "float32": 0}, _N_NEGATIVE)

# Constants for bit operations on each floating-point format.
_FORMATS = {
    "float64": SimpleNamespace(
        word=np.uint64,
        number=np.float64,
        bias=2048 + 1023,
        # _split moves the exponent's bits into the mantissa of 2048 (256 for float32).
        split_shift=11,
        split_mask=0x000FFE0000000000,
        split_base=0x40A0000000000000,
        mantissa_mask=0x000FFFFFFFFFFFFF,
        one=0x3FF0000000000000,
        exponent_shift=52,
        exponent_mask=0x7FF,
        rounder=1.5 * 2.0**52 + 1023,
        root_magic=0x5FE6EB50C7B537A9,
        newton_steps=2,
    ),
    "float32": SimpleNamespace(
        word=np.uint32,
        number=np.float32,
        bias=256 + 127,
        split_shift=8,
        split_mask=0x007F8000,
        split_base=0x43800000,
        mantissa_mask=0x007FFFFF,
        one=0x3F800000,
        exponent_shift=23,
        exponent_mask=0xFF,
        rounder=1.5 * 2.0**23 + 127,
        root_magic=0x5F375A86,
        newton_steps=1,
    ),
}


def _monomials(function, low, high, terms):
    """Return the coefficients of the Chebyshev interpolant, in powers of t - middle."""
    middle, half = (low + high) / 2, (high - low) / 2
    series = chebyshev.chebinterpolate(lambda t: function(middle + half * t), terms - 1)
    # `cheb2poly` drops the highest coefficients if they are 0, which can happen near integer q.
    found = chebyshev.cheb2poly(series)
    return np.pad(found, (0, terms - len(found))) / half ** np.arange(terms)


def power_plan(exponent, dtype=np.float64):
    """Make the plan of ``|t|**exponent``, exponent > 0, for arrays of float32 or float64."""
    dtype, exponent = np.dtype(dtype), float(exponent)
    branch = _SPECIAL.get(exponent)
    if branch is None:
        branch = DIRECT if exponent <= LARGEST_DIRECT[dtype] else LOGARITHM
    fitted = exponent if branch == DIRECT else 1.0
    mantissa = _monomials(lambda f: f**fitted, 1.0, 2.0, _N_MANTISSA[dtype.name])
    limits, bias = np.finfo(dtype), _FORMATS[dtype.name].bias
    # The kernel subtracts `shift` from a logarithm, so the rounding of `shift` multiplies every
    # power by the same factor. The coefficients correct this.
    shift = dtype.type(bias * exponent)
    mantissa *= np.exp2(float(shift) - bias * float(dtype.type(exponent)))
    least = limits.minexp / max(exponent, 1.0) + 1
    header = (exponent, branch, bias, shift, bias + least, limits.minexp + 1, limits.maxexp - 2)
    return np.concatenate(
        [
            header,
            mantissa,
            _monomials(np.log2, 1.0, 2.0, _N_LOGARITHM[dtype.name]),
            _monomials(np.exp2, -0.5, 0.5, _N_EXPONENTIAL[dtype.name]),
        ]
    ).astype(dtype)


def negative_plan(exponent, dtype=np.float64):
    """Make the plan of ``|t|**exponent`` for -1 < exponent < 0.

    The power is taken as 0 if ``|t|`` is below NEAREST. Use such plans only in loops without
    stores, where the compiler can vectorise the lookups in the table.
    """
    dtype = np.dtype(dtype)
    size, bias = (2048, 1023) if dtype == np.float64 else (256, 127)
    table = np.exp2((np.arange(size) - bias) * float(exponent))
    table[: bias + int(np.log2(NEAREST[dtype]))] = 0
    mantissa = _monomials(lambda f: f**exponent, 1.0, 2.0, _N_NEGATIVE[dtype.name])
    return np.concatenate([mantissa, table]).astype(dtype)


def _by_format(make):
    """Return one function for both formats; `make` returns the version for one format.

    If the compiler is disabled, the same code runs as Python.
    """
    made = {name: make(of) for name, of in _FORMATS.items()}
    if "coefficients" in signature(made["float64"]).parameters:

        def function(number, coefficients):
            return made[number.dtype.name](number, coefficients)

        overload(function, jit_options=VECTOR)(lambda number, coefficients: made[str(number)])
    else:

        def function(number):
            return made[number.dtype.name](number)

        overload(function, jit_options=VECTOR)(lambda number: made[str(number)])
    return function


def _make_split(of):
    shift, mask, base = map(of.word, (of.split_shift, of.split_mask, of.split_base))
    low, one, word = of.word(of.mantissa_mask), of.word(of.one), of.word

    def split(number):
        bits = to_bits(number)
        # Assemble the float BIAS + e from its bits, which is faster than converting an integer.
        exponent = from_bits(word(((bits >> shift) & mask) | base))
        return exponent, from_bits(word((bits & low) | one))

    return split


def _make_fields(of):
    shift, mask = of.word(of.exponent_shift), of.word(of.exponent_mask)
    low, one, word = of.word(of.mantissa_mask), of.word(of.one), of.word

    def fields(number):
        bits = to_bits(number)
        return (bits >> shift) & mask, from_bits(word((bits & low) | one))

    return fields


def _make_exp2(of):
    # Adding `rounder` rounds a number to an integer. The low bits of the sum are that integer
    # plus the exponent bias of the format.
    word, rounder, shift = of.word, of.number(of.rounder), of.word(of.exponent_shift)

    def exp2(number, coefficients):
        rounded = number + rounder
        fraction = number - (rounded - rounder)
        return horner(coefficients, fraction) * from_bits(word(to_bits(rounded) << shift))

    return exp2


def _make_reciprocal_root(of):
    # Shifting the bits halves the exponent, which gives an estimate accurate to 3.5%. One step
    # of third order and one or two Newton steps refine it. A square-root instruction is slower.
    word, magic, one, twice = of.word, of.word(of.root_magic), of.word(1), of.newton_steps == 2
    a, b, c = map(of.number, (1.875, 1.25, 0.375))
    half, three_halves = of.number(0.5), of.number(1.5)

    def reciprocal_root(number):
        root = from_bits(word(magic - (to_bits(number) >> one)))
        e = number * root * root
        root = root * (a - e * (b - c * e))
        root = root * (three_halves - half * number * root * root)
        if twice:
            root = root * (three_halves - half * number * root * root)
        return root

    return reciprocal_root


_split = _by_format(_make_split)  # e + BIAS and f of |number|
_fields = _by_format(_make_fields)  # the bits of the exponent as an integer, and f of |number|
_exp2 = _by_format(_make_exp2)  # 2^number for number below the format's largest exponent
reciprocal_root = _by_format(_make_reciprocal_root)  # 1 / sqrt(number) for number > 0


@njit(**VECTOR)
def negative_power(t, table, terms, middle):
    """Compute |t|^q for -1 < q < 0 with the parts of a plan from `split_negative`."""
    field, f = _fields(t)
    return horner(terms, f - middle) * table[field]


@njit(**INLINE)
def split_negative(plan):
    """Return the table and the coefficients of a negative plan."""
    terms = _negative_terms(plan)
    return plan[len(terms) :], terms


@njit(**VECTOR)
def add_powers(out, row, columns, features, center, weight, size, plan):
    """Add the powers of some features of a block of rows to `out`.

    out[row, b] += |weight[v] (columns[v, b] - center[v])|^q for v in features and b < size,
    where 0^q = 0. With row < 0, feature v is added to out[v].
    """
    prefer_wide_vectors()
    zero, middle = columns.dtype.type(0), columns.dtype.type(1.5)
    exponent, branch = plan[EXPONENT], plan[BRANCH]
    bias, shift = plan[BIAS], plan[SHIFT]
    least, lowest, most = plan[LEAST], plan[LOWEST], plan[MOST]
    mantissa, logarithm = _mantissa_terms(plan), _logarithm_terms(plan)
    exponential = _exponential_terms(plan)
    for j in range(len(features)):
        v = features[j]
        into = row if row >= 0 else v
        z, w = columns.dtype.type(center[v]), columns.dtype.type(weight[v])
        if branch == DIRECT:
            for b in range(size):
                high, f = _split((columns[v, b] - z) * w)
                log2 = smaller(high * exponent - shift, most)
                power = horner(mantissa, f - middle) * _exp2(log2, exponential)
                out[into, b] += power if high > least else zero
        elif branch == THREE_HALVES:
            for b in range(size):
                t = abs((columns[v, b] - z) * w)
                out[into, b] += (t * t) * reciprocal_root(t)
        elif branch == SQUARE:
            for b in range(size):
                t = (columns[v, b] - z) * w
                out[into, b] += t * t
        elif branch == CUBE:
            for b in range(size):
                t = (columns[v, b] - z) * w
                out[into, b] += abs(t) * (t * t)
        elif branch == FOURTH:
            for b in range(size):
                t = (columns[v, b] - z) * w
                out[into, b] += (t * t) * (t * t)
        else:
            for b in range(size):
                high, f = _split((columns[v, b] - z) * w)
                log2 = (high - bias + horner(logarithm, f - middle)) * exponent
                power = _exp2(smaller(log2, most), exponential)
                out[into, b] += power if log2 > lowest else zero


@njit(**VECTOR)
def add_products(out, columns, features, center, weight, size, cubed):
    """Add the powers for q = 2, or q = 3 if `cubed`, to out[0], four features in each loop."""
    prefer_wide_vectors()
    number, count = columns.dtype.type, len(features)
    for j in range(0, count - 3, 4):
        u, v, x, y = features[j], features[j + 1], features[j + 2], features[j + 3]
        z0, z1 = number(center[u]), number(center[v])
        z2, z3 = number(center[x]), number(center[y])
        w0, w1 = number(weight[u]), number(weight[v])
        w2, w3 = number(weight[x]), number(weight[y])
        if cubed:
            for b in range(size):
                t0 = (columns[u, b] - z0) * w0
                t1 = (columns[v, b] - z1) * w1
                t2 = (columns[x, b] - z2) * w2
                t3 = (columns[y, b] - z3) * w3
                c0, c1 = abs(t0) * (t0 * t0), abs(t1) * (t1 * t1)
                c2, c3 = abs(t2) * (t2 * t2), abs(t3) * (t3 * t3)
                out[0, b] += (c0 + c1) + (c2 + c3)
        else:
            for b in range(size):
                t0 = (columns[u, b] - z0) * w0
                t1 = (columns[v, b] - z1) * w1
                t2 = (columns[x, b] - z2) * w2
                t3 = (columns[y, b] - z3) * w3
                out[0, b] += (t0 * t0 + t1 * t1) + (t2 * t2 + t3 * t3)
    for j in range(count - count % 4, count):
        v = features[j]
        z, w = number(center[v]), number(weight[v])
        for b in range(size):
            t = (columns[v, b] - z) * w
            out[0, b] += abs(t) * (t * t) if cubed else t * t


@njit(**SUMS)
def find_peaks(peaks, columns, center, weight, size):
    """Set peaks[b] to the largest |weight[v] (columns[v, b] - center[v])| over v."""
    prefer_wide_vectors()
    for b in range(size):
        peaks[b] = 0
    for v in range(len(center)):
        z, w = columns.dtype.type(center[v]), columns.dtype.type(weight[v])
        for b in range(size):
            peaks[b] = larger(peaks[b], abs((columns[v, b] - z) * w))


@njit(**VECTOR)
def add_relative_powers(out, columns, center, weight, inverse_peaks, size, plan):
    """Add the powers of all features to out[0], with bases multiplied by inverse_peaks[b].

    Used for exponents so large that plain powers would leave the range of the format.
    """
    prefer_wide_vectors()
    zero, middle, bias = columns.dtype.type(0), columns.dtype.type(1.5), plan[BIAS]
    exponent, lowest, most = plan[EXPONENT], plan[LOWEST], plan[MOST]
    logarithm, exponential = _logarithm_terms(plan), _exponential_terms(plan)
    for v in range(len(center)):
        z, w = columns.dtype.type(center[v]), columns.dtype.type(weight[v])
        for b in range(size):
            high, f = _split((columns[v, b] - z) * w * inverse_peaks[b])
            log2 = (high - bias + horner(logarithm, f - middle)) * exponent
            power = _exp2(smaller(log2, most), exponential)
            out[0, b] += power if log2 > lowest else zero
