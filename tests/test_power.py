"""|t|^q against extended precision, and that it is really vectorised."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaError

from cafelearn.kmeans.kernels.compiling import ENTRY, EXACT, MAKES, SUMS
from cafelearn.kmeans.kernels.power import (
    _monomials,
    add_powers,
    add_products,
    add_relative_powers,
    find_peaks,
    negative_plan,
    negative_power,
    power_plan,
    split_negative,
)
from passes import from_python

EXPONENTS = (0.1, 0.7, 1.0, 1.001, 1.1, 1.5, 1.9, 2.0, 2.5, 3.0, 4.0, 5.3, 7.9, 8.0)
TOLERANCE = {np.float64: 2e-11, np.float32: 4e-6}


def test_arrays_are_borrowed():
    # An option of Numba that is not documented; without it kernels are right but slow.
    assert not EXACT["_nrt"]
    assert not SUMS["_nrt"]
    assert MAKES["_nrt"]

    @njit(**dict(ENTRY, cache=False))
    def part(values):
        return values[1:]

    with pytest.raises(NumbaError):
        part(np.arange(3.0))


def test_coefficients_of_zero_are_kept(monkeypatch):
    """Near an integer exponent the highest may be 0, at p = 4.999113084153957 for example."""
    series = np.r_[1.5, 0.5, np.zeros(10)]
    monkeypatch.setattr(np.polynomial.chebyshev, "chebinterpolate", lambda *_: series)
    found = _monomials(None, 1.0, 2.0, 12)
    assert np.array_equal(found, [1.5, 1.0, *np.zeros(10)])


def bases(dtype, low, high, n=4096):
    t = np.exp2(np.random.default_rng(0).uniform(low, high, size=n))
    t[1::2] *= -1
    return t.astype(dtype)[None, :]


def raise_all(t, exponent, dtype):
    out = np.zeros_like(t)
    plan, add = power_plan(exponent, dtype), from_python(add_powers)
    add(out, 0, t, np.arange(1), np.zeros(1), np.ones(1), t.shape[1], plan)
    return out


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers(exponent, dtype):
    if dtype == np.float32 and exponent > 4:
        low, high = -6, 3
    else:
        low, high = (-100, 20) if dtype == np.float64 else (-20, 4)
    t = bases(dtype, low, high)
    expected = np.abs(t.astype(np.longdouble)) ** np.longdouble(exponent)
    error = np.abs(raise_all(t, exponent, dtype) / expected - 1)
    assert error.max() < TOLERANCE[dtype]


@pytest.mark.parametrize("exponent", [8.5, 20.0, 48.0, 200.0])
def test_large_powers(exponent):
    t = bases(np.float64, -2, 0)
    expected = np.abs(t.astype(np.longdouble)) ** np.longdouble(exponent)
    error = np.abs(raise_all(t, exponent, np.float64) / expected - 1)
    assert error.max() < 1e-12 * exponent


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [-0.999, -0.9, -0.5, -0.1, -0.001])
def test_negative_powers(exponent, dtype):
    @njit
    def run(t, plan):
        out = np.empty_like(t)
        table, terms = split_negative(plan)
        for i in range(len(t)):
            out[i] = negative_power(t[i], table, terms, t.dtype.type(1.5))
        return out

    t = bases(dtype, -30, 5)[0]
    expected = np.abs(t.astype(np.longdouble)) ** np.longdouble(exponent)
    out = run(t, negative_plan(exponent, dtype))
    assert np.abs(out / expected - 1).max() < TOLERANCE[dtype]
    assert run(np.zeros(1, dtype), negative_plan(exponent, dtype))[0] == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_zero_and_huge_bases(exponent, dtype):
    t = np.array([[0.0, -0.0, np.finfo(dtype).max, np.finfo(dtype).tiny]], dtype)
    with np.errstate(over="ignore"):
        out = raise_all(np.tile(t, 8), exponent, dtype)[0]
    assert out[0] == out[1] == 0
    assert out[2] >= 0.9 * np.finfo(dtype).max ** min(exponent, 0.9)
    assert 0 <= out[3] <= 1.1 * np.finfo(dtype).tiny ** min(exponent, 0.9)


@pytest.mark.parametrize("cubed", [False, True])
@pytest.mark.parametrize("n_features", [1, 3, 4, 7, 16])
def test_products_in_fours(n_features, cubed):
    rng = np.random.default_rng(0)
    columns, features = rng.normal(size=(n_features, 32)), np.arange(n_features)
    center, weight = rng.normal(size=n_features), rng.random(n_features)
    out = np.zeros((2, 32))
    from_python(add_products)(out, columns, features, center, weight, 32, cubed)
    t = np.abs(weight[:, None] * (columns - center[:, None]))
    np.testing.assert_allclose(out[0], (t ** (3 if cubed else 2)).sum(axis=0), rtol=1e-13)
    assert not out[1].any()


def test_features_can_have_their_own_rows():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(5, 32))
    center, weight = rng.normal(size=5), rng.random(5)
    out, features = np.zeros((5, 32)), np.array([1, 4])
    from_python(add_powers)(out, -1, columns, features, center, weight, 32, power_plan(1.3))
    expected = np.abs(weight[:, None] * (columns - center[:, None])) ** 1.3
    np.testing.assert_allclose(out[[1, 4]], expected[[1, 4]], rtol=1e-11)
    assert not out[[0, 2, 3]].any()


def test_relative_powers_do_not_underflow():
    columns = 1e-30 * np.random.default_rng(0).normal(size=(3, 32))
    center, weight = np.zeros(3), np.ones(3)
    peaks, out = np.zeros(32), np.zeros((1, 32))
    from_python(find_peaks)(peaks, columns, center, weight, 32)
    np.testing.assert_array_equal(peaks, np.abs(columns).max(axis=0))
    add, plan = from_python(add_relative_powers), power_plan(50.0)
    add(out, columns, center, weight, 1 / peaks, 32, plan)
    expected = ((np.abs(columns) / peaks) ** 50).sum(axis=0)
    np.testing.assert_allclose(out[0], expected, rtol=1e-10)


def wide_registers():
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return [name for name, flag in (("zmm", "avx512f"), ("ymm", "avx2")) if features.get(flag)]


@pytest.mark.skipif(not wide_registers(), reason="this processor has neither AVX2 nor AVX-512")
def test_the_loops_are_vectorised():
    # Compiled afresh: code from the cache cannot be inspected.
    fresh = njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"})(
        add_powers.py_func
    )
    out, columns = np.zeros((1, 128)), np.ones((4, 128))
    fresh(out, 0, columns, np.arange(4), np.zeros(4), np.ones(4), 128, power_plan(1.1))
    assembly = "".join(fresh.inspect_asm().values())
    fused = [line for line in assembly.splitlines() if "vfm" in line]
    assert sum(wide_registers()[0] in line for line in fused) >= 20
