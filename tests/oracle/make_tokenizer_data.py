#!/usr/bin/env python3
"""Writes small tokenizer.json files of many kinds and, for each, texts with the ids that PyPI's tokenizers gives them.

usage: make_tokenizer_data.py [FOLDER]     (default: tests/data/tokenizer)
Every file is trained here on the sentences below. The variants also serve tokenizer_oracle.py.
"""
import copy
import json
import pathlib
import sys

import tokenizers
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers, trainers

MARK = "\u2581"
SENTENCES = """The engine reads a file, splits its text and gives every piece a number.
Numbers such as 1, 22, 333, 4444 and 3.14 are split in several ways; 2026-11-30 too.
I'll say it's fine, they've said they're sure, we'd go and I'm off. DON'T SHOUT, IT'S LATE.
def split(text): return [piece for piece in text.split() if piece != ""]  # a comment
Übergrößenträger naïve café résumé coöperate Ångström Straße ſtraſſe
Привет, мир! Это просто проверка разбиения текста.
日本語の文章と中文的句子混在一起。 한국어 문장도 있다.
नमस्ते दुनिया, यह एक परीक्षण है। สวัสดีชาวโลก नमस्ते
\tTabs and   several    spaces  \n\n\nand lines\r\n end here.  
👩‍👩‍👧‍👦 🎉🎉 🇩🇪 emoji, signs ≤≥≠∑∏ and "quotes" — dashes… 'single'""".split("\n")

TEXTS = SENTENCES + [
    "", " ", "  ", "\n", "\t", "a", " a", "a ", "  a  b  ", "Hello, world!", " Hello", "Hello.</s>", "Hello</s> world", "<s>Hello", "<s> Hello </s>",
    "x<tool>y", "x <tool> y", "x<Tool>y", "abc<mark>def <mark> (<mark>)", "a  <left>  b", "a  <right>  b", "e\u0301 e\u0301<Cafe\u0301> Caf\u00e9",
    "\u2581\u2581 mark \u2581", "it'S IT's we'LL 'ſ '\u017f", "12345678 ١٢٣ ⅷ ½", "a\u0301\u0323\u0308b", "\u0000 \u0001\u007f", "\U0010ffff\ue000\u0378",
    "....!?;;--", "no\u00a0break\u2003space\u3000end", "newline\n\n\n\nnewline \n \n", "\r\r\n\n\r", "CamelCaseWords and ALLCAPS andlower", "🦙",
]  # fmt: skip

GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def trained(model, pre, alphabet, size, special=(), normalizer=None):
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, special_tokens=list(special), show_progress=False)
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    return json.loads(tokenizer.to_str())


def byte_level():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    pre = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN35), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return trained(models.BPE(), pre, alphabet, 420)


def sentencepiece():
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    pre = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always")
    data = trained(models.BPE(unk_token="<unk>"), pre, [MARK, "e", "a"], 520, special)
    data["added_tokens"] = [token for token in data["added_tokens"] if token["id"] < 3]
    data["model"] |= {"byte_fallback": True, "fuse_unk": True}
    return data


def added(data, *tokens):
    """Appends added tokens: (content, flags that differ from the default)."""
    data = copy.deepcopy(data)
    following = max([*data["model"]["vocab"].values(), *(t["id"] for t in data["added_tokens"])]) + 1
    for content, flags in tokens:
        plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
        data["added_tokens"].append({"id": following, "content": content, **plain, **flags})
        following += 1
    return data


def changed(data, **parts):
    data = copy.deepcopy(data)
    for key, value in parts.items():
        data["model"].update(value) if key == "model" else data.__setitem__(key, value)
    return data


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def variants():
    last = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    gpt2 = last | {"use_regex": True}
    base = byte_level()
    nfc = {"type": "NFC"}
    yield "bytes_plain", changed(base, pre_tokenizer=gpt2)
    yield "bytes_prefix_space", changed(base, pre_tokenizer=gpt2 | {"add_prefix_space": True})
    yield "bytes_digits", changed(base, pre_tokenizer=sequence({"type": "Digits", "individual_digits": True}, gpt2))
    yield "bytes_gpt4o", changed(base, pre_tokenizer=sequence(split(GPT4O), last), normalizer=nfc)
    pairs = [merge if isinstance(merge, list) else merge.split(" ") for merge in base["model"]["merges"]]
    lines = {"merges": [" ".join(pair) for pair in pairs], "ignore_merges": True}
    yield "bytes_ignore_merges", changed(base, model=lines, normalizer={"type": "Sequence", "normalizers": [nfc]})
    for behavior in ("Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        steps = sequence(split(r"\s", behavior), split("[aeiou.]", behavior, True), split("ll", behavior, kind="String"), last)
        yield f"bytes_{behavior.lower()}", changed(base, pre_tokenizer=steps)
    punctuation = sequence({"type": "Punctuation", "behavior": "Contiguous"}, {"type": "WhitespaceSplit"}, split(r"(?=\d)|\b"), last)
    yield "bytes_punctuation", changed(base, pre_tokenizer=punctuation)
    flags = [("<tool>", {}), ("<mark>", {"single_word": True}), ("<left>", {"lstrip": True, "special": True}), ("<right>", {"rstrip": True}),
             ("<Cafe\u0301>", {"normalized": True}), ("</s>", {"special": True}), ("</s", {})]  # fmt: skip
    yield "bytes_added", added(changed(base, normalizer=nfc), *flags)
    pieces = sentencepiece()
    prepend, replace = {"type": "Prepend", "prepend": MARK}, {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    llama = {"type": "Sequence", "normalizers": [prepend, replace]}
    parts = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template = {"type": "TemplateProcessing", "single": parts, "pair": parts,
                "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}  # fmt: skip
    yield "pieces_llama", changed(pieces, pre_tokenizer=None, normalizer=llama, post_processor=template)
    yield "pieces_gemma", added(changed(pieces, pre_tokenizer=split(" ", "MergedWithPrevious", kind="String"), normalizer=replace),
                                ("\n\n", {}), (MARK * 2, {}), ("<tool>", {}))  # fmt: skip
    for scheme in ("first", "always", "never"):
        metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": scheme == "always"}
        yield f"pieces_{scheme}", changed(pieces, pre_tokenizer=metaspace, normalizer=None)
    unknown = changed(pieces, pre_tokenizer=None, normalizer=llama, model={"byte_fallback": False})
    yield "pieces_unknown", unknown
    yield "pieces_unfused", changed(unknown, model={"fuse_unk": False, "ignore_merges": True})


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "data/tokenizer"
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for name, data in variants():
        (folder / f"{name}.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / f"{name}.json"))
        for special in (True, False):
            tokenizer.encode_special_tokens = not special
            ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
            cases.append({"vocabulary": f"{name}.json", "special": special, "ids": ids})
    text = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    texts = json.dumps(TEXTS, ensure_ascii=True)
    (folder / "cases.json").write_text(f'{{"texts":{texts},\n"cases":[\n{text}\n]}}\n')


if __name__ == "__main__":
    main()
