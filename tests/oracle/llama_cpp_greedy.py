#!/usr/bin/env python3
"""Greedy continuations of Crest and of llama.cpp on the same GGUF file.

    llama_cpp_greedy.py DRIVER MODEL.gguf [COUNT] [KV_TYPE]

DRIVER is the program crest_oracle_engine. Ten prompts, COUNT (64) tokens each; KV_TYPE f32 or f16 for both. The prompts
must be tokenised alike. Where the tokens differ, the first difference must be a near-tie: llama.cpp quantises activations
to int8, which moves logits by some 0.01 to 0.2. Both top-2 logits are shown. Needs PyPI's llama-cpp-python.
"""
import json
import subprocess
import sys

import llama_cpp
import numpy as np

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    ",
    "Water boils at",
    "The three most important rules of writing are",
    "In 1969, the first human",
    "Q: What is the largest planet of the solar system?\nA:",
    "Dear Sir or Madam,\n\nI am writing to",
    "1, 1, 2, 3, 5, 8,",
    "La ville de Paris est située",
]
NEAR_TIE = 0.5
KV_TYPES = {"f32": 0, "f16": 1}


def llama_greedy(llm, ids, count, ends):
    llm.reset()
    llm.eval(ids)
    out, top = [], []
    for _ in range(count):
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(llm.ctx), shape=(llm.n_vocab(),))
        best = np.argsort(-logits, kind="stable")[:2]
        out.append(int(best[0]))
        top.append([int(best[0]), float(logits[best[0]]), int(best[1]), float(logits[best[1]])])
        if out[-1] in ends:
            break
        llm.eval([out[-1]])
    return out, top


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    driver, model = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    kv_type = sys.argv[4] if len(sys.argv) > 4 else "f32"
    llm = llama_cpp.Llama(model, n_ctx=2048, n_threads=1, n_threads_batch=1, verbose=False, type_k=KV_TYPES[kv_type], type_v=KV_TYPES[kv_type])
    vocab = llama_cpp.llama_model_get_vocab(llm.model)
    ends = {t for t in range(llm.n_vocab()) if llama_cpp.llama_vocab_is_eog(vocab, t)}
    requests = "".join(json.dumps({"text": p, "ids": None, "count": count}) + "\n" for p in PROMPTS)
    answers = subprocess.run([driver, model, kv_type], input=requests, text=True, stdout=subprocess.PIPE, check=True).stdout
    failures = equal = 0
    for prompt, line in zip(PROMPTS, answers.splitlines(), strict=True):
        ours = json.loads(line)
        ids = llm.tokenize(prompt.encode(), add_bos=True, special=False)
        if ids != ours["prompt"]:
            print(f"TOKENS DIFFER {prompt!r}: {ours['prompt']}, llama.cpp {ids}")
            failures += 1
            continue
        theirs, top = llama_greedy(llm, ids, count, ends)
        text = llm.detokenize(ours["ids"]).decode(errors="replace")
        if theirs == ours["ids"]:
            equal += 1
            print(f"equal {len(theirs)} {prompt!r} -> {text!r}")
            continue
        at = next((i for i, (a, b) in enumerate(zip(theirs, ours["ids"])) if a != b), min(len(theirs), len(ours["ids"])))
        gap = max(top[at][1] - top[at][3], ours["top"][at][1] - ours["top"][at][3])
        swapped = {top[at][0], top[at][2]} == {ours["top"][at][0], ours["top"][at][2]}
        tie = gap < NEAR_TIE and swapped
        failures += not tie
        print(f"{'near-tie' if tie else 'DIFFERENT'} at token {at} of {prompt!r}: {ours['top'][at]}, llama.cpp {top[at]}\n    -> {text!r}")
    print(f"{model}: {equal} of {len(PROMPTS)} equal, {failures} failures")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
