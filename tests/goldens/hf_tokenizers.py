"""Writes hf_tokenizers/: small tokenizers in the shapes of published models' tokenizer.json, trained on the text below with Hugging
Face's tokenizers library, and the ids of strings of many scripts (ids.json, without special tokens around them).

Run with tokenizers 0.23.3: python3 hf_tokenizers.py
"""

import json
import random
import shutil
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

TEXT = """The journey of a thousand miles begins with one step, and every step is the next token.
"Don't you think so?" she asked; he'd said they'll see what they've learned, and I'm sure we're DONE'S.
def attention(q, k, v):\n    return softmax(q @ k.T / math.sqrt(d)) @ v\n\n\tif x == 12345:\n\t\tprint(f"{x:>10}")\n
Eine Reise von tausend Meilen beginnt mit einem Schritt; die Größe der Brücke überrascht süße Mäuse. Élève à l'école, garçon naïf.
El viaje de mil millas comienza con un solo paso. ¿Dónde está el niño? Žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń.
Путешествие в тысячу миль начинается с одного шага. Η πορεία χιλίων μιλίων αρχίζει με ένα βήμα. Đường xa vạn dặm bắt đầu từ một bước.
千里之行，始于足下。每一步都是下一个词。千里の道も一歩から。ひとつずつ学ぶ。カタカナも読む。천 리 길도 한 걸음부터. 한국어를 배운다.
رحلة الألف ميل تبدأ بخطوة واحدة. מסע של אלף מייל מתחיל בצעד אחד. हज़ार मील की यात्रा एक कदम से शुरू होती है। การเดินทางพันลี้เริ่มต้นด้วยก้าวเดียว
""" * 3

# Words of many scripts, signs, spaces, digits, marks that combine, and what other software stumbles over.
PIECES = ["the", " step", "Don't", "'ll", "'S", "'ſ", "I'M", "12345", "½", "²", "٣٤", "१२", "𝟙", "Größe", "naïf", "e\u0301", "a\u0323\u0302", "ổ", "Å",
          "\u212b", "\u1100\u1161\u11a8", "각", "шаг", "βήμα", "千里", "步。", "カ\u3099", "ひと", "한걸음", "خطوة", "צעד", "क़दम", "ก้าว", "ខ្មែរ", "አማርኛ", "ꯃꯤꯇ", "ⴰⵎ",
          "👍🏽", "👩\u200d💻", "🇩🇪", "\U00020000", "\u0378", "\ue000", "\ufffd", "\ufeff", "\u200b", "\u180e", "\x00", "\x1c", "\x85", "\xa0", "\u2009", "\u3000", " ", "  ", "    ", "\t",
          "\n", "\r\n", "\n\n", " \n ", ".", "...", "!?", "«", "—", "_", "__init__", "->", "(){}", "▁", "▁▁", "<0x41>", "<s>", "</s>", " <s>", "<unk>", "<|im_start|>",
          "<|im_end|>\n", "<|endoftext|>", "<|begin_of_text|>", "<mask>", " <mask> ", "<|", "|>", "<", "İ", "ß", "ﬁ", "Ǆ", "\u0300", "\u0345", "\U0001d15e", "\u0f73", "q\u0307\u0323"]


def strings(count, seed):
    draw = random.Random(seed)
    fixed = ["", " ", "\n", "a", " a", "a ", "▁", "▁a", "Hello world", "  two  spaces  ", "line\n  indented\n\n\n  more", "日本語", "\u0301", "x" * 60]
    return fixed + ["".join(draw.choice(PIECES) for _ in range(draw.randint(1, 7))) for _ in range(count - len(fixed))]


def byte_level(pattern, vocab_size, specials, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    split = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, level]) if pattern else level
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.add_special_tokens(specials)
    return tokenizer


def llama3():
    tokenizer = byte_level(LLAMA3, 420, ["<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>"], ignore_merges=True)
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    template = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", bos)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def qwen2():
    tokenizer = byte_level(QWEN2, 420, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], normalizers.NFC())
    tokenizer.add_tokens([AddedToken("__init__", normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def gpt2():
    return byte_level(None, 360, ["<|endoftext|>", AddedToken("<mask>", lstrip=True), AddedToken("<s>", rstrip=True)])


def sentencepiece(vocab_size, normalized):
    """As transformers converts Llama's tokenizer.model: merges are all pairs of tokens that make one, by its place."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Metaspace()
    learner.train_from_iterator([line for line in TEXT.split("\n") if line], trainers.BpeTrainer(
        vocab_size=vocab_size, limit_alphabet=110, special_tokens=["▁▁", "▁▁▁▁"], show_progress=False))
    learned = sorted(learner.get_vocab().items(), key=lambda item: item[1])
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = sorted((token for token, _ in learned if len(token) > 1), key=lambda t: learner.token_to_id(t))
    vocab = {token: i for i, token in enumerate(names + pieces + [token for token, _ in learned if len(token) == 1])}
    merges = []
    for piece in pieces:
        parts = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        merges += sorted(parts, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken(name, normalized=normalized, special=True) for name in names[:3]])
    bos = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.post_processor = bos
    return tokenizer


def llama2(normalized=False):
    tokenizer = sentencepiece(240, normalized)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def mistral():
    tokenizer = sentencepiece(200, False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


if __name__ == "__main__":
    root = Path(__file__).parent / "hf_tokenizers"
    shutil.rmtree(root, ignore_errors=True)
    result = {"tokenizers": tokenizers.__version__, "strings": strings(220, 1), "ids": {}, "decoded": {}}
    for name, tokenizer in {"gpt2": gpt2(), "llama2": llama2(), "llama2_normalized": llama2(True), "llama3": llama3(), "mistral": mistral(),
                            "qwen2": qwen2()}.items():
        (root / name).mkdir(parents=True)
        tokenizer.save(str(root / name / "tokenizer.json"), pretty=False)
        tokenizer = Tokenizer.from_file(str(root / name / "tokenizer.json"))  # whose normalizer its added tokens know
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in result["strings"]]
        result["ids"][name] = ids
        result["decoded"][name] = [tokenizer.decode(i, skip_special_tokens=False) for i in ids[:40]]
    (root / "ids.json").write_text(json.dumps(result, separators=(",", ":"), ensure_ascii=False) + "\n")
