# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/measured about programs that know nothing of us: parked domains and spare driver instances."""
import json

from results import figure, median, table

HEAD = ["plays", "lived on", "wrong words", "stall, median", "most"]


def plays_of(of, *files):
    return [row for file in files for row in of.load(file)["rows"] if row.get("parked") and "tenants" in row]


def fates(rows):
    """What became of all programs of these plays, under HEAD."""
    tenants = [each for row in rows for each in row["tenants"]]
    stalls = [each["longest_ms"] for each in tenants if each.get("longest_ms") is not None]
    return [len(rows), f"{sum(not each.get('error') for each in tenants)} of {len(tenants)}",
            sum(each.get("wrong_words") or 0 for each in tenants), figure(median(stalls)), figure(max(stalls))]


def by_kind(of, *files):
    kinds = {}
    for row in plays_of(of, *files):
        kinds.setdefault(row["kind"], []).append(row)
    return [[kind, *fates(rows)] for kind, rows in kinds.items()]


def launches_afterwards(of):
    rows = []
    for what, file in (("stays", "h100/parking-launches"), ("leaves by its spare", "h100/spare-launches")):
        programs = [each for row in of.load(file)["rows"] for each in row["tenants"] if "us_a_launch_before" in each]
        rows.append([f"{what}: {of.link(file)}", figure(median(each["us_a_launch_before"] for each in programs)),
                     figure(median(each["us_a_launch_after"] for each in programs))])
    return table(["a program that …", "before", "after"], rows)


def survivors(of):
    rows, files = [], ("h200/survive", "h200/survive-2")
    for file in files:
        for program in of.load(file)["programs"]:
            said = json.loads(program["said"][-1])
            rows.append([program["command"][-1], f"{program['lived']} of {len(program['faults'])}",
                         said["wrong"], program["status_was_wrong"], figure(said["longest_round_s"])])
    head = ["program", "lived through", "wrong rounds", "status was wrong", "longest round, s"]
    return table(head, rows) + "\n\nFiles: " + ", ".join(of.link(file) for file in files) + "."


def parking(of):
    beside = (("kernels that fill the GPU", "h100/parking-beside-full"),
              ("cooperative, clusters, graphs, streams, allocations", "h100/parking-beside-kinds"),
              ("kernels of 147 ms, PyTorch, PyTorch that trains", "h100/parking-beside-large"),
              ("programs that begin and end", "h100/parking-beside-starts"),
              ("newer instructions, 20 kinds", "h100/parking-more-kinds"),
              ("an agent of its own user", "h100/parking-own-user"),
              ("ten kinds", "h200/parking-3"),
              ("in the mode by calls", "h200/parking-by-calls"),
              ("two exceptions within 0.05 ms", "h200/parking-at-once"))
    never = of.load("h200/never-begins")["summary"]
    server, small = never["llm_server"], never["spare_faults"]
    others = server["faults"] - server["after_traps"]
    copies = next(each for each in of.load("h200/mode-cost")["summary"] if each["kind"] == "memory")
    return "Parked domains", f"""Unmodified programs beside a faulting one. Each program's longest stall counts, in ms.

## By kind: four programs with small kernels, on an H100

{table(["kind", *HEAD], by_kind(of, "h100/parking", "h100/parking-2", "h100/parking-5"))}

Files: {of.link("h100/parking")}, {of.link("h100/parking-2")}, {of.link("h100/parking-5")}.

## Other neighbours, machines and ways

{table(["what", *HEAD], [[f"{what}: {of.link(file)}", *fates(plays_of(of, file))] for what, file in beside])}

A language model's server did not begin its dump in {server["stood_still"]} of {server["after_traps"]} traps and
{server["stood_still_after_something_else_than_a_trap"]} of {others} other exceptions, smaller programs in
{small["stood_still"]} of {small["faults"]} ({of.link("h200/never-begins")}).

## Programs as people run them, an exception every 2 s, on an H200

{survivors(of)}

## Afterwards

µs for each empty kernel back to back, before the exception and after it, on an H100:

{launches_afterwards(of)}

Copies in GPU memory in the core dump mode take {figure(copies["environment_to_never"], 4)} of the time outside of it on
an H200 ({of.link("h200/mode-cost")})."""


def stalls(of):
    rows, exits = [], []
    for file in ("h100/spare-faults-torch-3", "h100/spare-faults-graph-2", "h100/spare-faults-segments",
                 "h200/spare-faults", "h200/spare-faults-40", "h200/spare-guarded", "h200/spare-bounded"):
        run = of.load(file)
        for program, each in run["figures"].items():
            said = run["said"][program]
            exits.append(said["exit"])
            rows.append([f"{program}, {of.link(file)}", each["faults"], figure(said["launches"]), said["wrong_words"],
                         figure(each["stall_ms_p50"]), figure(each["stall_ms_most"])])
    told = f"{exits.count(0)} of {len(exits)} programs ended with status 0."
    return table(["program, file", "faults", "results", "wrong", "stall, median", "most"], rows) + f"\n\n{told}"


def moves(of):
    rows = []
    for each in of.load("h100/spare-moves")["programs"]:
        name = each["command"].split("moves-")[-1].split(".json")[0]
        rows.append([name, figure(each.get("launches")), figure(each.get("wrong_words")), each["moves"],
                     figure(each["move_ms"]["p50"]), figure(each["move_ms"]["most"])])
    for name in ("jax", "cupy", "triton", "compile", "random"):
        run = of.load(f"h200/spare-{name}")
        said = json.loads(run["output"].strip().splitlines()[-1])
        took = [each["took_ms"] for each in run["leaves"] if each["page"] is not None]
        rows.append([of.link(f"h200/spare-{name}"), figure(said["steps"]), sum(said["other_bits"]), len(took),
                     figure(median(took)), figure(max(took))])
    return table(["program", "results", "wrong", "moves", "a move, median", "most"], rows)


def costs(of):
    rows = []
    for program, each in of.load("h200/spare-cost-guarded")["figures"].items():
        pairs = [each.get(what) for what in ("launch_us", "a_second", "until_first_ms", "memory_mib")]
        rows.append([program, *(f"{figure(pair['without'])}, {figure(pair['with'])}" if pair else "-" for pair in pairs),
                     figure(each["until_protected_ms"]["with"])])
    return table(["program", "µs a launch", "steps a second", "first kernel", "GPU MiB", "protected after"], rows)


def throws(of):
    named = {"none": "nothing happened", "trap": "after a trap", "misaligned": "after a misaligned access",
             "dump": "after a trap that it wrote a core dump of", "busy": "while a kernel ran that stores for ever"}
    rows = []
    for play in of.load("h200/instances")["plays"]:
        left = play["left_a_round"]
        closed = sum(play[f"throw_{what}_ms"]["p50"] for what in ("threads", "mappings", "descriptors"))
        rows.append([named[play["how"]] + ("" if play["domains"] else ", without MPS"), play["rounds"], play["wrong"],
                     play["not_gone"], play["stored_after_fence"], figure(play["up_ms"]["p50"]), figure(closed),
                     f"{figure(left['descriptors'])}, {figure(left['threads'])}, {figure(left['kib'])}"])
    return table(["copies of the driver, thrown away", "rounds", "wrong words", "not gone", "stored afterwards", "up, median",
                  "fence, median", "left a round: descriptors, threads, KiB"], rows)


def held_by_programs(of):
    faults = of.load("h200/spare-faults-40")["faults"]
    rows = []
    for program in faults[0]["held"]:
        for when, fault in (("before the first fault", faults[0]), ("after one", faults[1]),
                            (f"after {len(faults) - 1}", faults[-1])):
            held = fault["held"][program]
            rows.append([f"{program}, {when}", held["descriptors"], held["threads"], figure(held["own_kib"] / 1024)])
    return table(["program", "descriptors", "threads", "MiB of its own"], rows)


def spare(of):
    operators = of.load("h200/torch-operators")
    server = of.load("h200/llm-server")
    llama = [fault for row in of.load("h100/llama-variants-2")["rows"] if row["commit"] != "b12c51a2"
             for fault in row["faults"]]
    return "Spare driver instances", f"""Times are in ms.

## One faulting neighbour after another

The same processes all the time, in domains that are parked. Each fault's longest stall counts.

{stalls(of)}

llama.cpp's server, unmodified, left in {sum(fault["left"] for fault in llama)} of {len(llama)} exceptions, and was lost
in the others ({of.link("h100/llama-variants-2")}). A language model's server in PyTorch gave {server["answers"]} answers
over {len(server["faults"])} faults with {len(server["errors"])} errors and {server["other_answers"]} other words; the
longest gap between two words was {figure(server["longest_gap_ms"]["p50"])} at p50 ({of.link("h200/llm-server")}).

## Moves without a fault

The first six are of {of.link("h100/spare-moves")}, at once on one GPU.

{moves(of)}

Of PyTorch's own tests {operators["same"]:,} of {operators["results"]:,} results of {operators["operators"]} operators
were the same to the bit over {operators["moves"]} moves ({of.link("h200/torch-operators")}).

## A copy of the driver thrown away

In two MPS domains in turns, one program, on an H200 ({of.link("h200/instances")}). Each copy computes a step and is thrown
away; the next one goes on with the same memory.

{throws(of)}

What programs hold over 40 faults beside them ({of.link("h200/spare-faults-40")}):

{held_by_programs(of)}

## What it costs, the guard included

Without and with, medians of four rounds ({of.link("h200/spare-cost-guarded")}):

{costs(of)}"""
