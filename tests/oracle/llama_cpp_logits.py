"""Runs a GGUF file that Crest wrote through llama.cpp and compares its logits with an oracle.npz.

usage: llama_cpp_logits.py ORACLE.npz FILE.gguf...

Needs `pip install llama-cpp-python numpy` (or LLAMA_CPP_LIB_PATH and PYTHONPATH pointing at a build of it). Prints, for
each file, the largest difference over all positions in units of the logits' standard deviation, and how many of the
oracle's greedy tokens llama.cpp chooses too.
"""

import ctypes
import sys

import llama_cpp
import numpy as np


def evaluate(context, ids, vocab):
    batch = llama_cpp.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), i, 1, 1
        batch.seq_id[i][0] = 0
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
    if llama_cpp.llama_decode(context, batch) != 0:
        raise SystemExit("llama_decode failed")
    logits = np.empty((len(ids), vocab), np.float32)
    for i in range(len(ids)):
        row = llama_cpp.llama_get_logits_ith(context, i)
        logits[i] = np.ctypeslib.as_array(ctypes.cast(row, ctypes.POINTER(ctypes.c_float)), (vocab,))
    llama_cpp.llama_batch_free(batch)
    return logits


def main():
    oracle = np.load(sys.argv[1])
    prefix = "" if "ids" in oracle else "sixtyfive."
    ids, wanted = oracle[prefix + "ids"], oracle[prefix + "logits"]
    llama_cpp.llama_backend_init()
    silent = llama_cpp.llama_log_callback(lambda level, text, user: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    worst = 0.0
    for path in sys.argv[2:]:
        model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        if not model:
            raise SystemExit(f"{path}: llama.cpp cannot load it")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = 512
        params.type_k = params.type_v = llama_cpp.GGML_TYPE_F32
        params.flash_attn_type = 0
        params.n_threads = params.n_threads_batch = 1
        context = llama_cpp.llama_init_from_model(model, params)
        vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        logits = evaluate(context, ids, vocab)
        difference = float(np.abs(logits - wanted).max() / wanted.std())
        text = f"{path}: max |difference| = {difference:.2e} standard deviations over {len(ids)} positions"
        if "greedy" in oracle:
            chain, agree = list(ids[:70]), 0
            for token in oracle["greedy"]:
                agree += int(evaluate(context, chain, vocab)[-1].argmax() == token)
                chain.append(int(token))
            text += f", {agree} of {len(oracle['greedy'])} greedy tokens equal"
        print(text)
        worst = max(worst, difference)
        llama_cpp.llama_free(context)
        llama_cpp.llama_model_free(model)
    return 0 if worst < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
