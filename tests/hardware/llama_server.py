#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp as a server over HTTP on 127.0.0.1: its own libraries, which know nothing of Firebreak, and a model with
random weights that is written here. Answers are greedy, so that two runs can be compared to the token; beside each
token stands a checksum of all its logits.

    tests/hardware/llama_server.py LIBRARIES MODEL.gguf --serve PORT [--gpu] [--slots N]
    tests/hardware/llama_server.py LIBRARIES MODEL.gguf --bench SECONDS [--gpu]
    tests/hardware/llama_server.py LIBRARIES MODEL.gguf --answers PROMPTS.json [--tokens N] [--gpu]

LIBRARIES: a folder with libllama, libggml, libggml-base, libggml-cpu-* and libggml-cuda of release b7347, as in npm's
package @node-llama-cpp/linux-x64-cuda 3.14.5 (for CUDA 13.0). Another release is refused where its structures differ.
MODEL.gguf is written where it is not there. libcudart, libcublas and libcublasLt are those of PyTorch's wheels, of
LD_LIBRARY_PATH or of /usr/local/cuda.

Each way first loads the model, answers once in each slot, and says so in a line of JSON. --serve: POST
{"prompt": TEXT, "count": N, "stream": true}, and a line "TOKEN CHECKSUM" comes for each token; without "stream" all of
them as JSON. --bench waits for a line on standard input (or its end), decodes for so long, and prints tokens per
second. --answers prints the answer to each prompt of a JSON list."""
import argparse
import ctypes
import glob
import http.server
import importlib.util
import json
import os
import pathlib
import queue
import random
import struct
import sys
import threading
import time
import zlib

WORDS, LONGEST, BYTE_TOKENS_BEGIN = 8192, 512, 3
F32, F16, Q8_0 = 0, 1, 8
DEVICE_IS_GPU = 1  # as ggml counts kinds of devices
MULTIPROCESSORS = 16  # cudaDevAttrMultiProcessorCount


class ModelParameters(ctypes.Structure):
    _fields_ = [("devices", ctypes.c_void_p), ("buffer_overrides", ctypes.c_void_p), ("gpu_layers", ctypes.c_int32),
                ("split_mode", ctypes.c_int32), ("main_gpu", ctypes.c_int32), ("tensor_split", ctypes.c_void_p),
                ("progress", ctypes.c_void_p), ("progress_data", ctypes.c_void_p), ("overrides", ctypes.c_void_p),
                ("vocab_only", ctypes.c_bool), ("use_mmap", ctypes.c_bool), ("use_mlock", ctypes.c_bool),
                ("check_tensors", ctypes.c_bool), ("use_extra_buffers", ctypes.c_bool), ("no_host", ctypes.c_bool)]


class ContextParameters(ctypes.Structure):
    _fields_ = [("context", ctypes.c_uint32), ("batch", ctypes.c_uint32), ("physical_batch", ctypes.c_uint32),
                ("sequences", ctypes.c_uint32), ("threads", ctypes.c_int32), ("threads_batch", ctypes.c_int32),
                ("rope_scaling", ctypes.c_int32), ("pooling", ctypes.c_int32), ("attention", ctypes.c_int32),
                ("flash_attention", ctypes.c_int32), ("rope", ctypes.c_float * 6), ("rope_context", ctypes.c_uint32),
                ("defragment", ctypes.c_float), ("callback", ctypes.c_void_p), ("callback_data", ctypes.c_void_p),
                ("type_k", ctypes.c_int32), ("type_v", ctypes.c_int32), ("abort", ctypes.c_void_p),
                ("abort_data", ctypes.c_void_p), ("embeddings", ctypes.c_bool), ("offload", ctypes.c_bool),
                ("no_perf", ctypes.c_bool), ("offload_operations", ctypes.c_bool), ("full_window", ctypes.c_bool),
                ("unified", ctypes.c_bool)]


class Batch(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("tokens", ctypes.c_void_p), ("embeddings", ctypes.c_void_p),
                ("positions", ctypes.c_void_p), ("sequence_counts", ctypes.c_void_p), ("sequences", ctypes.c_void_p),
                ("outputs", ctypes.c_void_p)]


# Of both structures: the last byte that the defaults fill, and values by which a moved member is noticed.
LAYOUTS = {"llama_model_default_params": (ModelParameters, 70, {"gpu_layers": 999, "split_mode": 1, "use_mmap": True,
                                                                 "use_mlock": False, "use_extra_buffers": True}),
           "llama_context_default_params": (ContextParameters, 118,
                                            {"context": 512, "batch": 2048, "sequences": 1, "rope_scaling": -1,
                                             "flash_attention": -1, "type_k": 1, "type_v": 1, "offload": True,
                                             "embeddings": False, "full_window": True, "unified": False})}


class Text:
    """A GGUF file's first part: numbers and texts as the format has them."""

    def __init__(self):
        self.bytes, self.values = bytearray(), 0

    def string(self, text):
        text = text.encode()
        self.bytes += struct.pack("<Q", len(text)) + text

    def value(self, key, code, *numbers):
        self.values += 1
        self.string(key)
        self.bytes += struct.pack(*{"u": ("<II", 4), "f": ("<If", 6)}[code], *numbers)

    def text(self, key, text):
        self.values += 1
        self.string(key)
        self.bytes += struct.pack("<I", 8)
        self.string(text)

    def list(self, key, kind, items):
        self.values += 1
        self.string(key)
        self.bytes += struct.pack("<IIQ", 9, kind, len(items))
        if kind == 8:
            for item in items:
                self.string(item)
        else:
            self.bytes += struct.pack(f"<{len(items)}{'f' if kind == 6 else 'i'}", *items)


def tensors_of(layers, width):
    """Name, size in each dimension (the innermost first), and type: attention in Q8_0, the rest in F16."""
    wide, key_width = width * 11 // 4, max(width // 4, 128)
    yield "token_embd.weight", (width, WORDS), F16
    for layer in range(layers):
        its = f"blk.{layer}."
        yield its + "attn_norm.weight", (width,), F32
        yield its + "attn_q.weight", (width, width), Q8_0
        yield its + "attn_k.weight", (width, key_width), Q8_0
        yield its + "attn_v.weight", (width, key_width), Q8_0
        yield its + "attn_output.weight", (width, width), Q8_0
        yield its + "ffn_norm.weight", (width,), F32
        yield its + "ffn_gate.weight", (width, wide), F16
        yield its + "ffn_up.weight", (width, wide), F16
        yield its + "ffn_down.weight", (wide, width), F16
    yield "output_norm.weight", (width,), F32
    yield "output.weight", (width, WORDS), F16


def head_of_model(layers, width):
    head = Text()
    head.text("general.architecture", "llama")
    head.text("general.name", "random")
    for key, number in (("context_length", 4096), ("embedding_length", width), ("block_count", layers),
                        ("feed_forward_length", width * 11 // 4), ("attention.head_count", width // 128),
                        ("attention.head_count_kv", max(width // 4, 128) // 128), ("rope.dimension_count", 128),
                        ("vocab_size", WORDS)):
        head.value("llama." + key, "u", number)
    head.value("llama.attention.layer_norm_rms_epsilon", "f", 1e-5)
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    head.text("tokenizer.ggml.model", "llama")
    head.list("tokenizer.ggml.tokens", 8, names + [f"word{number}" for number in range(WORDS - len(names))])
    head.list("tokenizer.ggml.scores", 6, [0.0] * WORDS)
    head.list("tokenizer.ggml.token_type", 5, kinds + [1] * (WORDS - len(kinds)))
    for key, number in (("bos", 1), ("eos", 2), ("unknown", 0)):
        head.value(f"tokenizer.ggml.{key}_token_id", "u", number)
    return head


def write_model(path, layers, width):
    """Weights with a standard deviation of 1/32, taken round and round from a pool of a prime number of them: no two
    rows of a matrix are the same."""
    draw = random.Random(7)
    reach = 3 ** 0.5 / 32
    halves = 500_009
    pools = {F16: (2, 1, struct.pack(f"<{halves}e", *(draw.uniform(-reach, reach) for _ in range(halves)))),
             Q8_0: (34, 32, b"".join(struct.pack("<e", draw.uniform(0.8, 1.2) * reach / 127) + bytes(
                 draw.randrange(1, 256) ^ 0x80 for _ in range(32)) for _ in range(20_011)))}
    head, infos, at, rows = head_of_model(layers, width), Text(), 0, []
    for name, sizes, kind in tensors_of(layers, width):
        count = sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        size_bytes = count * 4 if kind == F32 else count // pools[kind][1] * pools[kind][0]
        infos.string(name)
        infos.bytes += struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, at)
        rows.append((kind, count, size_bytes))
        at += size_bytes + -size_bytes % 32
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(rows), head.values) + head.bytes + infos.bytes)
        file.write(bytes(-file.tell() % 32))
        for kind, count, size_bytes in rows:
            if kind == F32:
                file.write(struct.pack("<f", 1.0) * count)
            else:
                item_bytes, _, pool = pools[kind]
                begin = draw.randrange(len(pool) // item_bytes) * item_bytes
                left = size_bytes
                while left:
                    part = pool[begin:begin + left]
                    file.write(part)
                    left, begin = left - len(part), 0
            file.write(bytes(-size_bytes % 32))
    os.replace(temporary, path)


def cuda_libraries():
    """Where the three libraries of CUDA 13 are that libggml-cuda.so needs; an empty text: where the loader looks."""
    found = importlib.util.find_spec("nvidia")
    folders = [folder for place in (found.submodule_search_locations if found else [])
               for folder in sorted(glob.glob(place + "/*/lib"))]
    folders += os.environ.get("LD_LIBRARY_PATH", "").split(":") + ["/usr/local/cuda/lib64", "/usr/local/cuda/lib"]
    for name in ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13"):
        yield next((f"{folder}/{name}" for folder in folders if folder and os.path.exists(f"{folder}/{name}")), name)


class Llama:
    """llama.cpp's libraries, with one model; its contexts are used from one thread at a time."""

    def __init__(self, folder, model, gpu, threads):
        self.folder = str(pathlib.Path(folder).resolve())
        self.base = self.load("libggml-base.so*")
        self.ggml = self.load("libggml.*so*")
        self.llama = self.load("libllama.*so*")
        self.declare()
        self.load_backends(gpu)
        self.llama.llama_backend_init()
        of_model = self.defaults("llama_model_default_params")
        of_model.gpu_layers = 999 if gpu else 0
        self.model = self.llama.llama_model_load_from_file(str(model).encode(), of_model)
        if not self.model:
            raise RuntimeError("llama.cpp does not load the model")
        self.vocabulary = self.llama.llama_model_get_vocab(self.model)
        self.words = self.llama.llama_vocab_n_tokens(self.vocabulary)
        self.greedy = self.llama.llama_sampler_init_greedy()
        self.threads = threads

    def load(self, pattern):
        paths = sorted(glob.glob(f"{self.folder}/{pattern}"), key=len)
        if not paths:
            raise RuntimeError(f"no {pattern} in {self.folder}")
        return ctypes.CDLL(paths[-1], ctypes.RTLD_GLOBAL)

    def declare(self):
        pointer, number, text = ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p
        for library, name, result, *parameters in (
                (self.ggml, "ggml_backend_load", pointer, text),
                (self.ggml, "ggml_backend_dev_by_type", pointer, number),
                (self.base, "ggml_backend_dev_description", text, pointer),
                (self.llama, "llama_backend_init", None), (self.llama, "llama_model_get_vocab", pointer, pointer),
                (self.llama, "llama_model_load_from_file", pointer, text, ModelParameters),
                (self.llama, "llama_vocab_n_tokens", number, pointer),
                (self.llama, "llama_init_from_model", pointer, pointer, ContextParameters),
                (self.llama, "llama_get_memory", pointer, pointer),
                (self.llama, "llama_memory_clear", None, pointer, ctypes.c_bool),
                (self.llama, "llama_batch_get_one", Batch, pointer, number),
                (self.llama, "llama_decode", number, pointer, Batch),
                (self.llama, "llama_get_logits_ith", pointer, pointer, number),
                (self.llama, "llama_sampler_init_greedy", pointer),
                (self.llama, "llama_sampler_sample", number, pointer, pointer, number),
                (self.llama, "llama_tokenize", number, pointer, text, number, pointer, number, ctypes.c_bool,
                 ctypes.c_bool)):
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters

    def defaults(self, name):
        """What llama.cpp gives, once it is known that it means the same structure."""
        structure, end, expected = LAYOUTS[name]
        room = (ctypes.c_ubyte * 512)(*[0xA5] * 512)
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)((name, self.llama))(ctypes.addressof(room))
        filled = bytes(room).rstrip(b"\xa5")
        values = structure.from_buffer_copy(room)
        wrong = {key: getattr(values, key) for key, value in expected.items() if getattr(values, key) != value}
        if len(filled) != end or wrong:
            raise RuntimeError(f"{name} fills {len(filled)} bytes, not {end}, and says {wrong}: another release")
        return values

    def load_backends(self, gpu):
        scores = {}
        for path in glob.glob(f"{self.folder}/libggml-cpu-*.so"):
            scores[path] = ctypes.CDLL(path).ggml_backend_score()
        best = max(scores, key=scores.get)
        if not scores[best] or not self.ggml.ggml_backend_load(best.encode()):
            raise RuntimeError("no CPU backend fits this machine")
        self.device, self.multiprocessors = os.path.basename(best), None
        if not gpu:
            return
        for path in cuda_libraries():
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        if not self.ggml.ggml_backend_load(f"{self.folder}/libggml-cuda.so".encode()):
            raise RuntimeError("the CUDA backend is not loaded")
        device = self.ggml.ggml_backend_dev_by_type(DEVICE_IS_GPU)
        if not device:
            raise RuntimeError("the CUDA backend has no GPU")
        self.device = self.base.ggml_backend_dev_description(device).decode()
        number = ctypes.c_int(0)
        ctypes.CDLL("libcudart.so.13").cudaDeviceGetAttribute(ctypes.byref(number), MULTIPROCESSORS, 0)
        self.multiprocessors = number.value

    def make_context(self):
        its = self.defaults("llama_context_default_params")
        its.context = its.batch = its.physical_batch = LONGEST
        its.threads = its.threads_batch = self.threads
        context = self.llama.llama_init_from_model(self.model, its)
        if not context:
            raise RuntimeError("llama.cpp makes no context")
        return context

    def tokens_of(self, text):
        text = text.encode()
        room = (ctypes.c_int32 * LONGEST)()
        count = self.llama.llama_tokenize(self.vocabulary, text, len(text), room, LONGEST, True, False)
        if count <= 0:
            raise ValueError("this text is too long")
        return list(room[:count])

    def decode(self, context, tokens):
        its = (ctypes.c_int32 * len(tokens))(*tokens)
        said = self.llama.llama_decode(context, self.llama.llama_batch_get_one(its, len(tokens)))
        if said:
            raise RuntimeError(f"llama_decode said {said}")
        return self.llama.llama_sampler_sample(self.greedy, context, -1)

    def checksum(self, context):
        logits = self.llama.llama_get_logits_ith(context, -1)
        return zlib.crc32((ctypes.c_char * (4 * self.words)).from_address(logits))

    def answer(self, context, prompt, count):
        """A token after the other, and a checksum of the logits that it was chosen by."""
        given = self.tokens_of(prompt)
        count = min(count, LONGEST - len(given))
        self.llama.llama_memory_clear(self.llama.llama_get_memory(context), True)
        for _ in range(count):
            word = self.decode(context, given)
            yield word, self.checksum(context)
            given = [word]

    def tokens_a_second(self, context, seconds):
        """Of decoding alone: what a prompt takes is not counted."""
        count, decoding_s, end = 0, 0.0, time.monotonic() + seconds
        while time.monotonic() < end:
            self.llama.llama_memory_clear(self.llama.llama_get_memory(context), True)
            word = self.decode(context, self.tokens_of("How many words come in a second?"))
            begin = time.monotonic()
            for _ in range(LONGEST - 64):
                word = self.decode(context, [word])
                count += 1
                if time.monotonic() >= end:
                    break
            decoding_s += time.monotonic() - begin
        return {"tokens": count, "seconds": round(decoding_s, 3), "tokens_a_second": round(count / decoding_s, 2)}


def work(llama, contexts, asked_for):
    """One word for each request in turn, as many at a time as there are contexts."""
    running = []
    while True:
        while len(running) < len(contexts) and (not running or not asked_for.empty()):
            prompt, count, words = asked_for.get()
            context = next(each for each in contexts if all(each is not other for other, _, _ in running))
            running.append((context, llama.answer(context, prompt, count), words))
        for each in list(running):
            try:
                word = next(each[1], None)
            except (RuntimeError, ValueError) as wrong:
                print(wrong, file=sys.stderr, flush=True)
                word = None
            each[2].put(word)
            if word is None:
                running.remove(each)


def serve(llama, contexts, port, tell):
    asked_for = queue.SimpleQueue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            words = queue.SimpleQueue()
            asked_for.put((asked["prompt"], int(asked["count"]), words))
            self.send_response(200)
            self.end_headers()
            if not asked.get("stream"):
                answer = [list(word) for word in iter(words.get, None)]
                self.wfile.write(json.dumps({"answer": answer}).encode())
                return
            for token, checksum in iter(words.get, None):
                self.wfile.write(f"{token} {checksum}\n".encode())
                self.wfile.flush()

        def log_message(self, *_):
            pass

    threading.Thread(target=work, args=(llama, contexts, asked_for), daemon=True).start()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    tell(port=server.server_port)
    server.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--serve", type=int, metavar="PORT", help="0: any that is free")
    way.add_argument("--bench", type=float, metavar="SECONDS")
    way.add_argument("--answers", type=pathlib.Path, metavar="PROMPTS")
    parser.add_argument("--gpu", action="store_true", help="all layers on the GPU; default: on the CPU")
    parser.add_argument("--slots", type=int, default=4, help="requests that are answered at a time")
    parser.add_argument("--tokens", type=int, default=96, help="of each answer")
    parser.add_argument("--threads", type=int, default=1, help="on the CPU")
    parser.add_argument("--layers", type=int, default=12, help="of a model that is written")
    parser.add_argument("--width", type=int, default=1024, help="likewise; a multiple of 128")
    arguments = parser.parse_args()
    sys.setswitchinterval(0.0005)  # a word is written as soon as it is there
    begin = time.monotonic()
    if not arguments.model.exists():
        write_model(arguments.model, arguments.layers, arguments.width)
    llama = Llama(arguments.libraries, arguments.model, arguments.gpu, arguments.threads)
    loaded = time.monotonic()
    contexts = [llama.make_context() for _ in range(arguments.slots if arguments.serve is not None else 1)]
    for context in contexts:
        list(llama.answer(context, "All that is needed is loaded by now, is it not?", arguments.tokens))

    def tell(**more):
        print(json.dumps({"working": True, "pid": os.getpid(), "device": llama.device,
                          "multiprocessors": llama.multiprocessors, "loaded_s": round(loaded - begin, 2),
                          "warm_s": round(time.monotonic() - loaded, 2), **more}), flush=True)

    if arguments.serve is not None:
        return serve(llama, contexts, arguments.serve, tell)
    tell()
    if arguments.answers:
        prompts = json.loads(arguments.answers.read_text(encoding="utf-8"))
        print(json.dumps({prompt: list(llama.answer(contexts[0], prompt, arguments.tokens)) for prompt in prompts}))
    else:
        sys.stdin.readline()
        print(json.dumps(llama.tokens_a_second(contexts[0], arguments.bench)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
