"""Speed of llama.cpp (or a fork with the same Python binding) on one file, through the binding's low-level functions.

usage: measure_llama.py MODULE MODEL THREADS PROMPT GENERATE DEPTHS

MODULE: llama_cpp or ik_llama_cpp. DEPTHS: 0,4096. Prints one JSON object: rows with n_prompt, n_gen, n_depth and ts (tokens
a second), first_token_seconds (from before the model is opened, a prompt of 32 tokens) and peak_rss_bytes.
"""

import importlib
import json
import resource
import sys
import time


class Peer:
    def __init__(self, module, model, threads, context):
        self.api = importlib.import_module(module)
        silent = self.api.llama_log_callback(lambda level, text, user_data: None)
        self.silent = silent  # the library keeps a pointer to it
        self.api.llama_log_set(silent, None)
        self.api.llama_backend_init()
        self.start = time.perf_counter()
        self.model = self.api.llama_model_load_from_file(model.encode(), self.api.llama_model_default_params())
        if not self.model:
            sys.exit(f"{module} cannot load {model}")
        params = self.api.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = threads
        self.context = self.api.llama_init_from_model(self.model, params)
        self.vocab = self.api.llama_vocab_n_tokens(self.api.llama_model_get_vocab(self.model))

    def clear(self):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)

    def feed(self, count, seed):
        """Evaluates `count` pseudo-random tokens, at most 512 at a time; logits of the last."""
        for begin in range(0, count, 512):
            n = min(512, count - begin)
            tokens = (self.api.llama_token * n)(*[(seed * 7919 + (begin + i) * 104729) % self.vocab for i in range(n)])
            if self.api.llama_decode(self.context, self.api.llama_batch_get_one(tokens, n)) != 0:
                sys.exit("llama_decode failed")

    def speed(self, n_prompt, n_gen, depth):
        self.clear()
        self.feed(depth, 1)
        start = time.perf_counter()
        self.feed(n_prompt, 2)
        for i in range(n_gen):
            self.feed(1, 3 + i)
        self.api.llama_get_logits(self.context)
        return (n_prompt + n_gen) / (time.perf_counter() - start)


def main():
    module, model = sys.argv[1:3]
    threads, n_prompt, n_gen = map(int, sys.argv[3:6])
    depths = [int(d) for d in sys.argv[6].split(",")]
    peer = Peer(module, model, threads, max(depths) + max(n_prompt, n_gen) + 64)
    peer.feed(32, 1)
    peer.api.llama_get_logits(peer.context)
    first = time.perf_counter() - peer.start
    rows = []
    for depth in depths:
        for p, g in ((n_prompt, 0), (0, n_gen)):
            if p + g > 0:
                peer.speed(min(p, 64), min(g, 1), 0)
                rows.append({"n_prompt": p, "n_gen": g, "n_depth": depth, "ts": peer.speed(p, g, depth)})
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"rows": rows, "first_token_seconds": first, "peak_rss_bytes": rss}))


if __name__ == "__main__":
    main()
