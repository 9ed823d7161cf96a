#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's operations one by one, on a GPU, in the types and shapes for which it has kernels of their own: so that
many of its kernels are launched, by its own code. All memory is zero: results do not matter here.

    tests/hardware/llama_operations.py LIBRARIES [--groups NAME,...] [--list]

LIBRARIES: as for llama_server.py. Each group is a process of its own: ggml ends it where it is asked for what it does
not have. What the GPU's part says that it does not support is left out. Prints, in JSON, how many operations ran.
--list: builds them all without a GPU, and says how many there are."""
import argparse
import concurrent.futures
import ctypes
import json
import pathlib
import subprocess
import sys

from llama_server import cuda_libraries

F32, F16, BF16, I32, I64 = 0, 1, 30, 26, 27
QUANTISED = (2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 29, 39)
MADE_ON_GPU = (2, 3, 6, 7, 8, 20)  # copies into these have kernels
UNARY = [op for op in range(22) if op != 17]
DEVICE_IS_GPU = 1


class InitParameters(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


class Ggml:
    def __init__(self, folder, with_gpu):
        if with_gpu:
            for path in cuda_libraries():
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self.base = ctypes.CDLL(str(folder / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
        self.base.ggml_init.argtypes, self.base.ggml_init.restype = [InitParameters], ctypes.c_void_p
        self.context, self.backend, self.ran, self.left_out, self.built = None, None, 0, 0, 0
        if not with_gpu:
            return
        gpu = ctypes.CDLL(str(folder / "libggml-cuda.so"))
        gpu.ggml_backend_cuda_init.restype = ctypes.c_void_p
        self.backend = gpu.ggml_backend_cuda_init(0)
        self.device = self("ggml_backend_get_device", ctypes.c_void_p(self.backend))

    def __call__(self, name, *arguments):
        """Whole numbers go as 64 bits, which does for narrower ones too; None is a null pointer."""
        function = getattr(self.base, name)
        function.restype = ctypes.c_void_p
        given = [ctypes.c_float(each) if isinstance(each, float) else
                 ctypes.c_int64(each) if isinstance(each, (int, bool)) else each for each in arguments]
        return ctypes.c_void_p(function(*given))

    def op(self, name, *arguments):
        return self("ggml_" + name, ctypes.c_void_p(self.context), *arguments)

    def new(self, kind, *sizes):
        return self.op("new_tensor_4d", kind, *(list(sizes) + [1] * 4)[:4])

    def run(self, build):
        """One graph: what `build` answers with, one tensor or several."""
        self.context = self.base.ggml_init(InitParameters(16 << 20, None, True))
        try:
            made = build()
            wanted = made if isinstance(made, list) else [made]
            self.built += 1
            if self.backend is None:
                return
            graph = self.op("new_graph")
            for tensor in wanted:
                self("ggml_build_forward_expand", graph, tensor)
            self.base.ggml_graph_n_nodes.restype = ctypes.c_int
            self.base.ggml_backend_dev_supports_op.restype = ctypes.c_bool
            nodes = [self("ggml_graph_node", graph, at) for at in range(self.base.ggml_graph_n_nodes(graph))]
            if not all(self.base.ggml_backend_dev_supports_op(self.device, node) for node in nodes):
                self.left_out += 1
                return
            memory = self("ggml_backend_alloc_ctx_tensors", ctypes.c_void_p(self.context),
                          ctypes.c_void_p(self.backend))
            if not memory.value:
                self.left_out += 1
                return
            self("ggml_backend_buffer_clear", memory, 0)
            self("ggml_backend_graph_compute", ctypes.c_void_p(self.backend), graph)
            self.ran += 1
            self("ggml_backend_buffer_free", memory)
        finally:
            self("ggml_free", ctypes.c_void_p(self.context))


# ---- The groups ----

def unary(g):
    for kind in (F32, F16):
        for op in UNARY:
            g.run(lambda: g.op("unary", g.new(kind, 256, 8), op))
        for name in ("sqr", "sqrt", "sin", "cos", "log"):
            g.run(lambda: g.op(name, g.new(kind, 256, 8)))
        g.run(lambda: g.op("clamp", g.new(kind, 256, 8), -1.0, 1.0))
        g.run(lambda: g.op("leaky_relu", g.new(kind, 256, 8), 0.1, False))
        for op in range(6):
            for swapped in (False, True):
                g.run(lambda: g.op("glu", g.new(kind, 512, 8), op, swapped))
            g.run(lambda: g.op("glu_split", g.new(kind, 256, 8), g.new(kind, 256, 8), op))
    g.run(lambda: g.op("scale", g.new(F32, 256, 8), 2.0))
    g.run(lambda: g.op("scale_bias", g.new(F32, 256, 8), 2.0, 1.0))
    g.run(lambda: g.op("silu_back", g.new(F32, 256, 8), g.new(F32, 256, 8)))
    g.run(lambda: g.op("fill", g.new(F32, 256, 8), 1.0))
    g.run(lambda: g.op("scale", g.op("tanh", g.op("scale", g.new(F32, 256, 8), 0.5)), 2.0))
    g.run(lambda: g.op("xielu", g.new(F32, 256, 8), 1.0, 1.0, 0.5, 0.1))


def binary(g):
    shapes = [((256, 8, 2, 2), (256, 8, 2, 2)), ((256, 8, 2, 2), (256, 1, 1, 1)), ((256, 8, 2, 2), (1, 8, 2, 2)),
              ((10, 5, 4, 3), (10, 5, 1, 1)), ((1024, 600, 300, 1), (1024, 1, 1, 1))]
    for name in ("add", "sub", "mul", "div"):
        for a, b in ((F32, F32), (F16, F32), (F16, F16)):
            for left, right in shapes:
                g.run(lambda: g.op(name, g.new(a, *left), g.new(b, *right)))
        g.run(lambda: g.op(name, g.op("permute", g.new(F32, 8, 16, 4, 2), 1, 0, 2, 3), g.new(F32, 16, 8, 4, 2)))
    for count in range(2, 9):
        def chain(name, count=count):
            last = g.new(F32, 256, 8)
            for _ in range(count):
                last = g.op(name, last, g.new(F32, 256, 8))
            return last
        g.run(lambda: chain("add"))
        g.run(lambda: chain("mul"))
    for kind in (F32, F16):
        g.run(lambda: g.op("repeat", g.new(kind, 16, 4), g.new(kind, 64, 8)))
        for dim in range(4):
            g.run(lambda: g.op("concat", g.new(kind, 16, 4, 2, 2), g.new(kind, 16, 4, 2, 2), dim))
    g.run(lambda: g.op("repeat_back", g.new(F32, 64, 8), g.new(F32, 16, 4)))
    g.run(lambda: g.op("concat", g.op("permute", g.new(F32, 4, 16, 2, 2), 1, 0, 2, 3), g.new(F32, 16, 4, 2, 2), 2))
    g.run(lambda: g.op("acc", g.new(F32, 64, 8), g.new(F32, 32, 4), 256, 2048, 2048, 0))
    g.run(lambda: g.op("set", g.new(F32, 64, 8), g.new(F32, 32, 4), 256, 2048, 2048, 0))
    g.run(lambda: g.op("add_id", g.new(F32, 64, 4, 8), g.new(F32, 64, 4), g.new(I32, 4, 8)))
    g.run(lambda: g.op("add1", g.new(F32, 64, 4, 8), g.new(F32, 1)))


def copies(g):
    floats = (F32, F16, BF16)
    for source in (*floats, *MADE_ON_GPU, I32):
        for target in (*floats, *MADE_ON_GPU, I32):
            g.run(lambda: g.op("cast", g.new(source, 256, 8, 2), target))
            if source in (*floats, I32) and target in (*floats, *MADE_ON_GPU, I32):
                g.run(lambda: g.op("cast", g.op("permute", g.new(source, 64, 32, 2), 0, 2, 1, 3), target))
                g.run(lambda: g.op("cast", g.op("transpose", g.new(source, 64, 64, 2)), target))
    for kind in floats:
        g.run(lambda: g.op("cont", g.op("transpose", g.new(kind, 64, 32, 2))))
        g.run(lambda: g.op("dup", g.new(kind, 64, 32, 2)))
    for kind in (*floats, I32, *QUANTISED):
        g.run(lambda: g.op("get_rows", g.new(kind, 512, 8), g.new(I32, 4)))
        g.run(lambda: g.op("get_rows", g.new(kind, 512, 8, 2), g.new(I32, 4, 2)))
    g.run(lambda: g.op("get_rows_back", g.new(F32, 64, 4), g.new(I32, 4), g.new(F32, 64, 8)))
    for kind in (*floats, *MADE_ON_GPU):
        for index in (I32, I64):
            g.run(lambda: g.op("set_rows", g.new(kind, 256, 8), g.new(F32, 256, 4), g.new(index, 4)))


def norms(g):
    for size in (64, 100, 512, 1024, 2048, 4096):
        for name in ("norm", "rms_norm", "l2_norm"):
            g.run(lambda: g.op(name, g.new(F32, size, 8), 1e-5))
        g.run(lambda: g.op("mul", g.op("rms_norm", g.new(F32, size, 8), 1e-5), g.new(F32, size)))
        g.run(lambda: g.op("add", g.op("mul", g.op("rms_norm", g.new(F32, size, 8), 1e-5), g.new(F32, size)),
                           g.new(F32, size, 8)))
        g.run(lambda: g.op("rms_norm_back", g.new(F32, size, 8), g.new(F32, size, 8), 1e-5))
    g.run(lambda: g.op("group_norm", g.new(F32, 16, 8, 32), 8, 1e-5))
    g.run(lambda: g.op("group_norm", g.new(F32, 64, 64, 32), 8, 1e-5))
    for size in (32, 64, 100, 128, 256, 512, 1024, 2048, 4096, 8192, 20000):
        g.run(lambda: g.op("soft_max", g.new(F32, size, 8)))
        for mask in (F32, F16):
            g.run(lambda: g.op("soft_max_ext", g.new(F32, size, 8, 4), g.new(mask, size, 8), 0.5, 0.0))
            g.run(lambda: g.op("soft_max_ext", g.new(F32, size, 8, 4), g.new(mask, size, 8), 0.5, 8.0))
        g.run(lambda: g.op("soft_max_ext_back", g.new(F32, size, 8), g.new(F32, size, 8), 1.0, 0.0))
        for name in ("sum_rows", "mean", "sum", "argmax", "cumsum"):
            g.run(lambda: g.op(name, g.new(F32, size, 8)))
        for order in (0, 1):
            g.run(lambda: g.op("argsort", g.new(F32, size, 8), order))
    g.run(lambda: g.op("cross_entropy_loss", g.new(F32, 64, 8), g.new(F32, 64, 8)))
    g.run(lambda: g.op("cross_entropy_loss_back", g.new(F32, 1), g.new(F32, 64, 8), g.new(F32, 64, 8)))
    g.run(lambda: g.op("count_equal", g.new(I32, 64, 8), g.new(I32, 64, 8)))
    g.run(lambda: g.op("diag_mask_inf", g.new(F32, 64, 8), 2))
    for kind in range(4):
        g.run(lambda: g.op("tri", g.new(F32, 64, 64), kind))
    g.run(lambda: g.op("solve_tri", g.new(F32, 64, 64, 2), g.new(F32, 32, 64, 2), True, True, False))


def rotations(g):
    sections = (ctypes.c_int * 4)(16, 16, 16, 16)
    for kind in (F32, F16):
        for back in ("", "_back"):
            for mode in (0, 2):
                for factors in (None, 64):
                    for extrapolated in (0.0, 1.0):
                        g.run(lambda: g.op("rope_ext" + back, g.new(kind, 128, 4, 8), g.new(I32, 8),
                                           g.new(F32, factors) if factors else None, 128, mode, 512, 1e4, 1.0,
                                           extrapolated, 1.0, 32.0, 1.0))
            for mode in (8, 24, 40):
                g.run(lambda: g.op("rope_multi" + back, g.new(kind, 128, 4, 8), g.new(I32, 32), None,
                                   64 if mode == 24 else 128, sections, mode, 512, 1e4, 1.0, 0.0, 1.0, 32.0, 1.0))
    def rotated_into_rows():
        turned = g.op("rope_ext", g.new(F32, 128, 4, 8), g.new(I32, 8), None, 128, 0, 512, 1e4, 1.0, 0.0, 1.0, 32.0,
                      1.0)
        return g.op("set_rows", g.new(F16, 512, 16), g.op("reshape_2d", turned, 512, 8), g.new(I64, 8))
    g.run(rotated_into_rows)


def pictures(g):
    for kind in (F32, F16):
        g.run(lambda: g.op("im2col", g.new(F16, 3, 3, 4, 4), g.new(F32, 16, 16, 4, 2), 1, 1, 1, 1, 1, 1, True, kind))
        g.run(lambda: g.op("im2col_3d", g.new(F16, 3, 3, 3, 8), g.new(F32, 8, 8, 8, 4), 2, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                           kind))
        g.run(lambda: g.op("conv_2d_direct", g.new(kind, 3, 3, 4, 8), g.new(F32, 16, 16, 4, 2), 1, 1, 1, 1, 1, 1))
        g.run(lambda: g.op("conv_2d_dw_direct", g.new(kind, 3, 3, 1, 4), g.new(F32, 16, 16, 4, 2), 1, 1, 1, 1, 1, 1))
    g.run(lambda: g.op("conv_transpose_1d", g.new(F32, 3, 2, 4), g.new(F32, 16, 4), 1, 0, 1))
    g.run(lambda: g.op("conv_transpose_2d_p0", g.new(F16, 3, 3, 2, 4), g.new(F32, 8, 8, 4), 2))
    for op in (0, 1):
        g.run(lambda: g.op("pool_2d", g.new(F32, 16, 16, 4), op, 2, 2, 2, 2, 0.0, 0.0))
    for mode in (0, 1, 2):
        g.run(lambda: g.op("upscale", g.new(F32, 8, 8, 4), 2, mode))
        g.run(lambda: g.op("interpolate", g.new(F32, 8, 8, 4), 20, 12, 4, 1, mode))
    g.run(lambda: g.op("interpolate", g.new(F32, 8, 8, 4), 20, 12, 4, 1, 1 | 256))
    g.run(lambda: g.op("pad", g.new(F32, 8, 8, 4), 1, 2, 0, 0))
    g.run(lambda: g.op("pad_circular", g.new(F32, 8, 8, 4), 1, 2, 0, 0))
    g.run(lambda: g.op("pad_reflect_1d", g.new(F32, 64, 8), 3, 4))
    g.run(lambda: g.op("roll", g.new(F32, 8, 8, 4), 1, 2, 0, 0))
    g.run(lambda: g.op("timestep_embedding", g.new(F32, 8), 64, 1000))
    g.run(lambda: g.op("arange", 0.0, 64.0, 1.0))


def states(g):
    for width in (3, 4, 9):
        for tokens in (1, 8, 64):
            g.run(lambda: g.op("ssm_conv", g.new(F32, width - 1 + tokens, 1536, 2), g.new(F32, width, 1536)))
    for state, head, heads in ((16, 1, 1024), (128, 64, 16), (256, 64, 8)):
        for tokens in (1, 8):
            g.run(lambda: g.op("ssm_scan", g.new(F32, state, head, heads, 2), g.new(F32, head, heads, tokens, 2),
                               g.new(F32, heads, tokens, 2), g.new(F32, state if head == 1 else 1, heads),
                               g.new(F32, state, 1 if head == 1 else 2, tokens, 2),
                               g.new(F32, state, 1 if head == 1 else 2, tokens, 2), g.new(I32, 2)))
    for size in (64, 128):
        def given(count, size=size):
            return [g.new(F32, size, 8, 16) for _ in range(count)]
        g.run(lambda: g.op("rwkv_wkv6", *given(3), g.new(F32, size, 8), *given(1), g.new(F32, size * size * 8, 2)))
        g.run(lambda: g.op("rwkv_wkv7", *given(6), g.new(F32, size * size * 8, 2)))
        g.run(lambda: g.op("gated_linear_attn", *given(4), g.new(F32, size * size * 8, 2), 0.5))
    g.run(lambda: g.op("opt_step_sgd", g.param(F32, 64, 8), g.new(F32, 64, 8), g.new(F32, 2)))
    g.run(lambda: g.op("opt_step_adamw", g.param(F32, 64, 8), g.new(F32, 64, 8), g.new(F32, 64, 8), g.new(F32, 64, 8),
                       g.new(F32, 7)))
    for kind in (F32, F16, *QUANTISED[:5]):
        g.run(lambda: g.op("out_prod", g.new(kind, 256, 16), g.new(F32, 32, 16)))


COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 300)


def products_of(kinds):
    def products(g):
        for kind in kinds:
            for count in COUNTS:
                g.run(lambda: g.op("mul_mat", g.new(kind, 1024, 256), g.new(F32, 1024, count)))
                if count in (1, 4, 16, 64):
                    g.run(lambda: g.op("mul_mat", g.new(kind, 1024, 100), g.new(F32, 1024, count)))
                    g.run(lambda: g.op("mul_mat", g.new(kind, 256, 64, 2, 2), g.new(F32, 256, count, 4, 2)))
                g.run(lambda: g.op("mul_mat_id", g.new(kind, 1024, 256, 4), g.new(F32, 1024, 1, count),
                                   g.new(I32, 2, count)))
            g.run(lambda: g.op("add", g.op("mul_mat", g.new(kind, 1024, 256), g.new(F32, 1024, 1)), g.new(F32, 256)))
            def gated():
                given = g.new(F32, 1024, 1)
                return g.op("glu_split", g.op("mul_mat", g.new(kind, 1024, 256), given),
                            g.op("mul_mat", g.new(kind, 1024, 256), given), 2)
            g.run(gated)
    return products


def float_products(g):
    products_of((F32, F16, BF16))(g)
    for kind in (F32, F16, BF16):
        for count in (1, 2, 8):
            g.run(lambda: g.op("mul_mat", g.op("permute", g.new(kind, 64, 4, 64, 2), 0, 2, 1, 3),
                               g.op("permute", g.new(F32, 64, 4, count, 2), 0, 2, 1, 3)))
            for size in (32, 64, 128, 250, 2048):
                g.run(lambda: g.op("mul_mat", g.new(kind, size, 64), g.new(F32, size, count)))


def attention_of(sizes):
    def attention(g):
        for size in sizes:
            for kind in (F16, 8, 2):
                for count in (1, 2, 4, 8, 16, 35, 64):
                    for share in (1, 4, 8):
                        for cap in (0.0, 10.0):
                            value = 512 if size == 576 else size
                            heads = 16 if size == 576 else 8
                            if cap and (kind != F16 or share != 1) or kind != F16 and (share != 1 or count > 2):
                                continue
                            g.run(lambda: g.op("flash_attn_ext", g.new(F32, size, count, heads),
                                               g.new(kind, size, 512, heads // share),
                                               g.new(kind, value, 512, heads // share), g.new(F16, 512, count), 0.1,
                                               0.0, cap))
    return attention


GROUPS = {"unary": unary, "binary": binary, "copies": copies, "norms": norms, "rotations": rotations,
          "pictures": pictures, "states": states, "float_products": float_products,
          "attention_small": attention_of((40, 64, 72, 80)), "attention_medium": attention_of((96, 112, 128)),
          "attention_large": attention_of((256, 576)),
          **{f"products_{kind}": products_of((kind,)) for kind in QUANTISED}}


def run_group(arguments):
    ggml = Ggml(arguments.libraries, not arguments.list)

    def parameter(kind, *sizes):
        tensor = ggml.new(kind, *sizes)
        ggml("ggml_set_param", tensor)
        return tensor
    ggml.param = parameter
    GROUPS[arguments.one](ggml)
    print(json.dumps({"built": ggml.built, "ran": ggml.ran, "not_supported": ggml.left_out}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=pathlib.Path)
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=8, help="groups at a time")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return run_group(arguments)
    said = {}

    def play(name):
        command = [sys.executable, __file__, str(arguments.libraries), "--one", name, *(["--list"] * arguments.list)]
        done = subprocess.run(command, text=True, capture_output=True, timeout=120, check=False)
        said[name] = (json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else
                      {"exit": done.returncode, "said": done.stderr[-300:]})
        print(name, json.dumps(said[name]), flush=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as jobs:
        list(jobs.map(play, arguments.groups.split(",")))
    ran = sum(each.get("built" if arguments.list else "ran", 0) for each in said.values())
    print(json.dumps({"operations": ran, "groups": len(said)}))
    return 0 if ran else 1


if __name__ == "__main__":
    sys.exit(main())
