# SPDX-License-Identifier: Apache-2.0
"""The README's picture: who goes on after a program's use of freed memory, under stock MPS and with Firebreak."""
from results import figure, median

LEFT, WIDTH, BAR = 130, 520, 18
FIRST_MS, LAST_MS = -60, 260
RED, BLUE = "#c0392b", "#6b8fb5"


def x(ms):
    return LEFT + WIDTH * (ms - FIRST_MS) / (LAST_MS - FIRST_MS)


def kind_of(summary, name):
    return next(each for each in summary["kinds"] if each["kind"] == name)


def lane(top, title, bars):
    parts = [f'<text x="{LEFT + WIDTH + 10}" y="{top + 42}">{title}</text>',
             f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="84" fill="none" stroke="#ddd"/>']
    for number, (who, color, end, text) in enumerate(bars):
        y = top + 8 + number * 26
        until = min(LAST_MS, end)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{who}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{x(until) - LEFT:.1f}" height="{BAR}" fill="{color}"/>')
        inside = end > LAST_MS
        place = f'x="{x(until) + 6:.1f}" fill="{RED}"'
        if inside:
            place = f'x="{x(until) - 8:.1f}" text-anchor="end" fill="white"'
        parts.append(f'<text {place} y="{y + 13}">{text}</text>')
    return parts


def picture(of):
    stock = kind_of(of.load("h100/characterization")["summary"], "use-after-free")
    contained = kind_of(of.load("h100/containment")["summary"], "use-after-free")
    falls = stock["signal_ms"]["cuda_error"]["p50"]
    co_client_falls = stock["signal_ms"]["cuda_error_co_client"]["p50"]
    told = min(each["p50"] for each in contained["signal_ms"].values())
    ended = told + median(of.load("h100/stray-end")["report_to_end_ms"])
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="760" height="270" viewBox="0 0 760 270" '
             'font-family="sans-serif" font-size="12">',
             '<rect width="760" height="270" fill="white"/>']

    def lives(who, summary, place):
        pause = figure(summary["stall_ms"][place]["p50"], 2)
        return who, BLUE, LAST_MS + 1, f"goes on; stands still for {pause} ms"

    end = f"✕ told after {figure(told, 2)} ms, ended after {figure(ended, 2)} ms"
    lines += lane(14, "stock MPS", [("the culprit", RED, falls, "✕ ended"), ("in its domain", BLUE, co_client_falls, "✕ ended"),
                                    lives("in another one", stock, "other_domain")])
    lines += lane(118, "Firebreak", [("the culprit", RED, ended, end), lives("in its domain", contained, "co_client"),
                                     lives("in another one", contained, "other_domain")])
    lines.append(f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="14" y2="202" stroke="{RED}" stroke-dasharray="3,3"/>')
    for tick in range(-50, LAST_MS + 1, 50):
        lines.append(f'<text x="{x(tick):.1f}" y="218" text-anchor="middle" fill="#666">{tick}</text>')
    lines.append(f'<text x="{LEFT + WIDTH / 2}" y="236" text-anchor="middle">'
                 'ms after the culprit used freed memory</text>')
    machine = of.load("h100/containment")["machine"]
    lines.append(f'<text x="10" y="260" fill="#666" font-size="11">{machine["gpu"]}, driver {machine["driver"]}; medians of '
                 'results/h100: characterization, containment, stray-end</text>')
    return "\n".join([*lines, "</svg>", ""])
