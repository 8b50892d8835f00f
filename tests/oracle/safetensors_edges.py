"""Compares which safetensors files Crest and PyPI's `safetensors` accept: hand-made edge cases and random mutations.

usage: safetensors_edges.py DRIVER [MUTATIONS]   (DRIVER: the program crest_oracle_format)

Needs `pip install safetensors numpy`. Crest is stricter on purpose in the points listed in STRICTER.
"""

import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from safetensors import deserialize

STRICTER = ("is there twice",)


def pack(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


A, DATA = tensor(), b"abcdefgh"
PLAIN = json.dumps({"a": A}).encode()
EDGES = {
    "plain": pack({"a": A}, DATA),
    "spaces behind": pack(PLAIN + b"   ", DATA),
    "newline behind": pack(PLAIN + b"\n", DATA),
    "space before": pack(b" " + PLAIN, DATA),
    "NUL behind": pack(PLAIN + b"\0\0", DATA),
    "empty metadata": pack({"__metadata__": {}, "a": A}, DATA),
    "null metadata": pack({"__metadata__": None, "a": A}, DATA),
    "number in metadata": pack({"__metadata__": {"k": 1}, "a": A}, DATA),
    "zero size": pack({"a": A, "z": tensor(shape=(0,), offsets=(0, 0))}, DATA),
    "zero size at the end": pack({"a": A, "z": tensor(shape=(0, 3), offsets=(8, 8))}, DATA),
    "scalar": pack({"s": tensor(shape=(), offsets=(0, 4))}, b"abcd"),
    "one value in no bytes": pack({"a": A, "z": tensor(shape=(1,), offsets=(0, 0))}, DATA),
    "bytes behind": pack({"a": A}, DATA + b"1234"),
    "unaligned": pack({"b": tensor("I8", (1,), (0, 1)), "f": tensor("F32", (1,), (1, 5))}, b"abcde"),
    "no tensor": pack({}),
    "no tensor but data": pack({}, b"x"),
    "hole": pack({"a": A, "b": tensor(shape=(1,), offsets=(12, 16))}, DATA * 2),
    "overlap": pack({"a": A, "b": tensor(shape=(1,), offsets=(4, 8))}, DATA),
    "backwards": pack({"a": tensor(offsets=(8, 0))}, DATA),
    "unknown field": pack({"a": {**A, "more": [1]}}, DATA),
    "unknown type": pack({"a": tensor("Q4")}, DATA),
    "half byte": pack({"a": tensor("F4", (3,), (0, 1))}, b"a"),
    "whole bytes of F4": pack({"a": tensor("F4", (4,), (0, 2))}, b"ab"),
    "float in shape": pack({"a": tensor(shape=(2.0,))}, DATA),
    "negative shape": pack({"a": tensor(shape=(-2,))}, DATA),
    "huge shape": pack({"a": tensor(shape=(2**62, 8), offsets=(0, 0))}),
    "huge shape with zero": pack({"a": tensor(shape=(2**62, 8, 0), offsets=(0, 0))}),
    "array": pack(b"[]"),
    "empty header": pack(b""),
    "too short": b"\1\0\0",
    "length beyond": struct.pack("<Q", 2**63) + b"{}",
}


def reference(content):
    try:
        deserialize(content)
        return True
    except Exception:  # the package raises several types
        return False


def main():
    driver, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    rng = random.Random(5)
    cases = dict(EDGES)
    seeds = list(EDGES.values())
    for i in range(count):
        content = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 3)):
            if content:
                at = rng.randrange(len(content))
                content[at] = rng.choice(b'0123456789[]{},:"\0 ' + bytes([rng.randrange(256)]))
        cases[f"mutation {i}"] = bytes(content)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, content in enumerate(cases.values()):
            paths.append(Path(folder) / f"{i}.safetensors")
            paths[-1].write_bytes(content)
        out = subprocess.run([driver, "accepts"], input="\n".join(map(str, paths)), text=True, stdout=subprocess.PIPE, check=True)
    lines = out.stdout.splitlines()
    wrong = 0
    for (name, content), line in zip(cases.items(), lines, strict=True):
        if (line == "ok") != reference(content):
            if line != "ok" and any(word in line for word in STRICTER):
                continue
            wrong += 1
            print(f"{name}: Crest says {line!r}, the package {'accepts' if line != 'ok' else 'refuses'}: {content[:160]!r}")
    print(f"{len(cases)} files, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
