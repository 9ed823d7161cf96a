# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/measured: which figures of which files stand in which table. A page is a function that is given the
results and returns its title and its text."""
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
    return "What each class of fault does", f"""Each kind was raised in fresh domains, beside a client in the same domain, one
in another and one without MPS. Times are medians of each kind in ms after the faulting launch: the least and the most of
the class ({of.link("h100/characterization")}). On an H200 the co-client of {same} of {len(fates[1])} kinds fared as on the
H100 ({of.link("h200/characterization")}).

{table(["class", "runs", "co-client lived", "UVM's event", "MPS's log", "Xid", "others stand still", "named rightly, wrongly"], rows)}"""


def in_the_demo(of):
    groups = {"memory fault of an SM": lambda kind: kind not in (*COPY_ENGINE, *PBDMA, *TRAPS, *ENDS, *EXCEPTIONS),
              "SM exception, trap": lambda kind: kind in (*EXCEPTIONS, *TRAPS),
              "a client ends in mid-kernel": lambda kind: kind in ENDS}
    plays = of.load("h100/demo-each-kind")["plays"]
    rows = []
    for name, wanted in groups.items():
        of_group = [each for play in plays if wanted(play["kind"]) for each in play["recoveries"] if each["tenant"] == "decode"]
        rows.append([name, len(of_group)] + [spread(each[f"fault_to_{what}_ms"] for each in of_group)
                                             for what in ("detection", "promotion", "first_kernel")])
    return table(["class", "plays", "seen", "promoted", "first kernel done"], rows)


def takeovers(of):
    rows = []
    for what, file in (("a step every 5 ms", "h100/takeovers"), ("steps back to back", "h100/takeovers-busy")):
        for kind, all_times in of.load(file)["takeovers"].items():
            times = all_times["fault_to_first_kernel_ms"]
            rows.append([what, kind, times["count"], figure(times["p50"]), figure(times["max"]), of.link(file)])
    return table(["tenants", "fault", "takeovers", "median", "most", "file"], rows)


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
    rows = [[way, len(group)] + [spread(each[key] for each in group) for key in (
        "first_kernel_ms", "first_new_token_ms", "last_clients_first_new_token_ms", "tokens_recomputed", "broken_connections",
        "spare_mib")] for way, group in ways.items()]
    return table(["way", "runs", "first kernel", "first new token", "all clients served", "tokens recomputed", "clients cut off",
                  "MiB held ready"], rows)


def commits(of):
    rows = [[figure(row["context_tokens"]), row["caches"]] + [figure(row[call]["median_us"]) for call in (
        "cuStreamWriteValue64", "fb_commit", "fb_commit_changes", "fb_prepare_changes")] for row in of.load("h100/commit")["rows"]]
    return table(["tokens", "caches", "bare stream write", "`fb_commit`", "`fb_commit_changes`", "`fb_prepare_changes`"], rows)


def standbys(of):
    rows = [[row["workload"], row["standby_sms"] or "all", row["waiting_process_mib"], figure(row["promoted_to_moved_ms"])]
            for row in of.load("h100/standby-memory")["rows"]]
    return table(["tenant", "multiprocessors", "MiB while it waits", "ms until it has a full context"], rows)


def first_word(of):
    keys = ("constant", "context_in_its_domain", "context_in_the_other", "context_without_mps", "dead_context")
    rows = [[machine] + [figure(of.load(file)["law"]["xid13"]["ms"][key], 2) for key in keys] + [of.link(file)]
            for machine, file in (("H100", "h100/first-word"), ("H200", "h200/first-word"))]
    return table(["GPU", "constant", "context in the domain", "in the other", "without MPS", "dead context", "file"], rows)


def soaks(of):
    rows = []
    for what, file in (("decode, denoise, scribble", "software-gpu/soak"), ("the same", "software-gpu/soak-agent-killed"),
                       ("16 adversaries", "software-gpu/fence-2"), ("16 adversaries", "h100/fence"),
                       ("20 adversaries", "h100/fence-20-pairs"), ("8 adversaries", "h100/fence-8-pairs"),
                       ("decode, denoise, scribble", "h100/soak-agent-killed"), ("edges", "software-gpu/soak-edges"),
                       ("edges", "h100/soak-edges"), ("edges", "h100/soak-edges-2"), ("edges", "h200/soak-edges")):
        run = of.load(file)
        rows.append([what, run["faults"], run["agent_kills"], run.get("epochs", run.get("promotions")), len(run["violations"]),
                     of.link(file)])
    return table(["pairs", "faults", "agents killed", "epochs begun", "violations", "file"], rows)


def failover(of):
    attach = [[row["pieces"], figure(row["attach_ms"]["p50"]), figure(row["attach_ms"]["p99"])]
              for row in of.load("h100/vault")["attach"]]
    return "Failover", f"""Times are in ms where nothing else is said; "least to most" of the runs.

## From a fault to the standby's first kernel

In the demo, after the faulting launch ({of.link("h100/demo-each-kind")}):

{in_the_demo(of)}

Two pairs on one GPU with a fault inside one of them again and again, until the first kernel is done:

{takeovers(of)}

## A language model's server

Qwen2.5's shapes with random weights on PyTorch and 16 clients: killed in four sizes from 0.5B to 7B
({of.link("h100/recovery")}), and faults at 0.5B ({of.link("h100/recovery-2")}).

{ways_back(of)}

## Commits and memory

What a commit costs the host, medians in µs for one step of 16 sequences ({of.link("h100/commit")}):

{commits(of)}

Attaching to kept memory in pieces of 1 GiB ({of.link("h100/vault")}):

{table(["pieces", "p50", "p99"], attach)}

A standby that waits in few multiprocessors ({of.link("h100/standby-memory")}):

{standbys(of)}

## When the driver first speaks of an SM fault

Fitted to all runs, for each context:

{first_word(of)}

## Soaks

A violation is a committed step that was lost, a wrong output, a tenant lost that had a standby, or something left behind.
Adversaries write as fast as they can and find every write that is not their own.

{soaks(of)}"""


def guard(of):
    kinds = [each for each in of.load("h100/containment")["summary"]["kinds"] if each["runs"]]
    lives = [each for each in kinds if set(each["fates"]["co_client"]) == {"lives"}]
    strays = [each for each in lives if each["class"] != "termination" and each["xids"] == {"none": each["runs"]}]
    falls = [each for each in kinds if each not in lives]
    dying = [each for name in ("h100/dying", "h100/dying-waiting-kernel") for each in of.load(name)["summary"]["kinds"]]
    overhead = [[row["load"], figure(row["without_ms"]), figure(row["with_ms"]), figure(row["ratio"], 4)]
                for row in of.load("h100/guard-overhead")["with_and_without"]]
    ends = of.load("h100/stray-end")["report_to_end_ms"]
    known = of.load("h100/known-end")["runs"]
    late = [each["released_ms"] - each["expected_release_ms"] for each in known]
    lived = sum(each["fates"]["co_client"].get("lives", 0) for each in dying)
    rows = [
        ["kinds without an error of anybody and without an Xid", f"{len(strays)}, in {sum(each['runs'] for each in strays)} runs", of.link("h100/containment")],
        ["kinds that ended the co-client", len(falls), of.link("h100/containment")],
        ["a stray's report to its tenant's end, ms", spread(ends), of.link("h100/stray-end")],
        ["clients that ended in mid-kernel, held: co-client lived", f"{lived} of {sum(each['runs'] for each in dying)}", f"{of.link('h100/dying')}, {of.link('h100/dying-waiting-kernel')}"],
        ["a guarded client killed in mid-kernel: let go after its kernel's end, ms", spread(late), of.link("h100/known-end")],
        ["stores of a killed active after the promotion, with a child of `fork()`", sum(row["stores_after_promotion"] for row in of.load("h100/forked-children")["rows"]), of.link("h100/forked-children")],
    ]
    return "The guard, and clients that end", f"""{table(["what, on an H100", "figure", "file"], rows)}

The same work with and without the guard, medians of 11 in turns ({of.link("h100/guard-overhead")}):

{table(["load", "ms without", "ms with", "ratio"], overhead)}"""


def redo(of):
    replayed = [[program, each["played"]["distinct"], each["idempotent_by_their_trace"]["distinct"], each["of_these_called_so"]["distinct"],
                 each["called_idempotent_and_are_not"]["distinct"], each["torn_and_done_again"]]
                for program, each in of.load("h100/launches-replayed")["programs"].items()]
    programs = []
    for file in ("h100/redo-faults", "h100/redo-faults-2", "h100/redo-faults-3", "h100/redo-faults-4"):
        each = of.load(file)["figures"]
        programs.append([each["faults"], each["programs_hit"], each["went_on_with_work_done_again"], each["went_on_with_nothing_under_way"],
                         each["got_the_error"], f"{each['wrong']} of {each['results_compared']:,}", of.link(file)])
    costs = [[program, figure(each["ratio_of_pairs"]["median"]), f"{figure(each['ratio_of_pairs']['least'])} to {figure(each['ratio_of_pairs']['most'])}"]
             for program, each in of.load("h100/redo-cost-programs")["figures"].items()]
    ring = of.load("software-gpu/redo")
    noted = ring["cpu_ns_of_one_launch_median"]
    return "Which launches may run again", f"""Recorded launches of real programs, replayed on an H100 with made-up data: traced, torn, done again
({of.link("h100/launches-replayed")}).

{table(["program", "different launches", "idempotent by trace", "called so", "called so and are not", "torn, done again, equal"], replayed)}

Programs whose domain died under their work, on an H100:

{table(["faults", "programs hit", "work done again", "nothing under way", "error", "wrong results", "file"], programs)}

Random kernels, sequences and faults on the software GPU, with their commands and seeds, are in
{of.link("software-gpu/idempotency")}.

Noting a launch takes {figure(noted["40 bytes of parameters"])} to {figure(noted["232 bytes"])} ns of CPU time for up to 232 bytes of parameters
({of.link("software-gpu/redo")}). Work a second with it over without it, medians of pairs on an H100
({of.link("h100/redo-cost-programs")}):

{table(["program", "median", "least to most"], costs)}"""


def agent(of):
    flood = []
    for cores, file in (("two H200, 32", "h200/flood"), ("software GPU, 16", "software-gpu/flood-faults-16"), ("software GPU, 2", "software-gpu/flood-faults-2")):
        run = of.load(file)
        beside = run["beside"]["flood"]
        promotions = beside.get("signal_to_promotion_ms", {})
        flood.append([cores, figure(run["step_change_percent"]["flood_against_nobody"], 2), figure(beside["agent_percent_of_a_core"], 2),
                      figure(promotions.get("p50")), figure(promotions.get("p99")), of.link(file)])
    scale = [[run["tenants"], figure(run["join_ms"]), figure(run["status_ms"]["p50"]), figure(run["agent_restart_ms"]), figure(run["all_processes_back_ms"]),
              f"{run['tenants_hit_by_the_fault']} in {figure(run['fault_to_promotion_ms']['max'])}", figure(run["agent"]["descriptors"]), figure(run["agent"]["resident_kib"] // 1024)]
             for run in of.load("software-gpu/scale")["runs"]]
    idle = of.load("software-gpu/watch-idle")["percent_of_a_core"]
    return "The agent", f"""Another user floods the agent with messages, connections, descriptors and faults. Promotions are in ms
after the log's word; none happened on the H200s.

{table(["GPU, cores", "% longer steps", "agent's % of a core", "p50", "p99", "file"], flood)}

Pairs of 1,024 allocations each, on the software GPU ({of.link("software-gpu/scale")}); times in ms:

{table(["pairs", "all protected", "`status`", "the next agent has all", "all processes back", "promoted by a fault", "descriptors", "MiB"], scale)}

`firebreak watch --all` takes {spread(idle.values())} % of a core while nothing happens ({of.link("software-gpu/watch-idle")}).
After a SIGKILL the next agent had an LLM server's pair back within {of.load("h100/agent-killed")["agent_killed_to_tenants_restored_ms"]} ms ({of.link("h100/agent-killed")})."""


def kernel(of):
    branches = []
    for branch, version in (("535", ""), ("580", "-580"), ("595", "-595")):
        classes = of.load(f"qemu/classes-{branch}")
        fuzz = of.load(f"qemu/fuzz-{branch}")
        mutants = of.load(f"qemu/mutants{version}")
        all_of = classes["all_classes"]
        branches.append([branch, f"{len(classes['classes'])} ({of.link(f'qemu/classes-{branch}')})",
                         f"{mutants['noticed']} of {mutants['listed']} ({of.link(f'qemu/mutants{version}')})",
                         f"{fuzz['programs'][0]['faults']:,} in {fuzz['programs'][0]['fuzz_rounds']} rounds, {fuzz['programs'][0]['failed']} failed ({of.link(f'qemu/fuzz-{branch}')})",
                         all_of["sink_pushes"]["largest"], figure(all_of["sink_over_ordinary_hold_p50"])])
    verdicts = []
    for linux, branch, file in (("6.1", "535", "qemu/verdict"), ("6.1", "580", "qemu/verdict-580"), ("6.1", "595", "qemu/verdict-595"),
                                ("6.12", "535", "qemu/verdict-535-6.12"), ("6.12", "580", "qemu/verdict-580-6.12"),
                                ("6.12", "595", "qemu/verdict-595-6.12")):
        runs = of.load(file)["runs"]
        played = {name for run in runs for name in run["classes_patched"].get("names", [])}
        verdicts.append([linux, branch, len(runs), len(played), sum(run["complaints"] for run in runs), of.link(file)])
    return "The kernel patch, on a model GPU in QEMU", f"""Nothing here is of a real GPU. Classes were played on the stock and on the patched module; the neighbours die on the one and
live on the other. Mutants take a hook or guard away; those that are not noticed say why none can notice them.

{table(["branch", "classes", "mutants noticed", "faults fuzzed", "most pushes of a sink", "sink over an ordinary hold, medians"], branches)}

Debug builds of the patched module under KASAN and lockdep; what is played has the loads and built-in tests in it, and complaints are
those that are not on the list of what is allowed:

{table(["Linux", "branch", "runs", "different things played", "complaints", "file"], verdicts)}"""


PAGES = {"faults": faults, "failover": failover, "guard": guard, "parking": parking, "spare": spare, "redo": redo, "agent": agent, "kernel": kernel}
