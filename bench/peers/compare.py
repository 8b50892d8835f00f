#!/usr/bin/env python3
"""Crest against llama.cpp and ik_llama.cpp on the same files, in turn, with ratios and their spread.

usage: compare.py [--crest BINARY] [--threads 2] [--rounds 5] [-p 512] [-n 128] [-d 0,4096] [--cpu LEVEL] [--venv FOLDER]
                  [--python INTERPRETER] MODEL...

The first run makes a virtual environment in FOLDER (default: build/peers, with --cpu avx2: build/peers-avx2) and installs
llama-cpp-python from PyPI, built from source for this machine, and ik-llama-cpp-python if it builds. With --cpu avx2 both
sides use AVX2 only. --python takes an interpreter that has the packages instead. Each round runs every program once on
each model; lines give the median ratio crest / peer over the rounds and its lowest and highest value.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AVX2_ONLY = "-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON -DGGML_AVX512=OFF"
PEERS = {"llama_cpp": "llama-cpp-python", "ik_llama_cpp": "ik-llama-cpp-python"}


def note(text):
    print(text, file=sys.stderr, flush=True)


def has_module(python, module):
    return subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0


def make_environment(folder, avx2_only):
    """An interpreter with the peers that could be built."""
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    environment = dict(os.environ)
    if avx2_only:
        environment["CMAKE_ARGS"] = AVX2_ONLY
    for module, package in PEERS.items():
        if has_module(python, module):
            continue
        note(f"building {package}; this takes a while (log: {folder}/{module}.log)")
        with open(folder / f"{module}.log", "w") as log:
            subprocess.run([python, "-m", "pip", "install", "--no-cache-dir", "--no-binary", package, package], stdout=log,
                           stderr=log, env=environment)
    return python


def run_crest(options, model):
    environment = dict(os.environ, **({"CREST_CPU": options.cpu} if options.cpu else {}))
    command = [options.crest, "bench", "-m", model, "-t", options.threads, "-p", options.prompt, "-n", options.generate, "-d",
               options.depths, "-r", "1", "-o", "json"]
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout)
    start = time.perf_counter()
    subprocess.run([options.crest, "run", "-m", model, "-t", options.threads, "--raw", "-p", "one two three four five six seven eight " * 3,
                    "-n", "1"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    first = time.perf_counter() - start
    result = {(r["n_prompt"], r["n_gen"], r["n_depth"]): r["avg_ts"] for r in rows}
    return {"speed": result, "first": first, "rss": rows[-1]["peak_rss_bytes"]}


def run_peer(options, module, model):
    command = [options.python, HERE / "measure_llama.py", module, model, options.threads, options.prompt, options.generate, options.depths]
    output = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    speed = {(r["n_prompt"], r["n_gen"], r["n_depth"]): r["ts"] for r in output["rows"]}
    return {"speed": speed, "first": output["first_token_seconds"], "rss": output["peak_rss_bytes"]}


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def test_name(key):
    prompt, generate, depth = key
    return (f"pp{prompt}" if prompt else f"tg{generate}") + (f" @ d{depth}" if depth else "")


def report(model, module, rounds):
    name = pathlib.Path(model).name
    for key in rounds[0]["crest"]["speed"]:
        ours = [r["crest"]["speed"][key] for r in rounds]
        theirs = [r[module]["speed"][key] for r in rounds]
        ratios = [a / b for a, b in zip(ours, theirs)]
        print(f"| {name} | {module} | {test_name(key)} | {spread(ours, 1)} | {spread(theirs, 1)} | {spread(ratios)} |")
    for what, label, scale in (("first", "start to first token, s", 1), ("rss", "peak memory, MB", 1e-6)):
        ours = [r["crest"][what] * scale for r in rounds]
        theirs = [r[module][what] * scale for r in rounds]
        print(f"| {name} | {module} | {label} | {spread(ours)} | {spread(theirs)} | {spread([a / b for a, b in zip(ours, theirs)])} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--crest", default=str(ROOT / "build/release/src/cli/crest"))
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-p", dest="prompt", default="512")
    parser.add_argument("-n", dest="generate", default="128")
    parser.add_argument("-d", dest="depths", default="0,4096")
    parser.add_argument("--cpu", choices=["avx2"])
    parser.add_argument("--venv", type=pathlib.Path)
    parser.add_argument("--python")
    options = parser.parse_args()
    folder = options.venv or ROOT / ("build/peers-avx2" if options.cpu else "build/peers")
    options.python = options.python or make_environment(folder, options.cpu == "avx2")
    peers = [module for module in PEERS if has_module(options.python, module)]
    if not peers:
        sys.exit(f"none of {', '.join(PEERS.values())} could be imported by {options.python}")
    print("| model | peer | test | crest | peer | ratio |\n|---|---|---|---:|---:|---:|")
    for model in options.models:
        rounds = []
        for number in range(options.rounds):
            note(f"{model}: round {number + 1} of {options.rounds}")
            measured = {"crest": run_crest(options, model)}
            measured.update({module: run_peer(options, module, model) for module in peers})
            rounds.append(measured)
        for module in peers:
            report(model, module, rounds)


if __name__ == "__main__":
    main()
