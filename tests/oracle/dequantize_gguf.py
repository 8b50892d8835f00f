"""Compares Crest's dequantisation with PyPI's `gguf` package, bit for bit, on random blocks of every type.

usage: dequantize_gguf.py DRIVER [BLOCKS]   (DRIVER: the program crest_oracle_quant; BLOCKS: per type, default 20000)
       dequantize_gguf.py golden            (prints the hashes that tests/tensor/dequantize_test.cpp holds)

Needs `pip install gguf`. Bytes are uniformly random, so scales take every value: subnormal halves, infinities, NaN and
all 256 scale bytes of MXFP4. NaN equals NaN whatever its payload.
"""

import subprocess
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize

QUANTISED = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ4_NL IQ4_XS MXFP4"
PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}


def crest(driver, name, data):
    out = subprocess.run([driver, "dequantize", name], input=data.tobytes(), stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(out, "<f4")


def equal(a, b):
    nan = np.isnan(a)
    return a.shape == b.shape and np.array_equal(nan, np.isnan(b)) and np.array_equal(a[~nan].view("u4"), b[~nan].view("u4"))


def reference(name, data):
    with np.errstate(all="ignore"):
        if name in PLAIN:
            return data.reshape(-1).view(PLAIN[name]).astype(np.float32)
        return np.asarray(dequantize(data, Type[name]), np.float32).reshape(-1)


def golden():
    for name in QUANTISED.split():
        size, state = GGML_QUANT_SIZES[Type[name]][1] * 64, 1
        data = np.empty(size, np.uint8)
        for i in range(size):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            data[i] = state >> 24
        values = reference(name, data.reshape(64, -1)).copy()
        values[np.isnan(values)] = np.nan
        digest = 1469598103934665603
        for byte in values.astype("<f4").tobytes():
            digest = (digest ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
        print(f"    {{DType::k{name}, 0x{digest:016x}}},")
    return 0


def main():
    if sys.argv[1] == "golden":
        return golden()
    driver, blocks = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    rng = np.random.default_rng(7)
    failures = 0
    for name in QUANTISED.split() + ["BF16"] + list(PLAIN):
        data = rng.integers(0, 256, (blocks, GGML_QUANT_SIZES[Type[name]][1]), dtype=np.uint8)
        expected = reference(name, data)
        ok = equal(crest(driver, name, data), expected)
        failures += not ok
        print(f"{name:8} {expected.size:9} values  {'equal' if ok else 'DIFFERENT'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
