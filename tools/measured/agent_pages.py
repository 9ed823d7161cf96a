# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/measured about redo, the agent and the kernel patch."""
from results import figure, spread, table


def replayed(of):
    rows = [[program, each["played"]["distinct"], each["idempotent_by_their_trace"]["distinct"],
             each["of_these_called_so"]["distinct"], each["called_idempotent_and_are_not"]["distinct"],
             each["torn_and_done_again"]] for program, each in of.load("h100/launches-replayed")["programs"].items()]
    return table(["program", "different launches", "idempotent by trace", "called so", "called so and are not",
                  "torn, done again, equal"], rows)


def domains_that_died(of):
    rows = []
    for file in ("h100/redo-faults", "h100/redo-faults-2", "h100/redo-faults-3", "h100/redo-faults-4"):
        each = of.load(file)["figures"]
        rows.append([of.link(file), each["faults"], each["programs_hit"], each["went_on_with_work_done_again"],
                     each["went_on_with_nothing_under_way"], each["got_the_error"],
                     f"{each['wrong']} of {each['results_compared']:,}"])
    return table(["file", "faults", "programs hit", "work done again", "nothing under way", "error", "wrong results"],
                 rows)


def redo(of):
    costs = []
    for program, each in of.load("h100/redo-cost-programs")["figures"].items():
        ratio = each["ratio_of_pairs"]
        costs.append([program, figure(ratio["median"]), f"{figure(ratio['least'])} to {figure(ratio['most'])}"])
    noted = of.load("software-gpu/redo")["cpu_ns_of_one_launch_median"]
    least, most = figure(noted["40 bytes of parameters"]), figure(noted["232 bytes"])
    return "Which launches may run again", f"""Recorded launches of real programs, replayed on an H100 with made-up data:
traced, torn, done again ({of.link("h100/launches-replayed")}).

{replayed(of)}

Programs whose domain died under their work, on an H100:

{domains_that_died(of)}

Random kernels, sequences and faults on the software GPU, with their commands and seeds, are in
{of.link("software-gpu/idempotency")}.

Noting a launch takes {least} to {most} ns of CPU time for up to 232 bytes of parameters
({of.link("software-gpu/redo")}). Work a second with it over without it, medians of pairs on an H100
({of.link("h100/redo-cost-programs")}):

{table(["program", "median", "least to most"], costs)}"""


def floods(of):
    rows = []
    for file in ("h200/flood", "software-gpu/flood-faults-16", "software-gpu/flood-faults-2"):
        run = of.load(file)
        beside = run["beside"]["flood"]
        promotions = beside.get("signal_to_promotion_ms", {})
        rows.append([of.link(file), run["cpus"], figure(run["step_change_percent"]["flood_against_nobody"], 2),
                     figure(beside["agent_percent_of_a_core"], 2), figure(promotions.get("p50")),
                     figure(promotions.get("p99"))])
    return table(["file", "cores", "% longer steps", "agent's % of a core", "promotion, p50", "p99"], rows)


def scale(of):
    rows = []
    for run in of.load("software-gpu/scale")["runs"]:
        promoted = f"{run['tenants_hit_by_the_fault']} in {figure(run['fault_to_promotion_ms']['max'])}"
        rows.append([run["tenants"], figure(run["join_ms"]), figure(run["status_ms"]["p50"]),
                     figure(run["agent_restart_ms"]), figure(run["all_processes_back_ms"]), promoted,
                     figure(run["agent"]["descriptors"]), figure(run["agent"]["resident_kib"] // 1024)])
    return table(["pairs", "all protected", "`status`", "the next agent has all", "all processes back",
                  "promoted by a fault", "descriptors", "MiB"], rows)


def agent(of):
    idle = of.load("software-gpu/watch-idle")["percent_of_a_core"]
    restored = of.load("h100/agent-killed")["agent_killed_to_tenants_restored_ms"]
    return "The agent", f"""Another user floods the agent with messages, connections, descriptors and faults. Promotions
are in ms after the log's word; none happened on the H200s.

{floods(of)}

Pairs of 1,024 allocations each, on the software GPU ({of.link("software-gpu/scale")}); times in ms:

{scale(of)}

`firebreak watch --all` takes {spread(idle.values())} % of a core while nothing happens
({of.link("software-gpu/watch-idle")}). After a SIGKILL the next agent had an LLM server's pair back within {restored} ms
({of.link("h100/agent-killed")})."""


def branches(of):
    rows = []
    for branch, version in (("535", ""), ("580", "-580"), ("595", "-595")):
        classes = of.load(f"qemu/classes-{branch}")
        mutants = of.load(f"qemu/mutants{version}")
        fuzz = of.load(f"qemu/fuzz-{branch}")["programs"][0]
        all_of = classes["all_classes"]
        rows.append([branch, f"{len(classes['classes'])}: {of.link(f'qemu/classes-{branch}')}",
                     f"{mutants['noticed']} of {mutants['listed']}: {of.link(f'qemu/mutants{version}')}",
                     f"{fuzz['faults']:,}, {fuzz['failed']} rounds failed: {of.link(f'qemu/fuzz-{branch}')}",
                     all_of["sink_pushes"]["largest"], figure(all_of["sink_over_ordinary_hold_p50"])])
    return table(["branch", "classes", "mutants noticed", "faults fuzzed", "most pushes of a sink",
                  "sink over an ordinary hold, medians"], rows)


def verdicts(of):
    rows = []
    for linux, ending in (("6.1", ""), ("6.12", "-6.12")):
        for branch in ("535", "580", "595"):
            file = "qemu/verdict" if (linux, branch) == ("6.1", "535") else f"qemu/verdict-{branch}{ending}"
            runs = of.load(file)["runs"]
            played = {name for run in runs for name in run["classes_patched"].get("names", [])}
            rows.append([f"{linux}, {of.link(file)}", len(runs), len(played), sum(run["complaints"] for run in runs)])
    return table(["Linux, file", "runs", "different things played", "complaints"], rows)


def kernel(of):
    return "The kernel patch, on a model GPU in QEMU", f"""Nothing here is of a real GPU. Classes were played on the stock and
on the patched module; the neighbours die on the one and live on the other. Mutants take a hook or guard away; those that
are not noticed say why none can notice them.

{branches(of)}

Debug builds of the patched module under KASAN and lockdep. What is played has the loads and built-in tests in it;
complaints are those that are not on the list of what is allowed.

{verdicts(of)}"""
