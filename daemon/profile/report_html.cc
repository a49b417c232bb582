// Headline, advice, source, kernels with their pictures, comparison; see report_html.h.
#include "daemon/profile/report_html.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "daemon/profile/advice.h"
#include "daemon/profile/html_charts.h"
#include "daemon/profile/html_text.h"

namespace kernelwright::profile {
namespace {

constexpr int kAround = 6;        // lines of context shown around those with cycles
constexpr size_t kMostRows = 40;  // of the comparison

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string Figure(const std::string& value, const std::string& what) {
  return "<div><b>" + Escape(value) + "</b><span>" + Escape(what) + "</span></div>";
}

class Page {
 public:
  Page(const HtmlPart& part, size_t index) : report_(part.report), comparison_(part.comparison), index_(index) {}

  std::string Section() {
    std::string html = "<section>" + Headline();
    if (comparison_) html += ComparisonPart();
    html += AdvicePart() + SourcePart() + KernelsPart();
    return html + "</section>\n";
  }

 private:
  // Ids of source rows; each section has its own.
  std::string Anchor(const std::string& file) const {
    size_t number = 0;
    for (size_t i = 0; i < report_.sources.size(); ++i) {
      if (report_.sources[i].path == file) number = i;
    }
    return "p" + std::to_string(index_) + "f" + std::to_string(number) + "L";
  }

  double Ms(double cycles) const { return cycles / report_.cycles_per_ms; }

  std::string Headline() const {
    std::string html = "<h2>" + Escape(report_.chip) + "</h2>";
    const cost::Estimate* estimate = report_.estimate();
    const cost::Evidence* evidence = nullptr;
    if (estimate != nullptr) {
      evidence = &estimate->evidence;
      html += "<div class=\"figures\">" +
              Figure(Time(estimate->milliseconds),
                     "estimated, " + Time(estimate->low_milliseconds) + " to " + Time(estimate->high_milliseconds));
      html += Figure(cost::ConfidenceName(estimate->confidence), "confidence");
      html += Figure(cost::BoundName(estimate->bound), "bound");
      if (estimate->roofline_fraction > 0) html += Figure(Percent(estimate->roofline_fraction), "of the roofline");
      html += Figure(Percent(estimate->dma_wait_share), "waiting for copies");
      html += Figure(Bytes(report_.totals.dma_bytes), "from and to HBM") + "</div>";
      for (const std::string& warning : estimate->warnings) html += "<p class=\"soft\">" + Escape(warning) + "</p>";
    } else {
      const auto& refusal = std::get<cost::Refusal>(report_.cost);
      evidence = &refusal.evidence;
      html += "<div class=\"card refusal\"><b>No time: " + Escape(refusal.reason) + "</b>";
      if (!refusal.instruction.empty()) html += "<pre>" + Escape(refusal.instruction.substr(0, 400)) + "</pre>";
      html +=
          "<p class=\"soft\">Below, each bundle of the schedule counts once: where the code is, not where the time "
          "goes. How often loops run, waits, traffic and steps are not known.</p></div>";
    }
    std::string versions;
    for (const auto& [name, version] : evidence->versions) {
      versions += (versions.empty() ? "" : ", ") + name + " " + version;
    }
    return html + "<p class=\"soft\">" + Escape(cost::EvidenceClassName(evidence->evidence_class)) + " by " +
           Escape(evidence->method) + " of the compiler's schedule; " + Escape(versions) + "</p>";
  }

  std::string AdvicePart() const {
    if (report_.advice.empty())
      return report_.static_counts ? "" : "<h2>Advice</h2><p class=\"soft\">No rule applies.</p>";
    std::string html = "<h2>Advice</h2>";
    for (const Advice& advice : report_.advice) {
      html += "<div class=\"card advice\"><span class=\"share\">about " + Percent(advice.share) +
              " of the time</span><h3>" + Escape(advice.title) + "</h3><p>" + Escape(advice.text) +
              "</p><p class=\"soft\">" + Escape(advice.kernel);
      for (const int line : advice.lines) {
        const std::string number = std::to_string(line);
        html += " · <a href=\"#" + Anchor(advice.file) + number + "\">" + Escape(FileName(advice.file)) + ":" + number +
                "</a>";
      }
      html += "</p></div>";
    }
    return html;
  }

  std::string SourcePart() const {
    std::string html;
    for (const SourceText& source : report_.sources) html += SourceTable(source);
    double none = 0;
    double elsewhere = 0;
    for (const LineProfile& line : report_.lines) {
      const bool known = std::any_of(report_.sources.begin(), report_.sources.end(),
                                     [&](const SourceText& source) { return source.path == line.file; });
      if (line.line == 0) none += line.share;
      if (line.line > 0 && !known) elsewhere += line.share;
    }
    html += "<p class=\"soft\">" + Percent(none) +
            " on no line: the pipeline's own work, waits for its copies, and what "
            "the compiler gives no place";
    if (elsewhere > 0) html += "; " + Percent(elsewhere) + " in files that are not shown";
    return html + ".</p>";
  }

  std::string SourceTable(const SourceText& source) const {
    std::map<int, const LineProfile*> lines;
    double most = 0;
    for (const LineProfile& line : report_.lines) {
      if (line.file != source.path || line.line <= 0) continue;
      lines[line.line] = &line;
      most = std::max(most, line.share);
    }
    if (lines.empty()) return "";
    // What advice points at is shown too, also where nothing was spent: the call that sets the blocks, say.
    std::set<int> points;
    for (const auto& [number, line] : lines) points.insert(number);
    for (const Advice& advice : report_.advice) {
      if (advice.file == source.path) points.insert(advice.lines.begin(), advice.lines.end());
    }
    std::string html =
        "<h2>" + Escape(FileName(source.path)) +
        "</h2><div class=\"card code\"><table><thead><tr><th "
        "class=\"n\">share</th><th class=\"n\">cycles</th><th class=\"n\">line</th><th></th></tr></thead>"
        "<tbody>";
    int number = 0;
    std::string_view rest = source.text;
    bool gap = false;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      const std::string_view text = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
      ++number;
      const auto near = points.lower_bound(number - kAround);
      if (near == points.end() || *near > number + kAround) {
        if (!gap) html += "<tr><td></td><td></td><td class=\"n\">…</td><td></td></tr>";
        gap = true;
        continue;
      }
      gap = false;
      const auto found = lines.find(number);
      const std::string id = Anchor(source.path) + std::to_string(number);
      if (found == lines.end()) {
        html += "<tr id=\"" + id + "\"><td></td><td></td><td class=\"n\">" + std::to_string(number) +
                "</td><td class=\"t\">" + Escape(text) + "</td></tr>";
        continue;
      }
      const LineProfile& line = *found->second;
      html += "<tr id=\"" + id + "\" style=\"background:rgba(var(--heat)," + Fixed(0.6 * line.share / most, 3) +
              ")\" title=\"" + Escape(Details(line)) + "\"><td class=\"n\">" + Percent(line.share) +
              "</td><td class=\"n\">" + Compact(line.cycles) + "</td><td class=\"n\">" + std::to_string(number) +
              "</td><td class=\"t\">" + Escape(text) + "</td></tr>";
    }
    return html + "</tbody></table></div>";
  }

  static std::string Details(const LineProfile& line) {
    std::string text;
    for (const auto& [unit, slots] : line.slots) text += unit + " " + Compact(slots) + ", ";
    text += "at most " + std::to_string(line.live_registers) + " registers live";
    if (line.casts > 0) text += ", casts " + Compact(line.casts) + (line.casts_inserted ? " (by the compiler)" : "");
    if (line.relayouts > 0) {
      text += ", moves across lanes " + Compact(line.relayouts) + (line.relayouts_inserted ? " (by the compiler)" : "");
    }
    if (line.spills > 0) text += ", spills and fills " + Compact(line.spills);
    if (line.dma_bytes > 0) text += ", copies " + Bytes(line.dma_bytes);
    if (line.dma_wait_cycles > 0) text += ", waits " + Compact(line.dma_wait_cycles) + " cycles";
    return text;
  }

  std::string KernelsPart() const {
    std::string html =
        "<h2>Kernels</h2><div class=\"card\"><table><thead><tr><th>name</th><th>kind</th><th "
        "class=\"n\">share</th><th class=\"n\">time</th><th>bound</th><th class=\"n\">steps</th><th "
        "class=\"n\">waits</th><th class=\"n\">traffic</th><th class=\"n\">headroom</th></tr></thead><tbody>";
    for (const KernelProfile& kernel : report_.kernels) {
      const bool timed = !report_.static_counts;
      html += "<tr><td><code>" + Escape(kernel.name) + "</code></td><td>" +
              (kernel.is_runtime  ? "runtime"
               : kernel.is_pallas ? "Pallas"
                                  : "fusion") +
              "</td><td class=\"n\">" + Percent(kernel.share) + "</td><td class=\"n\">" +
              (timed ? Time(Ms(kernel.cycles)) : "–") + "</td><td>" + cost::BoundName(kernel.bound) +
              "</td><td class=\"n\">" +
              (kernel.grid_steps > 0 ? Compact(static_cast<double>(kernel.grid_steps)) : "–") +
              "</td><td class=\"n\">" +
              (timed && kernel.cycles > 0 ? Percent(kernel.dma_wait_cycles / kernel.cycles) : "–") +
              "</td><td class=\"n\">" + (timed ? Bytes(kernel.dma_bytes) : "–") + "</td><td class=\"n\">" +
              (kernel.headroom > 0 ? Fixed(kernel.headroom, 2) + "x" : "–") + "</td></tr>";
    }
    html += "</tbody></table></div>";
    for (const KernelProfile& kernel : report_.kernels) {
      if (!kernel.is_runtime) html += KernelDetail(kernel);
    }
    return html;
  }

  std::string KernelDetail(const KernelProfile& kernel) const {
    std::string html = "<h3><code>" + Escape(kernel.name) + "</code></h3><div class=\"card\">";
    if (kernel.step) {
      const Step& step = *kernel.step;
      html += "<p>A settled step: " + Compact(step.cycles) + " cycles (" + Time(Ms(step.cycles)) + "), of them " +
              Compact(step.busy_cycles) + " with instructions and " + Compact(step.wait_cycles) + " waiting; " +
              Bytes(step.dma_bytes) + " moved, which takes " + Compact(step.dma_cycles) + " cycles";
      if (step.mxu_cycles > 0) html += "; its products take the MXU " + Compact(step.mxu_cycles);
      html +=
          ". Bound: " + std::string(cost::BoundName(step.bound)) + ".</p>" + TimelineSvg(step, Anchor(report_.file));
    }
    if (kernel.roofline) html += RooflineSvg(*kernel.roofline, kernel.name);
    if (!kernel.vmem.regions.empty()) {
      html += "<p>VMEM: " + Bytes(static_cast<double>(kernel.vmem.total)) + " of " +
              Bytes(static_cast<double>(kernel.vmem.limit)) + " (the core has " +
              Bytes(static_cast<double>(kernel.vmem.physical)) + ")</p>" + VmemSvg(kernel.vmem) + VmemList(kernel.vmem);
    }
    html += "<p class=\"soft\">" + Compact(static_cast<double>(kernel.bundles)) + " bundles, at most " +
            std::to_string(kernel.live_registers) + " of " + std::to_string(kVectorRegisters) +
            " vector registers live, " + Compact(kernel.spills) + " spills and fills, " + Compact(kernel.casts) +
            " casts, " + Compact(kernel.relayouts) + " moves across lanes</p>";
    return html + "</div>";
  }

  static std::string VmemList(const VmemMap& vmem) {
    std::string html = "<table><tbody>";
    for (const VmemRegion& region : vmem.regions) {
      html += "<tr><td>" + Escape(region.what) + "</td><td><code>" + Escape(region.shape) + "</code></td><td>" +
              (region.buffers > 1 ? std::to_string(region.buffers) + " buffers" : "") + "</td><td class=\"n\">" +
              Bytes(static_cast<double>(region.bytes)) + "</td></tr>";
    }
    return html + "</tbody></table>";
  }

  std::string ComparisonPart() const {
    const Comparison& c = *comparison_;
    std::string html =
        "<h2>Against " + Escape(c.function) + " in " + Escape(FileName(c.file)) + " on " + Escape(c.chip) + "</h2>";
    if (c.ratio > 0) {
      html += "<p>" + Time(c.milliseconds) + " against " + Time(c.other_milliseconds) + ": <b class=\"" +
              (c.ratio >= 1 ? "faster" : "slower") + "\">" + Fixed(c.ratio, 2) + "x, " + Escape(c.verdict) +
              "</b> (estimated; the values of the two were not compared)</p>";
    } else {
      html += "<p>At least one of the two has no time.</p>";
    }
    html +=
        "<div class=\"card\"><table><thead><tr><th>kernel</th><th class=\"n\">time</th><th class=\"n\">against</th><th "
        "class=\"n\">spills</th><th class=\"n\">against</th><th class=\"n\">traffic</th><th "
        "class=\"n\">against</th></tr>"
        "</thead><tbody>";
    for (const KernelDifference& kernel : c.kernels) {
      html += "<tr><td><code>" + Escape(kernel.name.empty() ? kernel.other_name : kernel.name) +
              "</code></td><td class=\"n\">" + (kernel.name.empty() ? "–" : Time(kernel.milliseconds)) +
              "</td><td class=\"n\">" + (kernel.other_name.empty() ? "–" : Time(kernel.other_milliseconds)) +
              "</td><td class=\"n\">" + Compact(kernel.spills) + "</td><td class=\"n\">" +
              Compact(kernel.other_spills) + "</td><td class=\"n\">" + Bytes(kernel.dma_bytes) +
              "</td><td class=\"n\">" + Bytes(kernel.other_dma_bytes) + "</td></tr>";
    }
    html +=
        "</tbody></table></div><div class=\"card code\"><table><thead><tr><th class=\"n\">time</th><th "
        "class=\"n\">against</th><th class=\"n\">line</th><th class=\"n\">against</th><th></th></tr></thead><tbody>";
    size_t rows = 0;
    for (const LineDifference& line : c.lines) {
      if (++rows > kMostRows) break;
      html += "<tr><td class=\"n\">" + Time(line.milliseconds) + "</td><td class=\"n\">" +
              Time(line.other_milliseconds) + "</td><td class=\"n\">" +
              (line.line > 0 ? std::to_string(line.line) : "–") + "</td><td class=\"n\">" +
              (line.other_line > 0 ? std::to_string(line.other_line) : "–") + "</td><td class=\"t\">" +
              Escape(line.line == 0 && line.other_line == 0 ? "(no line)" : line.text) + "</td></tr>";
    }
    return html + "</tbody></table></div>";
  }

  const ProfileReport& report_;
  const std::optional<Comparison>& comparison_;
  const size_t index_;
};

}  // namespace

std::string ReportToHtml(const std::vector<HtmlPart>& parts) {
  const ProfileReport& first = parts.front().report;
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>" +
      Escape(first.function) + " – profile</title><style>" + kStyle + "</style></head><body><main><h1>" +
      Escape(first.function) + "</h1><p class=\"soft\">" + Escape(first.file) + " · " + Escape(first.inputs) + "</p>\n";
  for (size_t i = 0; i < parts.size(); ++i) html += Page(parts[i], i).Section();
  return html + "</main><script>" + kScript + "</script></body></html>\n";
}

}  // namespace kernelwright::profile
