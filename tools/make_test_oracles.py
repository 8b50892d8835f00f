#!/usr/bin/env python3
"""Makes the model data of the tests from a folder of test models with oracles.

    make_test_oracles.py MODELS tests/data

MODELS/micro/* are copied whole, with their oracles as .npy files. Of MODELS/tiny-* only the oracles are taken, cut down
to what the tests read; their weights are read from CREST_MODELS_DIR when the tests run.
Needs numpy.
"""
import json
import shutil
import sys
from pathlib import Path

import numpy as np

MODEL_FILES = ("config.json", "tokenizer.json", "model.safetensors")
TOP = 8


def save(folder, name, array):
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{name}.npy", np.ascontiguousarray(array))


def make_micro(source, target):
    target.mkdir(parents=True, exist_ok=True)
    for name in MODEL_FILES:
        shutil.copyfile(source / name, target / name)
    with np.load(source / "oracle.npz") as oracle:
        for name in oracle:
            if name != "greedy_logits":
                array = oracle[name]
                save(target / "oracle", name, array.astype(np.int32) if array.dtype.kind == "i" else array)


def make_tiny(source, target):
    with np.load(source / "oracle.npz") as oracle:
        for prompt in ("one", "seven", "sixtyfive"):
            rows = np.unique([0, (len(oracle[f"{prompt}.ids"]) - 1) // 2, len(oracle[f"{prompt}.ids"]) - 1])
            save(target, f"{prompt}.ids", oracle[f"{prompt}.ids"].astype(np.int32))
            save(target, f"{prompt}.rows", rows.astype(np.int32))
            save(target, f"{prompt}.logits", oracle[f"{prompt}.logits"][rows])
        for prompt in ("twohundred", "thousand"):
            save(target, f"{prompt}.ids", oracle[f"{prompt}.ids"].astype(np.int32))
            save(target, f"{prompt}.top_logits", oracle[f"{prompt}.top_logits"][:, :TOP])
            save(target, f"{prompt}.top_ids", oracle[f"{prompt}.top_ids"][:, :TOP].astype(np.int32))
            save(target, f"{prompt}.lse", oracle[f"{prompt}.lse"])
        save(target, "mtp.top_logits", oracle["mtp.top_logits"][:, :TOP])
        save(target, "mtp.top_ids", oracle["mtp.top_ids"][:, :TOP].astype(np.int32))
        for text in ("docs", "qa"):
            save(target, f"ppl.{text}.ids", oracle[f"ppl.{text}.ids"].astype(np.int16))
            save(target, f"ppl.{text}.nll", oracle[f"ppl.{text}.nll"])
    entries = json.loads((source / "oracle_greedy.json").read_text())
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    (target / "greedy.json").write_text(text + "\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    models, data = Path(sys.argv[1]), Path(sys.argv[2])
    for source in sorted((models / "micro").iterdir()):
        make_micro(source, data / "micro" / source.name)
    for source in sorted(models.glob("tiny-*")):
        make_tiny(source, data / source.name)


if __name__ == "__main__":
    main()
