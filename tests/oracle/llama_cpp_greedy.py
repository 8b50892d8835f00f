#!/usr/bin/env python3
"""Greedy continuations of Crest and of llama.cpp on the same GGUF file.

    llama_cpp_greedy.py DRIVER MODEL.gguf [COUNT] [KV_TYPE] [NEAR_TIE]

DRIVER is the program crest_oracle_engine. Ten prompts, COUNT (64) tokens each; KV_TYPE f32 or f16 for both. The prompts
must be tokenised alike. Where the tokens differ, the first difference must be a near-tie: what one chooses is less than
NEAR_TIE (0.5) below the best of the other, for both. Both quantise activations to int8, each in its way, which moves
logits by some 0.01 to 0.5. On the same weights widened to F32 (crest quantize --allow-requantize MODEL OUT F32) both
multiply in fp32, and a NEAR_TIE of 0.01 is enough. Both top-2 logits are shown. Needs PyPI's llama-cpp-python.
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
KV_TYPES = {"f32": 0, "f16": 1}


def llama_greedy(llm, ids, count, ends):
    llm.reset()
    llm.eval(ids)
    out, top = [], []
    for _ in range(count):
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(llm.ctx), shape=(llm.n_vocab(),))
        best = np.argsort(-logits, kind="stable")[:10]
        out.append(int(best[0]))
        top.append([value for i in best for value in (int(i), round(float(logits[i]), 4))])
        if out[-1] in ends:
            break
        llm.eval([out[-1]])
    return out, top


def behind(top, token):
    """How far a token's logit is below the best one."""
    return next((top[1] - top[i + 1] for i in range(0, len(top), 2) if top[i] == token), np.inf)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    driver, model = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    kv_type = sys.argv[4] if len(sys.argv) > 4 else "f32"
    near_tie = float(sys.argv[5]) if len(sys.argv) > 5 else 0.5
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
        if at == len(theirs) or at == len(ours["ids"]):
            print(f"DIFFERENT: one ends at token {at} of {prompt!r}: {ours['ids'][at - 1 :]}, llama.cpp {theirs[at - 1 :]}")
            failures += 1
            continue
        a, b = ours["top"][at], top[at]
        gap = max(behind(a, b[0]), behind(b, a[0]))
        tie = gap < near_tie
        failures += not tie
        print(f"{'near-tie' if tie else 'DIFFERENT'} at token {at} of {prompt!r}: {a[:4]}, llama.cpp {b[:4]}, gap {gap:.3f}\n    -> {text!r}")
    print(f"{model}: {equal} of {len(PROMPTS)} equal, {failures} failures")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
