"""What quantisation costs: NLL, mean KL divergence to the unquantised model and top-1 agreement, for each type.

usage: quality_table.py BUILD MODEL_FOLDER [--rows N] [--types Q8_0,Q4_K_M-im,...] [--imatrix FILE] [--texts docs,qa]
                        [--activations fp32,int8] [--reference]

BUILD: build folder (its crest and crest_oracle_kl are used). MODEL_FOLDER: a Hugging Face folder whose oracle.npz has
held-out rows `ppl.TEXT.ids`. Types ending in -im use the importance matrix; kv-TYPE is the unquantised model with keys
and values in that type. Column int8: the fast kernels, which quantise activations to int8. Column fp32: the same weights
widened to F32, whose kernels multiply in fp32; with --reference the reference linear layers on the quantised weights
instead, which is slow and says the same. Needs NumPy.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import numpy as np

TYPES = "Q8_0,Q6_K,Q5_K_M,Q4_K_M,Q4_K_S,IQ4_XS,Q4_0,MXFP4_MOE,Q3_K_M,Q2_K,kv-f16,kv-bf16,kv-q8"


class Table:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.crest = options.build / "src/cli/crest"

    def quantize(self, source, kind, name):
        path = f"{self.folder}/{name}"
        command = [self.crest, "quantize", source, path, kind.removesuffix("-im")]
        if kind.endswith("-im"):
            command += ["--imatrix", self.options.imatrix]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return path

    def measure(self, models, ids):
        driver = [self.options.build / "tests/oracle/crest_oracle_kl", self.options.model, ids, self.options.rows, *models]
        environment = dict(os.environ, CREST_KERNEL_LINEAR="reference") if self.options.reference else None
        lines = subprocess.run(driver, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout.splitlines()
        return [[float(word) for word in line.rsplit(" ", 3)[1:]] for line in lines[1:]]

    def files(self, kind):
        """One model for each kind of activations, and the size in MB."""
        wanted = self.options.activations
        if kind.startswith("kv-"):
            return [f"{self.options.model}@{kind[3:]}"], None
        path = self.quantize(self.options.model, kind, f"{kind}.gguf")
        wide = path if self.options.reference or "fp32" not in wanted else self.quantize(path, "F32", f"{kind}.f32.gguf")
        return [wide if a == "fp32" else path for a in wanted], os.path.getsize(path) / 1e6

    def rows(self, kinds, ids):
        """Lines of the table: the unquantised model is evaluated once for all kinds."""
        files = [self.files(kind) for kind in kinds]
        figures = iter(self.measure([path for paths, _ in files for path in paths], ids))
        for kind, (paths, size) in zip(kinds, files):
            cells = [f"{nll:.4f} / {kl:.4f} / {100 * same:.1f} %" for nll, kl, same in (next(figures) for _ in paths)]
            yield f"| {kind} | {f'{size:.2f}' if size else ''} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--rows", default="16")
    parser.add_argument("--types", default=TYPES, type=lambda text: text.split(","))
    parser.add_argument("--texts", default="docs,qa", type=lambda text: text.split(","))
    parser.add_argument("--activations", default="fp32,int8", type=lambda text: text.split(","))
    parser.add_argument("--imatrix")
    parser.add_argument("--at-once", type=int, default=4, help="types in memory at a time")
    parser.add_argument("--reference", action="store_true")
    options = parser.parse_args()
    if options.reference:
        options.activations = ["fp32"]
    oracle = np.load(options.model / "oracle.npz")
    with tempfile.TemporaryDirectory() as folder:
        table = Table(options, folder)
        for text in options.texts:
            ids = f"{folder}/{text}.npy"
            np.save(ids, oracle[f"ppl.{text}.ids"].astype(np.int32))
            print(f"| {options.model.name} {text} | MB | " + " | ".join(options.activations) + " |\n" + "|---" * (2 + len(options.activations)) + "|")
            for first in range(0, len(options.types), options.at_once):
                for line in table.rows(options.types[first : first + options.at_once], ids):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
