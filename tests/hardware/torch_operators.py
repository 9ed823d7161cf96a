#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own operator tests give each operator inputs of many shapes. This runs the operators on these inputs, forth
and back, and writes down the bits of each result. For a machine with a GPU and PyTorch.

    torch_operators.py RESULT.json [--part K/N] [--samples S]      runs every N-th operator
    torch_operators.py --compare PLAIN AGAIN MOVED RESULT.json     folders with results; exit 1: a result of MOVED is wrong

A result counts where two runs without anything of ours (PLAIN, AGAIN) have the same bits, and PyTorch does not say
that it is not deterministic. The others are counted apart. MOVED is made by spare.py, which asks the program to leave its domain again and
again; what it has to say of that lies there as K.spare.json."""
import argparse
import hashlib
import json
import os
import pathlib
import sys
import types
import unittest
import zlib

DTYPES = ("float32", "float16", "int64")
NO_RESULT = ("empty", "resize", "rand", "normal", "bernoulli", "multinomial", "dropout", "geometric", "cauchy",
             "exponential", "uniform", "log_normal")  # what nobody has written, or nobody can repeat
NOT_DETERMINISTIC = "PyTorch says that it is not deterministic"
FATAL = ("CUDA error", "CUBLAS_STATUS", "CUFFT", "cusolver error", "cuDNN error")


def operators():
    if "expecttest" not in sys.modules:  # PyTorch's tests import it; the tables of operators do not use it
        sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)
    from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if not any(word in op.name for word in NO_RESULT)]


def tensors_of(result):
    import torch
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for each in result for tensor in tensors_of(each)]
    return []


def bits_of(tensors):
    import torch
    digest = hashlib.sha1()
    for tensor in tensors:
        tensor = tensor.detach().resolve_conj().resolve_neg()
        digest.update(str((tuple(tensor.shape), tensor.dtype)).encode())
        if tensor.layout is torch.strided:
            digest.update(tensor.contiguous().cpu().reshape(-1).view(dtype=torch.uint8).numpy().tobytes()
                          if tensor.numel() else b"")
    return digest.hexdigest()[:16]


def run(op, dtype, backward, samples, results, warnings):
    import torch
    what = f"{op.name}.{op.variant_test_name}|{str(dtype)[6:]}|{'back' if backward else 'forth'}"
    torch.manual_seed(zlib.crc32(what.encode()))
    try:
        for number, sample in enumerate(op.sample_inputs("cuda", dtype, requires_grad=backward)):
            if number == samples:
                break
            key = f"{what}|{number}"
            try:
                warnings.clear()
                out = tensors_of(op(sample.input, *sample.args, **sample.kwargs))
                if backward:
                    reached = [each for each in out if each.requires_grad]
                    given = [each for each in tensors_of([sample.input, *sample.args, *sample.kwargs.values()])
                             if each.requires_grad and each.is_leaf]
                    if not reached or not given:
                        continue
                    out = [each for each in torch.autograd.grad(
                        reached, given, [torch.ones_like(each) for each in reached], allow_unused=True)
                        if each is not None]
                torch.cuda.synchronize()
                is_random = any("deterministic implementation" in str(each.message) for each in warnings)
                results[key] = bits_of(out) if not is_random else NOT_DETERMINISTIC
            except Exception as wrong:  # what it says without us it has to say with us
                results[key] = f"{type(wrong).__name__}: {str(wrong)[:80]}"
                if any(word in str(wrong) for word in FATAL):
                    raise
    except Exception as wrong:
        results[f"{what}|inputs"] = f"{type(wrong).__name__}: {str(wrong)[:80]}"
        if any(word in str(wrong) for word in FATAL):
            raise


def main(output, part, samples):
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import warnings
    import torch
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.ones(1, device="cuda")
    print("working", flush=True)
    number, parts = map(int, part.split("/"))
    results = {}
    torch._C._set_warnAlways(True)  # and not of each operator once in a process
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        wrong = run_all(operators()[number::parts], samples, results, told)
    pathlib.Path(output).write_text(json.dumps({"error": wrong, "results": results}, indent=0) + "\n")
    print(f"{len(results)} results; error: {wrong or 'none'}", flush=True)
    return 1 if wrong else 0


def run_all(chosen, samples, results, told):
    """What ended it; empty: nothing."""
    import torch
    for op in chosen:
        for name in DTYPES:
            dtype = getattr(torch, name)
            if dtype not in op.supported_dtypes("cuda"):
                continue
            try:
                run(op, dtype, False, samples, results, told)
                if name == "float32" and op.supports_autograd:
                    run(op, dtype, True, samples, results, told)
            except Exception as fatal:
                return str(fatal)[:200] or type(fatal).__name__
    return ""


def compare(plain, again, moved, output, *more):
    sums = {"operators": set(), "results": 0, "same": 0, "wrong": [], "missing": 0, "not_deterministic": 0, "moves": 0,
            "parts": [], "exceptions": 0}
    for file in sorted(pathlib.Path(plain).glob("*.ops.json")):
        first, second, third = ({} if not (path := pathlib.Path(folder) / file.name).exists()
                                else json.loads(path.read_text())["results"] for folder in (plain, again, moved))
        path = pathlib.Path(moved) / file.name.replace(".ops.", ".spare.")
        told = json.loads(path.read_text()) if path.exists() else {"exit": None, "last_state": None}
        last = told["last_state"] or {"flips": 0, "state": "", "reason": "nothing was told of it"}
        sums["parts"].append({"moves": last["flips"], "exit": told["exit"], "state": last["state"],
                              "reason": last["reason"]})
        sums["moves"] += last["flips"]
        for key, bits in first.items():
            if second.get(key) != bits or bits == NOT_DETERMINISTIC:
                sums["not_deterministic"] += 1
                continue
            sums["results"] += 1
            sums["operators"].add(key.split("|")[0])
            sums["exceptions"] += ":" in bits
            if key not in third:
                sums["missing"] += 1
            elif third[key] == bits:
                sums["same"] += 1
            else:
                sums["wrong"].append([key, bits, third[key]])
    sums["operators"] = len(sums["operators"])
    from spare import machine
    pathlib.Path(output).write_text(json.dumps(
        {"what": "tests/hardware/torch_operators.py", "format": 1, "machine": machine(),
         "command": " ".join(["tests/hardware/torch-operators.sh BIN RESULT.json", *more]), **sums}, indent=1) + "\n")
    print(json.dumps({key: value for key, value in sums.items() if key != "wrong"}), len(sums["wrong"]), "wrong",
          sums["wrong"][:5])
    ended = [part for part in sums["parts"] if part["exit"] != 0]
    return 1 if sums["wrong"] or sums["missing"] or ended or not sums["moves"] or not sums["results"] else 0


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        sys.exit(compare(*sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--samples", type=int, default=6)
    options = parser.parse_args()
    sys.exit(main(options.output, options.part, options.samples))
