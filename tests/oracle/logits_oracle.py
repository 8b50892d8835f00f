"""Runs checkpoints through `crest logits`, as folders and as the GGUF files `crest convert` makes of them, and compares
with the oracle.npz beside them.

usage: logits_oracle.py BUILD FOLDER... [--types f32,bf16] [--chunks 1,7,64,65,150]

BUILD: build folder. FOLDER: a Hugging Face folder whose oracle.npz has `ids`, `logits`, `hidden`, `greedy`,
`greedy_logits` and, with an MTP head, `mtp_logits`. Linear layers of plain weights multiply in fp32, so differences are
rounding: at most 1e-4 of the standard deviation of the position's logits (of the layer's hidden states). Chunk sizes must
agree within 1e-4 relative to the whole prompt at once. Every --kv-type must run; of the narrow ones the median position
must be within f16 0.01, bf16 0.05, q8 0.1 standard deviations (a router's near-tie may send one position to other
experts). Needs NumPy.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

TOLERANCE = 1e-4
NARROW_KV = {"f16": 0.01, "bf16": 0.05, "q8": 0.1}


class Model:
    def __init__(self, build, folder, path):
        self.crest, self.driver = build / "src/cli/crest", build / "tests/oracle/crest_oracle_engine"
        self.folder, self.path = folder, path

    def logits(self, ids, *options, hidden=False, mtp=False):
        files = {name: f"{self.folder}/{name}.npy" for name in ("ids", "logits", "hidden", "mtp")}
        np.save(files["ids"], np.asarray(ids, np.int32))
        command = [self.crest, "logits", "-m", self.path, "--ids", files["ids"], "-o", files["logits"], *options]
        command += ["--hidden", files["hidden"]] * hidden + ["--mtp", files["mtp"]] * mtp
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return [np.load(files[name]) for name, wanted in (("logits", True), ("hidden", hidden), ("mtp", mtp)) if wanted]

    def greedy(self, ids, count):
        request = json.dumps({"text": "", "ids": [int(i) for i in ids], "count": count}) + "\n"
        out = subprocess.run([self.driver, self.path, "f32"], input=request, text=True, stdout=subprocess.PIPE, check=True).stdout
        return json.loads(out)["ids"]


def rows_error(ours, wanted, over_rows=np.max):
    """Largest |difference| of a row, in units of the row's standard deviation; the largest of all rows."""
    if ours.shape != wanted.shape:
        return np.inf
    worst = np.abs(ours.astype(np.float64) - wanted).max(axis=-1) / wanted.astype(np.float64).std(axis=-1)
    return float(over_rows(worst)) if np.isfinite(ours).all() else np.inf


def hidden_error(ours, wanted):
    """The same, a layer at a time: single rows of hidden states may be nearly constant."""
    if ours.shape != wanted.shape or not np.isfinite(ours).all():
        return np.inf
    axes = (1, 2)
    return float((np.abs(ours - wanted).max(axis=axes) / wanted.std(axis=axes)).max())


class Checks:
    def __init__(self):
        self.failures = 0

    def __call__(self, what, error, allowed):
        bad = not error <= allowed
        self.failures += bad
        return f"{what} {error:.1e}" + (f" ABOVE {allowed:.0e}" if bad else "")


def check_model(model, oracle, chunks, checks):
    ids, prompt = oracle["ids"], oracle["hidden"].shape[1]
    mtp = "mtp_logits" in oracle
    logits, hidden, *heads = model.logits(ids, hidden=True, mtp=mtp)
    line = [checks("logits", rows_error(logits, oracle["logits"]), TOLERANCE)]
    line.append(checks("hidden", hidden_error(model.logits(ids[:prompt], hidden=True)[1], oracle["hidden"]), TOLERANCE))
    line.append(checks("hidden of all", hidden_error(hidden[:, :prompt], oracle["hidden"]), TOLERANCE))
    if mtp:
        line.append(checks("mtp", rows_error(heads[0], oracle["mtp_logits"]), TOLERANCE))
    greedy = oracle["greedy"]
    forced = model.logits(np.concatenate([ids[:prompt], greedy]))[0][prompt - 1 : -1]
    line.append(checks("greedy logits", rows_error(forced, oracle["greedy_logits"]), TOLERANCE))
    same = model.greedy(ids[:prompt], len(greedy)) == greedy.tolist()
    checks.failures += not same
    line.append(f"greedy {'equal' if same else 'DIFFERENT'}")
    worst = 0.0
    for chunk in chunks:
        got, *rest = model.logits(ids, "--chunk", chunk, mtp=mtp)
        worst = max(worst, rows_error(got, logits), *(rows_error(a, b) for a, b in zip(rest, heads)))
    line.append(checks("chunks", worst, TOLERANCE))
    for kind, allowed in NARROW_KV.items():
        got = model.logits(ids, "--kv-type", kind)[0]
        line.append(checks(f"kv {kind}", rows_error(got, oracle["logits"], np.median), allowed))
    return ", ".join(line)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--chunks", default="1,7,64,65,150")
    options = parser.parse_args()
    checks = Checks()
    for source in options.models:
        oracle = dict(np.load(source / "oracle.npz"))
        with tempfile.TemporaryDirectory() as folder:
            paths = {"folder": os.fspath(source)}
            for kind in filter(None, options.types.split(",")):
                paths[kind] = f"{folder}/{kind}.gguf"
                subprocess.run([options.build / "src/cli/crest", "convert", source, "-o", paths[kind], "--type", kind],
                               check=True, stderr=subprocess.DEVNULL)
            for kind, path in paths.items():
                print(f"{source.name} {kind}: {check_model(Model(options.build, folder, path), oracle, options.chunks.split(','), checks)}", flush=True)
    print(f"{checks.failures} failures")
    sys.exit(checks.failures != 0)


if __name__ == "__main__":
    main()
