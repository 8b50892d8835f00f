"""What quantisation costs: NLL, mean KL divergence to the unquantised model and top-1 agreement, for each type.

usage: quality_table.py BUILD MODEL_FOLDER [--rows N] [--types Q8_0,Q4_K_M,...] [--imatrix FILE] [--texts docs,qa] [--fp32]

BUILD: build folder (its crest and crest_oracle_kl are used). MODEL_FOLDER: a Hugging Face folder whose oracle.npz has
held-out rows `ppl.TEXT.ids`. Types ending in -im use the importance matrix. --fp32 forces the reference linear layers,
whose activations stay fp32; without it the fast kernels run, which quantise activations to int8. Needs NumPy.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import numpy as np

TYPES = "Q8_0,Q6_K,Q5_K_M,Q4_K_M,Q4_K_S,IQ4_XS,Q4_0,MXFP4_MOE,Q3_K_M,Q2_K"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--rows", default="16")
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--texts", default="docs,qa")
    parser.add_argument("--imatrix")
    parser.add_argument("--fp32", action="store_true")
    options = parser.parse_args()
    environment = dict(os.environ, CREST_KERNEL_LINEAR="reference") if options.fp32 else None
    oracle = np.load(options.model / "oracle.npz")
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for kind in options.types.split(","):
            files.append(f"{folder}/{kind}.gguf")
            command = [options.build / "src/cli/crest", "quantize", options.model, files[-1], kind.removesuffix("-im")]
            if kind.endswith("-im"):
                command += ["--imatrix", options.imatrix]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        for text in options.texts.split(","):
            ids = f"{folder}/{text}.npy"
            np.save(ids, oracle[f"ppl.{text}.ids"].astype(np.int32))
            driver = [options.build / "tests/oracle/crest_oracle_kl", options.model, ids, options.rows, *files]
            lines = subprocess.run(driver, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
            print(f"| {options.model.name} {text} | NLL | mean KL | top-1 | MB |\n|---|---|---|---|---|")
            for line in lines.splitlines():
                name, nll, kl, same = line.split()
                path = pathlib.Path(name)
                size = f"{path.stat().st_size / 1e6:.2f}" if path.suffix == ".gguf" else ""
                print(f"| {path.stem} | {float(nll):.4f} | {float(kl):.4f} | {100 * float(same):.1f} % | {size} |")


if __name__ == "__main__":
    main()
