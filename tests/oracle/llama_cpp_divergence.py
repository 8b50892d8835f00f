#!/usr/bin/env python3
"""How far int8 activations take Crest and llama.cpp from fp32 arithmetic on the same quantised weights.

    llama_cpp_divergence.py CREST MODEL.gguf MODEL-F32.gguf TEXT [TOKENS]

MODEL-F32.gguf: made by `crest quantize --allow-requantize MODEL.gguf MODEL-F32.gguf F32`. The first TOKENS (256) of TEXT
are evaluated; mean KL divergence, rms difference of the logits and top-1 agreement are against llama.cpp on the F32 file.
Fails when Crest's fp32 logits differ from llama.cpp's by more than rounding (KL 1e-5; llama.cpp looks GELU up in half
precision), or when Crest's int8 path is further from fp32 than twice llama.cpp's. Needs PyPI's llama-cpp-python.
"""
import pathlib
import subprocess
import sys
import tempfile

import llama_cpp
import numpy as np


def llama_logits(path, text=None, ids=None, count=256):
    llm = llama_cpp.Llama(path, n_ctx=count, n_batch=count, n_threads=1, n_threads_batch=1, verbose=False, logits_all=True, type_k=0, type_v=0)
    ids = ids or llm.tokenize(text.encode(), add_bos=True)[:count]
    llm.eval(ids)
    return ids, np.array(llm.scores[: len(ids)], np.float64)


def crest_logits(crest, path, ids):
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/ids.npy", np.array(ids, np.int32))
        subprocess.run([crest, "logits", "-m", path, "--ids", f"{folder}/ids.npy", "-o", f"{folder}/logits.npy"], check=True, stderr=subprocess.DEVNULL)
        return np.load(f"{folder}/logits.npy").astype(np.float64)


def log_softmax(logits):
    shifted = logits - logits.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    crest, model, wide = sys.argv[1:4]
    text = pathlib.Path(sys.argv[4]).read_text()
    ids, base = llama_logits(wide, text=text, count=int(sys.argv[5]) if len(sys.argv) > 5 else 256)
    base_log = log_softmax(base)
    divergence = {}
    for name, logits in (
        ("crest fp32", crest_logits(crest, wide, ids)),
        ("llama.cpp int8", llama_logits(model, ids=ids, count=len(ids))[1]),
        ("crest int8", crest_logits(crest, model, ids)),
    ):
        divergence[name] = (np.exp(base_log) * (base_log - log_softmax(logits))).sum(1).mean()
        rms, same = np.sqrt(((logits - base) ** 2).mean()), (logits.argmax(1) == base.argmax(1)).mean()
        print(f"{name}: mean KL {divergence[name]:.2e}, rms difference {rms:.4f}, same best token {100 * same:.1f} %")
    bad = divergence["crest fp32"] > 1e-5 or divergence["crest int8"] > 2 * divergence["llama.cpp int8"]
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
