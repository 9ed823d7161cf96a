// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "demo/parked_judge.h"
#include "demo/report.h"
#include "demo/table.h"
#include "demo/timeline.h"

namespace firebreak::demo {
namespace {

constexpr const char* style = R"(
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #1c2430; }
  h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
  table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #d7dde5; }
  pre { overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; } .no { color: #b3261e; font-weight: 600; } .yes { color: #1b6e3c; }
  svg text { font: 12px system-ui, sans-serif; fill: #1c2430; } svg { width: 100%; min-width: 760px; height: auto; display: block; }
  .scrolls { overflow-x: auto; } .verdict { font-size: 1.25rem; margin: .6rem 0; }
  @media print { body { margin: 0; } })";

std::string escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

constexpr double label_width = 130, width = 960, lane_height = 30, top = 30;
constexpr double half_a_label = 30;  // the last one of the axis is as far from the edge

/// A round number of milliseconds that gives at most ten grid lines.
double grid_ms(double span_ms) {
  double step = 1;
  for (int i = 0; span_ms / step > 10; ++i) step *= i % 3 == 1 ? 2.5 : 2;
  return step;
}

const char* colour_of(char letter) {
  switch (letter) {
    case '!':
      return "#b3261e";
    case 'P':
      return "#8a5a00";
    case 'K':
      return "#1b6e3c";
    default:
      return "#1c2430";
  }
}

std::string draw_lane(const Lane& lane, double y, const auto& x) {
  std::string svg = fmt::format("<text x='0' y='{:.1f}'>{}</text>", y + 4, escape(lane.name));
  svg +=
      fmt::format("<line x1='{:.2f}' x2='{:.2f}' y1='{:.1f}' y2='{:.1f}' stroke='#9fb2c8' stroke-width='6'/>",
                  x(lane.begin_ms), x(lane.end_ms), y, y);
  for (double step_ms : lane.steps_ms) {
    svg += fmt::format(
        "<line x1='{0:.2f}' x2='{0:.2f}' y1='{1:.1f}' y2='{2:.1f}' stroke='#2f6fb2' stroke-width='1'/>",
        x(step_ms), y - 6, y + 6);
  }
  for (const Mark& mark : lane.marks) {
    svg += fmt::format(
        "<g><title>{}</title><circle cx='{:.2f}' cy='{:.1f}' r='7' fill='{}'/><text x='{:.2f}' y='{:.1f}' "
        "text-anchor='middle' style='fill:#fff;font-size:10px'>{}</text></g>\n",
        escape(mark.text), x(mark.at_ms), y, colour_of(mark.letter), x(mark.at_ms), y + 3.5, mark.letter);
  }
  return svg;
}

std::string draw(const Timeline& timeline) {
  const double span_ms = std::max(timeline.end_ms - timeline.begin_ms, 1e-3);
  auto x = [&](double at_ms) {
    return label_width + (at_ms - timeline.begin_ms) / span_ms * (width - label_width - half_a_label);
  };
  const double height = top + lane_height * static_cast<double>(timeline.lanes.size()) + 10;
  std::string svg = "<div class='scrolls' tabindex='0'>";
  svg +=
      fmt::format("<svg viewBox='0 0 {} {:.0f}' role='img' aria-label='timeline of act 3'>\n", width, height);
  const double step = grid_ms(span_ms);
  for (double at = std::ceil(timeline.begin_ms / step) * step; at <= timeline.end_ms; at += step) {
    svg += fmt::format(
        "<line x1='{0:.2f}' x2='{0:.2f}' y1='{1}' y2='{2:.0f}' stroke='#e4e9ef'/><text x='{0:.2f}' y='14' "
        "text-anchor='middle'>{3:.0f} ms</text>\n",
        x(at), top - 10, height, at);
  }
  double y = top + lane_height / 2;
  for (const Lane& lane : timeline.lanes) {
    svg += draw_lane(lane, y, x) + "\n";
    y += lane_height;
  }
  return svg +
         "</svg></div>\n<p>Milliseconds after the faulting launch. Blue ticks: steps seen done. <b>!</b> "
         "fault, "
         "<b>P</b> promoted, "
         "<b>K</b> the standby's first kernel has completed, <b>X</b> dead.</p>\n";
}

/// A table that scrolls by itself where the screen is narrow.
std::string table_of(const std::string& rows) {
  return "<div class='scrolls' tabindex='0'><table>" + rows + "</table></div>\n";
}

/// "Passed: all 68 claims were observed".
std::string verdict_of(const std::vector<Check>& checks) {
  const auto observed = std::ranges::count_if(checks, &Check::observed);
  const bool is_passed = all_observed(checks);
  return fmt::format("<p class='verdict {}'>{}</p>\n", is_passed ? "yes" : "no",
                     is_passed ? fmt::format("Passed: all {} claims were observed", observed)
                               : fmt::format("Failed: {} of {} claims were not observed",
                                             static_cast<long>(checks.size()) - observed, checks.size()));
}

std::string claims(const std::vector<Check>& checks, bool observed) {
  std::string items;
  for (const Check& check : checks) {
    if (check.observed != observed) continue;
    items += fmt::format("<li class='{}'>{}{}</li>\n", observed ? "yes" : "no", escape(check.claim),
                         observed ? "" : " - not observed: " + escape(check.instead));
  }
  return items.empty() ? items : "<ul>\n" + items + "</ul>\n";
}

std::string recovery_rows(const Play& play) {
  std::string rows;
  for (const Recovery& recovery : play.recoveries) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{:.2f} ms ({})</td><td>{:.2f} ms</td><td>{:.2f} ms</td><td>{}</td></tr>\n",
        escape(recovery.tenant), recovery.detected_ms, escape(recovery.detected_by), recovery.promoted_ms,
        recovery.resumed_ms, recovery.steps_lost);
  }
  return rows;
}

std::string parked_rows(const ActRecord& act) {
  std::string rows;
  const auto add = [&](const std::string& fault, const std::string& who, const std::string& domain,
                       bool is_as_claimed, const std::string& fate) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td class='{}'>{}</td></tr>\n", escape(fault),
                        escape(who), escape(domain), is_as_claimed ? "yes" : "no", escape(fate));
  };
  for (const ParkedFault& fault : act.parked) {
    add(fault.fault, "rogue", fault.domain, is_rogue_alone_named(fault), fate_of_rogue(fault));
    for (const Neighbour& each : fault.neighbours)
      add("", each.name, each.domain, is_unharmed(each), fate_of(each));
    add("", fault.mover.program.name, fault.mover.program.domain, is_as_claimed(fault.mover),
        fate_of(fault.mover));
    add("", fault.newcomer.name, fault.newcomer.domain, is_unharmed(fault.newcomer), fate_of(fault.newcomer));
  }
  return rows;
}

}  // namespace

std::string to_html(const Play& play, const std::vector<Check>& checks) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
      "<meta name='viewport' content='width=device-width'><title>Firebreak demo: {0}</title>"
      "<style>{1}</style></head><body>\n<h1>Firebreak demo: {0}</h1>\n<p>{2} GPU, {3}</p>\n",
      escape(play.fault), style, escape(play.gpu), escape(play.date));
  page += verdict_of(checks) + claims(checks, false);
  page += fmt::format("<pre tabindex='0'>{}</pre>\n", escape(render_table(play)));
  if (!play.recoveries.empty()) {
    page += "<h2>Recovery</h2>\n" +
            table_of(
                "<tr><th>tenant</th><th>fault seen</th><th>promoted</th><th>first kernel</th>"
                "<th>committed steps lost</th></tr>\n" +
                recovery_rows(play));
  }
  if (play.acts.size() >= 3 && play.acts[2].rogue)
    page += "<h2>Act 3</h2>\n" + draw(timeline_of(play.acts[2]));
  for (const ActRecord& act : play.acts) {
    if (act.act != Act::Parked) continue;
    page +=
        "<h2>Act 4</h2>\n<p>Programs that know nothing of Firebreak, in the domain of a rogue that raises an "
        "exception of an SM: the domain is parked.</p>\n" +
        table_of("<tr><th>fault</th><th>who</th><th>domain</th><th>what became of it</th></tr>\n" +
                 parked_rows(act));
  }
  page += "<h2>Claims that were observed</h2>\n" + claims(checks, true);
  return page + "</body></html>\n";
}

}  // namespace firebreak::demo
