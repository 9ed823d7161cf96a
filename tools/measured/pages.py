# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/measured: which figures of which files stand in which table. A page is a function that is given the
results and returns its title and its text."""
from agent_pages import agent, kernel, redo
from parked_pages import parking, spare
from results import figure, spread, table

COPY_ENGINE = ("copy-source-unmap", "copy-engine-unmap", "copy-2d-unmap")
PBDMA = ("write-value-unmap", "wait-value-unmap")
TRAPS = ("trap", "breakpoint")
ENDS = ("sigkill", "sigterm", "sigsegv", "exit", "exec", "sigkill-short-kernel", "sigkill-endless", "sigkill-full-gpu")
EXCEPTIONS = ("misaligned-load", "misaligned-store", "misaligned-atomic", "shared-out-of-bounds", "local-out-of-bounds",
              "non-canonical-address", "illegal-instruction", "stack-overflow")
CLASSES = {
    "memory fault of an SM": lambda kind: kind["class"] == "mmu_replayable",
    "copy engine": lambda kind: kind["kind"] in COPY_ENGINE,
    "PBDMA (stream writes, waits)": lambda kind: kind["kind"] in PBDMA,
    "SM exception": lambda kind: kind["class"] == "sm" and kind["kind"] not in TRAPS,
    "trap, breakpoint": lambda kind: kind["kind"] in TRAPS,
    "a client ends in mid-kernel": lambda kind: kind["class"] == "termination",
}


def raised(kinds):
    """Kinds that this machine can have and that raised a fault."""
    return [each for each in kinds if each["runs"] and each["xids"] != {"none": each["runs"]}]


def faults(of):
    kinds = raised(of.load("h100/characterization")["summary"]["kinds"])
    rows = []
    for name, wanted in CLASSES.items():
        group = [each for each in kinds if wanted(each)]

        def times(source):
            return spread(each["signal_ms"][source]["p50"] for each in group if source in each["signal_ms"])

        runs = sum(each["runs"] for each in group)
        lived = sum(each["fates"]["co_client"].get("lives", 0) for each in group)
        named = sum(each["attribution"].get("right", 0) for each in group)
        wrong = sum(each["attribution"].get("wrong", 0) for each in group)
        rows.append([name, runs, lived, times("uvm_event"), times("mps_log"), times("xid"),
                     spread(each["stall_ms"]["other_domain"]["p50"] for each in group), f"{named}, {wrong}"])
    fates = [{each["kind"]: set(each["fates"]["co_client"]) for each in raised(of.load(name)["summary"]["kinds"])}
             for name in ("h100/characterization", "h200/characterization")]
    same = sum(fate <= fates[0].get(kind, set()) for kind, fate in fates[1].items())
    title = ["class", "runs", "co-client lived", "UVM's event", "MPS's log", "Xid", "others stand still",
             "named rightly, wrongly"]
    return "What each class of fault does", f"""Each kind was raised in fresh domains, beside a client in the same
domain, one in another and one without MPS. Times are medians of each kind in ms after the faulting launch: the least
and the most of the class ({of.link("h100/characterization")}). On an H200 the co-client of {same} of {len(fates[1])}
kinds fared as on the H100 ({of.link("h200/characterization")}).

{table(title, rows)}"""


def in_the_demo(of):
    groups = {"memory fault of an SM": lambda kind: kind not in (*COPY_ENGINE, *PBDMA, *TRAPS, *ENDS, *EXCEPTIONS),
              "SM exception, trap": lambda kind: kind in (*EXCEPTIONS, *TRAPS),
              "a client ends in mid-kernel": lambda kind: kind in ENDS}
    plays = of.load("h100/demo-each-kind")["plays"]
    rows = []
    for name, wanted in groups.items():
        of_group = [each for play in plays if wanted(play["kind"]) for each in play["recoveries"]
                    if each["tenant"] == "decode"]
        rows.append([name, len(of_group)] + [spread(each[f"fault_to_{what}_ms"] for each in of_group)
                                             for what in ("detection", "promotion", "first_kernel")])
    return table(["class", "plays", "seen", "promoted", "first kernel done"], rows)


def takeovers(of):
    rows = []
    for what, file in (("a step every 5 ms", "h100/takeovers"), ("steps back to back", "h100/takeovers-busy")):
        for kind, all_times in of.load(file)["takeovers"].items():
            times = all_times["fault_to_first_kernel_ms"]
            rows.append([f"{kind}, {what}", times["count"], figure(times["p50"]), figure(times["max"])])
    return table(["fault, tenants", "takeovers", "median", "most"], rows)


def ways_back(of):
    ways = {}
    for run in of.load("h100/recovery")["runs"]:
        for each in run["faults"]:
            if each["fault"] == "kill":
                ways.setdefault(f"{each['mode']}, killed", []).append(each)
    for run in of.load("h100/recovery-2")["runs"]:
        for size in run["sizes"]:
            for each in size["faults"]:
                if each["mode"] == "standby":
                    ways.setdefault(f"standby, {each['fault']}", []).append(each)
    keys = ("first_kernel_ms", "first_new_token_ms", "last_clients_first_new_token_ms", "tokens_recomputed",
            "broken_connections", "spare_mib")
    rows = [[way, len(group)] + [spread(each[key] for each in group) for key in keys] for way, group in ways.items()]
    return table(["way", "runs", "first kernel", "first new token", "all clients served", "tokens recomputed",
                  "clients cut off", "MiB held ready"], rows)


def commits(of):
    calls = ("cuStreamWriteValue64", "fb_commit", "fb_commit_changes", "fb_prepare_changes")
    rows = [[f"{figure(row['context_tokens'])}, {row['caches']}"] + [figure(row[call]["median_us"]) for call in calls]
            for row in of.load("h100/commit")["rows"] if row["context_tokens"] != 1000]
    return table(["tokens, caches", "bare stream write", *(f"`{call}`" for call in calls[1:])], rows)


def standbys(of):
    rows = [[row["workload"], row["standby_sms"] or "all", row["waiting_process_mib"],
             figure(row["promoted_to_moved_ms"])]
            for row in of.load("h100/standby-memory")["rows"] if row["standby_sms"] != 2]
    return table(["tenant", "multiprocessors", "MiB while it waits", "ms until it has a full context"], rows)


def first_word(of):
    keys = ("constant", "context_in_its_domain", "context_in_the_other", "context_without_mps", "dead_context")
    rows = [[of.link(file)] + [figure(of.load(file)["law"]["xid13"]["ms"][key], 2) for key in keys]
            for file in ("h100/first-word", "h200/first-word")]
    return table(["file", "constant", "context in the domain", "in the other", "without MPS", "dead"], rows)


def soaks(of):
    rows = []
    for what, file in (("decode, denoise, scribble", "software-gpu/soak"),
                       ("16 adversaries", "software-gpu/fence-2"), ("16 adversaries", "h100/fence"),
                       ("20 adversaries", "h100/fence-20-pairs"), ("8 adversaries", "h100/fence-8-pairs"),
                       ("decode, denoise, scribble", "h100/soak-agent-killed"), ("edges", "software-gpu/soak-edges"),
                       ("edges", "h100/soak-edges"), ("edges", "h100/soak-edges-2"), ("edges", "h200/soak-edges")):
        run = of.load(file)
        epochs = run.get("epochs", run.get("promotions"))
        rows.append([f"{what}: {of.link(file)}", run["faults"], run["agent_kills"], epochs, len(run["violations"])])
    return table(["pairs", "faults", "agents killed", "epochs", "violations"], rows)


def failover(of):
    attach = ", ".join(f"{row['pieces']} in {figure(row['attach_ms']['p50'])}"
                       for row in of.load("h100/vault")["attach"])
    return "Failover", f"""Times are in ms where nothing else is said; "least to most" of the runs.

## From a fault to the standby's first kernel

In the demo, after the faulting launch ({of.link("h100/demo-each-kind")}):

{in_the_demo(of)}

Two pairs on one GPU with a fault inside one of them again and again, until the first kernel is done
({of.link("h100/takeovers")}, {of.link("h100/takeovers-busy")}):

{takeovers(of)}

## A language model's server

Qwen2.5's shapes with random weights on PyTorch and 16 clients: killed in four sizes from 0.5B to 7B
({of.link("h100/recovery")}), and faults at 0.5B ({of.link("h100/recovery-2")}).

{ways_back(of)}

## Commits and memory

What a commit costs the host, medians in µs for one step of 16 sequences ({of.link("h100/commit")}):

{commits(of)}

Attaching to kept memory, pieces of 1 GiB in ms at the median: {attach} ({of.link("h100/vault")}).

A standby that waits in few multiprocessors ({of.link("h100/standby-memory")}):

{standbys(of)}

## When the driver first speaks of an SM fault

Fitted to all runs, for each context:

{first_word(of)}

## Soaks

A violation is a committed step that was lost, a wrong output, a tenant lost that had a standby, or something left
behind. Adversaries write as fast as they can and find every write that is not their own.

{soaks(of)}"""


def guard(of):
    kinds = [each for each in of.load("h100/containment")["summary"]["kinds"] if each["runs"]]
    lives = [each for each in kinds if set(each["fates"]["co_client"]) == {"lives"}]
    contained = [each for each in lives if each["class"] != "termination" and each["xids"] == {"none": each["runs"]}]
    dying = [each for name in ("h100/dying", "h100/dying-waiting-kernel") for each in of.load(name)["summary"]["kinds"]]
    lived = sum(each["fates"]["co_client"].get("lives", 0) for each in dying)
    late = [each["released_ms"] - each["expected_release_ms"] for each in of.load("h100/known-end")["runs"]]
    stores = sum(row["stores_after_promotion"] for row in of.load("h100/forked-children")["rows"])
    rows = [
        [f"kinds without an error of anybody and without an Xid: {of.link('h100/containment')}",
         f"{len(contained)}, in {sum(each['runs'] for each in contained)} runs"],
        ["kinds that ended the co-client, there", len(kinds) - len(lives)],
        [f"a stray's report to its tenant's end, ms: {of.link('h100/stray-end')}",
         spread(of.load("h100/stray-end")["report_to_end_ms"])],
        [f"co-clients of clients that ended in mid-kernel and were held: {of.link('h100/dying')}, "
         f"{of.link('h100/dying-waiting-kernel')}", f"{lived} of {sum(each['runs'] for each in dying)} lived"],
        [f"a guarded client killed in mid-kernel: let go after its kernel's end, ms: {of.link('h100/known-end')}",
         spread(late)],
        [f"stores of a killed active with a child of `fork()` after the promotion: {of.link('h100/forked-children')}",
         stores],
    ]
    overhead = [[row["load"], figure(row["without_ms"]), figure(row["with_ms"]), figure(row["ratio"], 4)]
                for row in of.load("h100/guard-overhead")["with_and_without"]]
    return "The guard, and clients that end", f"""{table(["what, on an H100", "figure"], rows)}

The same work with and without the guard, medians of 11 in turns ({of.link("h100/guard-overhead")}):

{table(["load", "ms without", "ms with", "ratio"], overhead)}"""


def rest_and_turns(of):
    rests = [[row, each["rests"], figure(each["suspend_ms_p50"]), figure(each["resume_ms_p50"]), figure(each["host_mib"])]
             for row, each in of.load("h200/rest")["figures"].items()]
    ways = of.load("h200/turns")["ways"]
    turns = [[way, figure(each["images"]["p50_ms"]), figure(each["images"]["p90_ms"]),
              figure(each["images"]["first_step_p50_ms"]), figure(each["video"]["steps_per_s"]),
              figure(each["video"]["longest_wait_s"])] for way, each in ways.items()]
    return "Rest and turns", f"""`firebreak suspend` and `firebreak resume` of unmodified programs on an H200, medians
({of.link("h200/rest")}); `torch_large` has 12 GiB:

{table(["tenant, depth", "rests", "ms to rest", "ms to come back", "MiB in the host"], rests)}

Images that come at random moments beside a video on one H200 ({of.link("h200/turns")}). `shares` gives other bits,
since libraries choose by the number of SMs:

{table(["way", "image, ms p50", "p90", "first step, ms p50", "video steps/s", "its longest wait, s"], turns)}"""


PAGES = {"faults": faults, "failover": failover, "guard": guard, "parking": parking, "spare": spare, "redo": redo,
         "agent": agent, "kernel": kernel, "rest": rest_and_turns}
