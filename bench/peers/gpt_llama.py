"""The same GPT for llama.cpp: written as a GGUF, and read token by token by llama_decode. Its GELU is the approximation by tanh.

Its defaults are kept (flash attention, keys and values in float16, a mapped file): no other setting was faster.
"""
import multiprocessing
import tempfile

import gguf
import llama_cpp
import numpy as np

TYPES = {"float32": "F32", "bf16": "F16", "int8": "Q8_0"}  # as many bits in llama.cpp
quiet = llama_cpp.llama_log_callback(lambda *_: None)


def random_tensors(layers, width, context, vocab):
    """Name and values of every tensor: matrices are drawn, norms' weights ones, biases zeros."""
    linears = {"attn_qkv": (3 * width, width), "attn_output": (width, width), "ffn_up": (4 * width, width),
               "ffn_down": (width, 4 * width)}
    blocks = [f"blk.{i}." for i in range(layers)]
    norms = ["output_norm", *(block + norm for block in blocks for norm in ("attn_norm", "ffn_norm"))]
    matrices = {"token_embd": (vocab, width), "position_embd": (context, width)}
    matrices |= {block + name: shape for block in blocks for name, shape in linears.items()}
    random = np.random.default_rng(0)
    for name, shape in matrices.items():
        yield f"{name}.weight", random.standard_normal(shape, np.float32) * np.float32(0.02)
        if name.startswith("blk."):
            yield f"{name}.bias", np.zeros(shape[0], np.float32)
    for name in norms:
        yield f"{name}.weight", np.ones(width, np.float32)
        yield f"{name}.bias", np.zeros(width, np.float32)


def write(path, tensors, layers, heads, width, context, vocab, weights):
    file = gguf.GGUFWriter(path, "gpt2")
    file.add_block_count(layers)
    file.add_head_count(heads)
    file.add_embedding_length(width)
    file.add_feed_forward_length(4 * width)
    file.add_context_length(context)
    file.add_layer_norm_eps(1e-5)
    file.add_tokenizer_model("none")
    file.add_vocab_size(vocab)
    for name, values in tensors:
        whole = values.ndim == 1 or name.startswith("position_embd")  # as llama.cpp's own conversion keeps them
        kind = gguf.GGMLQuantizationType[TYPES["float32" if whole else weights]]
        file.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def load(path):
    llama_cpp.llama_log_set(quiet, None)
    model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
    if not model:
        raise SystemExit(f"gpt_llama.py: llama.cpp does not load {path}")
    return model


def random_model(layers, heads, width, context, vocab, weights):
    """Written by another process, whose memory is not this one's."""
    shape = layers, heads, width, context, vocab
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/gpt.gguf"
        writer = multiprocessing.get_context("fork").Process(
            target=lambda: write(path, random_tensors(layers, width, context, vocab), *shape, weights))
        writer.start()
        writer.join()
        return load(path)


class Decoder:
    """A token of each of `batch` texts at a time: ids [batch] -> logits [batch, vocab], which the next call overwrites."""

    def __init__(self, model, context, vocab, batch, threads):
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_seq_max = context * batch, batch
        params.n_batch = params.n_ubatch = batch
        params.n_threads = params.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(model, params)
        self.shape, self.at = (batch, vocab), 0
        self.batch = llama_cpp.llama_batch_init(batch, 0, 1)
        self.batch.n_tokens = batch
        self.ids, self.positions = (np.ctypeslib.as_array(x, (batch,)) for x in (self.batch.token, self.batch.pos))
        for i in range(batch):
            self.batch.n_seq_id[i], self.batch.seq_id[i][0], self.batch.logits[i] = 1, i, 1

    def clear(self):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), False)
        self.at = 0

    def __call__(self, ids):
        self.ids[:], self.positions[:] = ids, self.at
        self.at += 1
        if llama_cpp.llama_decode(self.context, self.batch):
            raise SystemExit("gpt_llama.py: llama_decode failed")
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits(self.context), self.shape)
