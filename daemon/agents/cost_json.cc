// The mapping between cost values and the JSON of profile.proto, field by field.
#include "daemon/agents/cost_json.h"

#include <array>
#include <utility>

namespace kernelwright::agents {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<cost::EvidenceClass, const char*>, 4> kClasses = {{
    {cost::EvidenceClass::kCompiled, "COMPILED"},
    {cost::EvidenceClass::kChecked, "CHECKED"},
    {cost::EvidenceClass::kEstimated, "ESTIMATED"},
    {cost::EvidenceClass::kMeasured, "MEASURED"},
}};

cost::Bound BoundFromName(const std::string& name) {
  for (cost::Bound bound : {cost::Bound::kCompute, cost::Bound::kMemory, cost::Bound::kLatency, cost::Bound::kVector,
                            cost::Bound::kScalar}) {
    if (name == cost::BoundName(bound)) return bound;
  }
  return cost::Bound::kUnknown;
}

cost::Confidence ConfidenceFromName(const std::string& name) {
  for (cost::Confidence confidence : {cost::Confidence::kMedium, cost::Confidence::kHigh}) {
    if (name == cost::ConfidenceName(confidence)) return confidence;
  }
  return cost::Confidence::kLow;
}

cost::Evidence EvidenceFromJson(const json& value) {
  cost::Evidence evidence;
  const std::string name = value.at("evidence_class");
  for (const auto& [evidence_class, text] : kClasses) {
    if (name == text) evidence.evidence_class = evidence_class;
  }
  evidence.chip = value.at("chip");
  evidence.versions = value.at("versions").get<std::map<std::string, std::string>>();
  evidence.method = value.at("method");
  return evidence;
}

json KernelToJson(const cost::KernelCost& kernel) {
  return {{"name", kernel.name},
          {"bundles", kernel.bundles},
          {"calls", kernel.calls},
          {"cycles", kernel.cycles},
          {"dma_wait_cycles", kernel.dma_wait_cycles},
          {"dma_bytes", kernel.dma_bytes},
          {"loop_iterations", kernel.loop_iterations},
          {"bound", cost::BoundName(kernel.bound)}};
}

json LineToJson(const cost::LineCost& line) {
  return {{"file", line.file},   {"line", line.line},     {"cycles", line.cycles},
          {"slots", line.slots}, {"spills", line.spills}, {"dma_bytes", line.dma_bytes}};
}

cost::Estimate EstimateFromJson(const json& value) {
  cost::Estimate estimate;
  estimate.milliseconds = value.at("milliseconds");
  estimate.low_milliseconds = value.at("low_milliseconds");
  estimate.high_milliseconds = value.at("high_milliseconds");
  estimate.confidence = ConfidenceFromName(value.at("confidence"));
  estimate.evidence = EvidenceFromJson(value.at("evidence"));
  estimate.bound = BoundFromName(value.at("bound"));
  estimate.floor_milliseconds = value.at("floor_milliseconds");
  estimate.roofline_fraction = value.at("roofline_fraction");
  estimate.dma_bytes = value.at("dma_bytes");
  estimate.total_cycles = value.at("total_cycles");
  for (const json& entry : value.at("kernels")) {
    estimate.kernels.push_back({entry.at("name"), entry.at("bundles"), entry.at("calls"), entry.at("cycles"),
                                entry.at("dma_wait_cycles"), entry.at("dma_bytes"), entry.at("loop_iterations"),
                                BoundFromName(entry.at("bound"))});
  }
  for (const json& entry : value.value("lines", json::array())) {
    estimate.lines.push_back({entry.at("file"), entry.at("line"), entry.at("cycles"),
                              entry.at("slots").get<std::map<std::string, double>>(), entry.at("spills"),
                              entry.at("dma_bytes")});
  }
  estimate.warnings = value.at("warnings").get<std::vector<std::string>>();
  return estimate;
}

}  // namespace

json EvidenceToJson(const cost::Evidence& evidence) {
  const char* name = "ESTIMATED";
  for (const auto& [evidence_class, text] : kClasses) {
    if (evidence_class == evidence.evidence_class) name = text;
  }
  return {
      {"evidence_class", name}, {"chip", evidence.chip}, {"versions", evidence.versions}, {"method", evidence.method}};
}

json CostToJson(const cost::CostResult& result, bool with_lines) {
  if (const auto* refusal = std::get_if<cost::Refusal>(&result)) {
    return {{"refusal",
             {{"reason", refusal->reason},
              {"instruction", refusal->instruction},
              {"evidence", EvidenceToJson(refusal->evidence)}}}};
  }
  const auto& estimate = std::get<cost::Estimate>(result);
  json kernels = json::array();
  for (const cost::KernelCost& kernel : estimate.kernels) kernels.push_back(KernelToJson(kernel));
  json value = {{"milliseconds", estimate.milliseconds},
                {"low_milliseconds", estimate.low_milliseconds},
                {"high_milliseconds", estimate.high_milliseconds},
                {"confidence", cost::ConfidenceName(estimate.confidence)},
                {"evidence", EvidenceToJson(estimate.evidence)},
                {"bound", cost::BoundName(estimate.bound)},
                {"floor_milliseconds", estimate.floor_milliseconds},
                {"roofline_fraction", estimate.roofline_fraction},
                {"dma_bytes", estimate.dma_bytes},
                {"total_cycles", estimate.total_cycles},
                {"kernels", kernels},
                {"warnings", estimate.warnings}};
  if (with_lines) {
    value["lines"] = json::array();
    for (const cost::LineCost& line : estimate.lines) value["lines"].push_back(LineToJson(line));
  }
  return {{"estimate", value}};
}

Expected<cost::CostResult> CostFromJson(const json& value) {
  try {
    if (value.contains("estimate")) return cost::CostResult(EstimateFromJson(value.at("estimate")));
    const json& refusal = value.at("refusal");
    return cost::CostResult(
        cost::Refusal{refusal.at("reason"), refusal.at("instruction"), EvidenceFromJson(refusal.at("evidence"))});
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kInternal, std::string("a stored cost cannot be read: ") + error.what(), "store");
  }
}

}  // namespace kernelwright::agents
