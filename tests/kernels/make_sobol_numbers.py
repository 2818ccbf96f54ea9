#!/usr/bin/env python3
"""Packs Joe and Kuo's initial direction numbers of Sobol sequences, for the kernel of SobolSample.

    python3 tests/kernels/make_sobol_numbers.py > kernels/random/sobol_numbers.bin

They are those of new-joe-kuo-6.21201 (S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
projections", 2008; kernels/random/sobol_numbers.LICENSE), which TensorFlow's package contains as a table of all direction
numbers, sobol_data.h.

The file is a string of bits, the highest bit of a byte first. Dimension 1 has no numbers. Each further dimension has a primitive
polynomial x^s + a_1 x^(s-1) + ... + a_(s-1) x + 1, in order of degree and value, and odd numbers m_1 = 1, m_2, ..., m_s with m_i
below 2^i. Its bits are a_1 ... a_(s-1), then the i - 1 upper bits of each m_i from m_2 on. All primitive polynomials up to degree
17 are there, and those of degree 18 but the last, so that the degree follows from the number of the dimension.
"""
import os
import re
import sys

import tensorflow as tf

MOST_DEGREE = 18


def prime_factors(n):
    factors, p = set(), 2
    while p * p <= n:
        while n % p == 0:
            factors.add(p)
            n //= p
        p += 1
    return factors | ({n} if n > 1 else set())


def power_of_x(exponent, polynomial, degree):
    """x ^ exponent modulo a polynomial over two elements."""
    result, top = 1, 1 << degree
    for bit in bin(exponent)[2:]:
        square = sum(((result >> i) & 1) << (2 * i) for i in range(degree))
        if bit == '1':
            square <<= 1
        for i in range(2 * degree, degree - 1, -1):
            if (square >> i) & 1:
                square ^= polynomial << (i - degree)
        result = square
        assert result < top
    return result


def primitive_polynomials(degree):
    order = (1 << degree) - 1
    factors = prime_factors(order)
    for inner in range(1 << (degree - 1)):
        polynomial = 1 << degree | inner << 1 | 1
        if power_of_x(order, polynomial, degree) == 1 and all(
                power_of_x(order // f, polynomial, degree) != 1 for f in factors if f != order):
            yield inner


def next_number(numbers, inner, degree):
    """The number after those of a dimension (Bratley and Fox, Algorithm 659)."""
    new = numbers[-degree] << degree ^ numbers[-degree]
    for i in range(1, degree):
        if (inner >> (degree - 1 - i)) & 1:
            new ^= numbers[-i] << i
    return new


def main():
    path = os.path.join(tf.sysconfig.get_include(), 'external', 'sobol_data', 'sobol_data.h')
    rows = [[int(v) for v in row.split(',')] for row in re.findall(r'^\s*{([\d, ]+)}', open(path).read(), re.M)]
    bits, at = [], 1
    for degree in range(1, MOST_DEGREE + 1):
        for inner in primitive_polynomials(degree):
            if at == len(rows):
                break
            row = rows[at]
            at += 1
            for k in range(degree, len(row)):
                assert row[k] == next_number(row[:k], inner, degree), (at, k)
            assert all(m % 2 == 1 and m < 2 << i for i, m in enumerate(row[:degree]))
            if degree > 1:
                bits.append(format(inner, '0%db' % (degree - 1)))
            bits.extend(format(m >> 1, '0%db' % i) for i, m in enumerate(row[:degree]) if i)
    assert at == len(rows)
    bits = ''.join(bits)
    bits += '0' * (-len(bits) % 8)
    sys.stdout.buffer.write(int(bits, 2).to_bytes(len(bits) // 8, 'big'))
    print('%d dimensions' % at, file=sys.stderr)


if __name__ == '__main__':
    main()
