// Field names are a contract (docs/json.md): within a schema version they are only added. Unknown values are null.
#include "daemon/profile/report_json.h"

#include <cmath>

namespace kernelwright::profile {
namespace {

using nlohmann::json;

// Six significant digits: enough for any reader, and equal on every machine. Cycles of lines stay exact.
double Round(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

json Positive(double value) { return value > 0 ? json(Round(value)) : json(); }

json Slots(const std::map<std::string, double>& slots) {
  json object = json::object();
  for (const auto& [unit, count] : slots) object[unit] = Round(count);
  return object;
}

json LineToJson(const LineProfile& line) {
  return {{"file", line.file},
          {"line", line.line},
          {"source", line.text},
          {"cycles", line.cycles},
          {"share", Round(line.share)},
          {"slots", Slots(line.slots)},
          {"spills", Round(line.spills)},
          {"fills", Round(line.fills)},
          {"dma_bytes", Round(line.dma_bytes)},
          {"dma_wait_cycles", Round(line.dma_wait_cycles)},
          {"casts", Round(line.casts)},
          {"casts_inserted", line.casts_inserted},
          {"relayouts", Round(line.relayouts)},
          {"relayouts_inserted", line.relayouts_inserted},
          {"live_registers", line.live_registers}};
}

json VmemToJson(const VmemMap& vmem) {
  json regions = json::array();
  for (const VmemRegion& region : vmem.regions) {
    regions.push_back({{"kind", region.kind},
                       {"what", region.what},
                       {"shape", region.shape},
                       {"bytes", region.bytes},
                       {"buffers", region.buffers}});
  }
  return {{"regions", regions}, {"total", vmem.total}, {"limit", vmem.limit}, {"physical", vmem.physical}};
}

json RooflineToJson(const std::optional<Roofline>& roofline) {
  if (!roofline) return nullptr;
  return {{"flops", Round(roofline->flops)},
          {"bytes", Round(roofline->bytes)},
          {"intensity", Round(roofline->intensity)},
          {"achieved_flops", Round(roofline->achieved)},
          {"peak_flops", Round(roofline->peak)},
          {"bandwidth", Round(roofline->bandwidth)},
          {"attainable_share", Round(roofline->attainable_share)},
          {"dtype", roofline->dtype}};
}

json StepToJson(const std::optional<Step>& step) {
  if (!step) return nullptr;
  json units = json::object();
  for (const auto& [unit, busy] : step->timeline.units) {
    json slices = json::array();
    for (const double part : busy) slices.push_back(std::round(part * 1000) / 1000);
    units[unit] = std::move(slices);
  }
  json copies = json::array();
  for (const Timeline::Copy& copy : step->timeline.copies) {
    copies.push_back({{"start", Round(copy.start)}, {"done", Round(copy.done)}, {"bytes", Round(copy.bytes)}});
  }
  return {{"cycles", Round(step->cycles)},
          {"busy_cycles", Round(step->busy_cycles)},
          {"wait_cycles", Round(step->wait_cycles)},
          {"dma_bytes", Round(step->dma_bytes)},
          {"dma_cycles", Round(step->dma_cycles)},
          {"products", Round(step->products)},
          {"mxu_cycles", Round(step->mxu_cycles)},
          {"units", Slots(step->units)},
          {"scalar_only_share", Round(step->scalar_only_share)},
          {"bound", cost::BoundName(step->bound)},
          {"timeline",
           {{"cycles", Round(step->timeline.cycles)},
            {"steps", step->timeline.steps},
            {"slice_cycles", Round(step->timeline.slice_cycles)},
            {"units", units},
            {"lines", step->timeline.lines},
            {"copies", copies}}}};
}

json KernelToJson(const KernelProfile& kernel, double cycles_per_ms, bool timed) {
  return {{"name", kernel.name},
          {"kind", kernel.is_runtime  ? "runtime"
                   : kernel.is_pallas ? "pallas"
                                      : "fusion"},
          {"file", kernel.file},
          {"line", kernel.line},
          {"bundles", kernel.bundles},
          {"calls", timed ? json(kernel.calls) : json()},
          {"cycles", kernel.cycles},
          {"milliseconds", timed ? json(Round(kernel.cycles / cycles_per_ms)) : json()},
          {"share", Round(kernel.share)},
          {"dma_wait_cycles", timed ? json(Round(kernel.dma_wait_cycles)) : json()},
          {"dma_bytes", timed ? json(Round(kernel.dma_bytes)) : json()},
          {"spills", Round(kernel.spills)},
          {"casts", Round(kernel.casts)},
          {"relayouts", Round(kernel.relayouts)},
          {"products", Round(kernel.products)},
          {"f32_products", Round(kernel.f32_products)},
          {"mxu_added_cycles", Round(kernel.mxu_added_cycles)},
          {"loop_iterations", timed ? json(kernel.loop_iterations) : json()},
          {"live_registers", kernel.live_registers},
          {"bound", cost::BoundName(kernel.bound)},
          {"grid", kernel.grid},
          {"grid_steps", kernel.grid_steps > 0 ? json(kernel.grid_steps) : json()},
          {"vmem", VmemToJson(kernel.vmem)},
          {"step", StepToJson(kernel.step)},
          {"roofline", RooflineToJson(kernel.roofline)},
          {"floor_cycles", Positive(kernel.floor_cycles)},
          {"headroom", Positive(kernel.headroom)}};
}

json AdviceToJson(const Advice& advice) {
  json evidence = json::object();
  for (const auto& [name, value] : advice.evidence) evidence[name] = Round(value);
  return {{"id", advice.id},       {"kernel", advice.kernel}, {"file", advice.file},          {"lines", advice.lines},
          {"title", advice.title}, {"text", advice.text},     {"share", Round(advice.share)}, {"evidence", evidence}};
}

json EvidenceToJson(const cost::Evidence& evidence) {
  return {{"class", cost::EvidenceClassName(evidence.evidence_class)},
          {"method", evidence.method},
          {"chip", evidence.chip},
          {"versions", evidence.versions}};
}

void AddCost(const ProfileReport& report, json* object) {
  json& out = *object;
  for (const char* name : {"estimate_ms", "interval", "confidence", "refusal", "bound", "roofline_fraction", "floor_ms",
                           "dma_wait_share"}) {
    out[name] = nullptr;
  }
  out["warnings"] = json::array();
  if (const auto* refusal = std::get_if<cost::Refusal>(&report.cost)) {
    out["refusal"] = {{"reason", refusal->reason}, {"instruction", refusal->instruction}};
    out["evidence"] = EvidenceToJson(refusal->evidence);
    return;
  }
  const cost::Estimate& estimate = *report.estimate();
  out["estimate_ms"] = Round(estimate.milliseconds);
  out["interval"] = {Round(estimate.low_milliseconds), Round(estimate.high_milliseconds)};
  out["confidence"] = cost::ConfidenceName(estimate.confidence);
  out["bound"] = cost::BoundName(estimate.bound);
  out["roofline_fraction"] = Positive(estimate.roofline_fraction);
  out["floor_ms"] = Positive(estimate.floor_milliseconds);
  out["dma_wait_share"] = Round(estimate.dma_wait_share);
  out["warnings"] = estimate.warnings;
  json evidence = EvidenceToJson(estimate.evidence);
  evidence["interval"] = out["interval"];
  evidence["confidence"] = out["confidence"];
  out["evidence"] = std::move(evidence);
}

}  // namespace

json ReportToJson(const ProfileReport& report) {
  const bool timed = !report.static_counts;
  json out = {{"chip", report.chip}, {"counts", timed ? "executed" : "static"}};
  AddCost(report, &out);
  out["lines"] = json::array();
  for (const LineProfile& line : report.lines) out["lines"].push_back(LineToJson(line));
  out["kernels"] = json::array();
  for (const KernelProfile& kernel : report.kernels) {
    out["kernels"].push_back(KernelToJson(kernel, report.cycles_per_ms, timed));
  }
  out["totals"] = {{"cycles", report.totals.cycles},
                   {"attributed_cycles", report.totals.attributed_cycles},
                   {"dma_bytes", timed ? json(Round(report.totals.dma_bytes)) : json()},
                   {"dma_wait_cycles", timed ? json(Round(report.totals.dma_wait_cycles)) : json()},
                   {"spills", Round(report.totals.spills)},
                   {"casts", Round(report.totals.casts)},
                   {"relayouts", Round(report.totals.relayouts)},
                   {"slots", Slots(report.totals.slots)}};
  out["roofline"] = RooflineToJson(report.roofline);
  out["advice"] = json::array();
  for (const Advice& advice : report.advice) out["advice"].push_back(AdviceToJson(advice));
  return out;
}

json ComparisonToJson(const Comparison& comparison) {
  json lines = json::array();
  for (const LineDifference& line : comparison.lines) {
    lines.push_back({{"file", line.file},
                     {"line", line.file.empty() && line.other_line > 0 ? json() : json(line.line)},
                     {"against_file", line.other_file},
                     {"against_line", line.other_file.empty() && line.line > 0 ? json() : json(line.other_line)},
                     {"source", line.text},
                     {"cycles", line.cycles},
                     {"against_cycles", line.other_cycles},
                     {"milliseconds", Round(line.milliseconds)},
                     {"against_milliseconds", Round(line.other_milliseconds)}});
  }
  json kernels = json::array();
  for (const KernelDifference& kernel : comparison.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"against_name", kernel.other_name},
                       {"cycles", kernel.cycles},
                       {"against_cycles", kernel.other_cycles},
                       {"milliseconds", Round(kernel.milliseconds)},
                       {"against_milliseconds", Round(kernel.other_milliseconds)},
                       {"dma_bytes", Round(kernel.dma_bytes)},
                       {"against_dma_bytes", Round(kernel.other_dma_bytes)},
                       {"spills", Round(kernel.spills)},
                       {"against_spills", Round(kernel.other_spills)},
                       {"dma_wait_cycles", Round(kernel.dma_wait_cycles)},
                       {"against_dma_wait_cycles", Round(kernel.other_dma_wait_cycles)}});
  }
  return {{"file", comparison.file},
          {"function", comparison.function},
          {"chip", comparison.chip},
          {"estimate_ms", Positive(comparison.milliseconds)},
          {"against_estimate_ms", Positive(comparison.other_milliseconds)},
          {"ratio", Positive(comparison.ratio)},
          {"verdict", comparison.verdict.empty() ? json() : json(comparison.verdict)},
          {"lines", lines},
          {"kernels", kernels}};
}

}  // namespace kernelwright::profile
