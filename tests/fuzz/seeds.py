#!/usr/bin/env python3
"""Writes the seed corpora of the fuzz targets: seeds.py FOLDER makes FOLDER/TARGET/... and FOLDER/words.dict."""
import json
import pathlib
import struct
import sys

root = pathlib.Path(__file__).resolve().parents[2]
out = pathlib.Path(sys.argv[1])
words = set()


def seed(target, name, data):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def note_words(value):
    """The keys and short strings of a JSON value, for the dictionary."""
    if isinstance(value, dict):
        for key, member in value.items():
            words.add(key)
            note_words(member)
    elif isinstance(value, list):
        for member in value[:4]:
            note_words(member)
    elif isinstance(value, str) and len(value) < 30:
        words.add(value)


# ---- safetensors

SIZES = {"F32": 4, "F64": 8, "I64": 8, "BOOL": 1}


def safetensors(tensors, metadata=None, header=None, pad=""):
    """A file of name -> (dtype, shape), all of it zeros; `header` replaces the right one."""
    entries, end = {}, 0
    if metadata is not None:
        entries["__metadata__"] = metadata
    for name, (dtype, shape) in tensors.items():
        count = SIZES[dtype]
        for size in shape:
            count *= size
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + count]}
        end += count
    note_words(entries)
    text = (header if header is not None else json.dumps(entries, separators=(",", ":")) + pad).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


seed("safetensors", "none", safetensors({}))
seed("safetensors", "scalar", safetensors({"w": ("F32", [])}))
seed("safetensors", "spaces", safetensors({"w": ("F32", [1])}, pad="   "))
seed("safetensors", "dtypes", safetensors({k: (k, [2]) for k in SIZES}, {"format": "pt", "a": "b"}))
seed("safetensors", "empty", safetensors({"a": ("F32", [0, 3]), "b": ("BOOL", [1]), "c": ("I64", [2, 0])}))
seed("safetensors", "rank6", safetensors({"a": ("F64", [1, 1, 2, 1, 1, 1])}))
seed("safetensors", "twice", safetensors({"w": ("F32", [])}, header=(
    '{"w":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}')))
seed("safetensors", "wraps", safetensors({}, header=(
    '{"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}')))
seed("safetensors", "long", struct.pack("<Q", 2**64 - 1) + b"{}")

# ---- configs

for path in [*root.glob("configs/*.json"), *root.glob("tests/configs/*.json")]:
    text = path.read_text()
    if path.name != "schema.json":
        seed("config", path.stem, text)
        seed("config", path.stem + "_set", text + "\0train.steps=3\0model.kind=gpt\0optimizer={\"kind\": \"sgd\"}\0data.text=null")
    note_words(json.loads(text))
small = '{"data":{"kind":"task","task":"copy"}'
seed("config", "small", small + "}")
seed("config", "gpt", small + ',"model":{"kind":"gpt","num_kv_heads":2,"rope":true,"window":3}}')
seed("config", "numbers", small + ',"seed":-9223372036854775808,"optimizer":{"lr":1e-320,"eps":5e-324}}')
seed("config", "deep", "[" * 70 + "]" * 70)
seed("config", "escapes", '{"\\ud83d\\ude00\\u0000":"\\"\\\\\\/\\b\\f\\n\\r\\t","//":[1,-0.0,1E+2,true,false,null]}')

# ---- byte-pair encodings

printable = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
others = [b for b in range(256) if b not in printable]
symbols = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
alphabet = [symbols[b] for b in sorted(symbols, key=symbols.get)]
merges = [("t", "h"), ("th", "e"), (symbols[32], "the"), ("1", "2"), ("e", "e")]
vocab = {s: i for i, s in enumerate(alphabet + [a + b for a, b in merges] + ["<|endoftext|>"])}
vocab_text = json.dumps(vocab, ensure_ascii=False)
lines = [f"{a} {b}" for a, b in merges]
seed("bpe_files", "folder", vocab_text + "\0#version: 0.2\n" + "\n".join(lines) + "\n")
seed("bpe_files", "no_version", vocab_text + "\0" + "\n".join(lines))
seed("bpe_files", "bpe", json.dumps({"kind": "bpe", "vocab": vocab, "merges": lines}, ensure_ascii=False))
seed("bpe_files", "byte", '{"kind": "byte"}')
seed("bpe_files", "char", '{"kind": "char", "vocabulary": ["\\n", " ", "a", "b", "\u00e9"]}')
seed("bpe_files", "word", '{"kind": "word", "vocabulary": [",", "a", "it\'s", "well-known"]}')
steps = {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend", "prepend": "\u2581"}, {
    "type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}, "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": r"\p{L}+|\s+(?!\S)"}, "behavior": "Isolated", "invert": False},
    "added_tokens": [{"id": 3, "content": "<b>", "lstrip": True, "rstrip": True, "normalized": True, "special": True}],
    "model": {"type": "BPE", "vocab": {"\u2581": 0, "T": 1, "\u2581T": 2, "<unk>": 4, "<0xFF>": 5}, "merges": [["\u2581", "T"]], "unk_token": "<unk>",
              "byte_fallback": True, "fuse_unk": True, "ignore_merges": False}}
note_words(steps)
seed("bpe_files", "published", json.dumps(steps, ensure_ascii=False))
words |= {"kind", "vocab", "merges", "vocabulary", "char", "word", "bpe", "#version: 0.2\n"}

# ---- texts

readme = (root / "README.md").read_bytes()
texts = [b"", readme[:300], readme[300:1200], b"it's a well-known 12 <|endoftext|> '", "é € 😀 Ǆ ١٢ \u3000\u180e\x85".encode(),
         b"abc \n'-.\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", b"\xff\xfe\xc3(\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf", b" " * 40 + b"x", b"\0\1\2" * 9]
for i, text in enumerate(texts):
    for kind in range(4):
        seed("tokenizer", f"{i}_{kind}", bytes([kind + 4 * (5 * i + kind)]) + text)

# ---- files of examples

CSV = 'label,text\nx,"a, ""b""\nc"\r\n\ny,d\n'
ONE = '{"prompt": "a", "answer": "b"}\n{"text": "a", "label": 1}\n'
CHAT = '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'
seed("example_files", "both", CSV + "\0" + ONE)
seed("example_files", "chat", "text,label\na,b\n\0" + CHAT)
words.update(["prompt", "answer", "instruction", "messages", "assistant", "\"\""])

# ---- state.json without its hash, which the target appends

state = {"format": "onestep checkpoint 2", "step": 3, "seconds": 0.1,
         "config": {"seed": "0" * 32, "model": "1" * 32, "data": "2" * 32, "optimizer": "3" * 32, "schedule": "4" * 32, "train": "5" * 32},
         "data": {"sequences": 36, "xxh3_128": "0" * 32}, "generator": "mt19937 000000000000007b 00000270 - 00000001 00000002",
         "best": {"step": 2, "val_loss": 1.25}, "unfinished": None,
         "files": {"model.safetensors": {"bytes": 8, "xxh3_128": "1" * 32}, "optimizer.safetensors": {"bytes": 9, "xxh3_128": "2" * 32}}}
note_words(state)
for name, change in {"whole": {}, "generated": {"data": {"sequences": 36, "xxh3_128": ""}, "best": None}, "unfinished": {
        "unfinished": {"step": 2, "loss": 1.5, "lr": 1e-3, "grad_norm": 0.5, "tokens_per_second": 1000.0, "seconds": 0.1}}}.items():
    note_words(change)
    seed("state_file", name, json.dumps(state | change, indent=2)[:-2])

# ---- token files, whose hashes the target puts right


def token_file(tokenizer, vocab_size, ids, version=1):
    width = 2 if vocab_size <= 65536 else 4
    header = b"onestept" + struct.pack("<IIQQQ", version, width, len(ids), vocab_size, len(tokenizer)) + b"0" * 104
    start = header + tokenizer.encode()
    return start + bytes(-len(start) % 64) + b"".join(i.to_bytes(width, "little") for i in ids)


seed("token_file", "byte", token_file('{"kind": "byte"}\n', 256, range(0, 256, 5)))
seed("token_file", "char", token_file('{"kind":"char","vocabulary":["a","b"]}\n', 2, [0, 1, 1]))
seed("token_file", "none", token_file('{"kind": "byte"}\n', 256, []))
seed("token_file", "wide", token_file('{"kind": "byte"}\n', 65537, [65536]))
seed("token_file", "version", token_file('{"kind": "byte"}\n', 256, [1], version=2))

# ---- GPT-2 from outside

golden = root / "tests/goldens/hf_gpt2"
config = json.loads((golden / "config.json").read_text())
note_words(config)
small = {"model_type": "gpt2", "n_embd": 2, "n_head": 1, "n_layer": 1, "n_positions": 3, "vocab_size": 5, "n_inner": 3}
shapes = {"wte.weight": [5, 2], "wpe.weight": [3, 2]}
for name, size in {"ln_1": [2], "ln_2": [2]}.items():
    shapes |= {f"h.0.{name}.weight": size, f"h.0.{name}.bias": size}
for name, size in {"attn.c_attn": [2, 6], "attn.c_proj": [2, 2], "mlp.c_fc": [2, 3], "mlp.c_proj": [3, 2]}.items():
    shapes |= {f"h.0.{name}.weight": size, f"h.0.{name}.bias": size[1:]}
shapes |= {"ln_f.weight": [2], "ln_f.bias": [2]}
tensors = {name: ("F32", shape) for name, shape in shapes.items()}
seed("pretrained_files", "bare", json.dumps(small).encode() + b"\0" + safetensors(tensors))
seed("pretrained_files", "prefixed", json.dumps(small).encode() + b"\0" + safetensors({"transformer." + k: v for k, v in tensors.items()}))
seed("pretrained_files", "masks", json.dumps(small | {"tie_word_embeddings": True}).encode() + b"\0" + safetensors(
    tensors | {"h.0.attn.bias": ("BOOL", [1, 1, 3, 3]), "lm_head.weight": ("F32", [5, 2])}))
seed("pretrained_files", "untied", json.dumps(small | {"tie_word_embeddings": False}).encode() + b"\0" + safetensors(
    tensors | {"lm_head.weight": ("F32", [5, 2])}))
seed("pretrained_files", "config", json.dumps(config).encode() + b"\0")

escaped = ("".join(chr(b) if 32 < b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word.encode()) for word in sorted(words))
(out / "words.dict").write_text("".join(f'"{word}"\n' for word in escaped if word))
