// Random values of the types that cross the worker's pipe, and a printed form that shows every field, so that two
// values are equal when their prints are. For the round-trip tests.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "daemon/agents/toolchain.h"

namespace kernelwright::worker {

class RandomValues {
 public:
  explicit RandomValues(uint32_t seed) : engine_(seed) {}

  Program AProgram();
  kernels::InputSpec AnInput();
  agents::TraceRequest ATraceRequest();
  agents::CompileRequest ACompileRequest();
  agents::JudgeRequest AJudgeRequest();
  agents::TraceReport ATraceReport();
  agents::CompileReport ACompileReport();
  agents::JudgeReport AJudgeReport();
  agents::ProbeReport AProbeReport();

 private:
  int Number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool Coin() { return Number(0, 1) == 1; }
  uint64_t Big() { return std::uniform_int_distribution<uint64_t>()(engine_); }
  double Real() { return std::uniform_real_distribution<double>(-1e9, 1e9)(engine_); }
  std::string Text();   // UTF-8
  std::string Bytes();  // anything
  template <typename Make>
  auto Some(Make make, int most = 3) {
    std::vector<decltype(make())> values;
    for (int i = Number(0, most); i > 0; --i) values.push_back(make());
    return values;
  }
  std::vector<std::string> Texts() {
    return Some([this] { return Text(); });
  }

  SourceSpan ASpan();
  TensorType AType();
  GraphValue AValue();
  Operand AnOperand();
  Attribute AnAttribute();
  Operation AnOperation(int depth);
  Graph AGraph(int depth);
  PallasCall ACall(int depth);
  agents::Versions SomeVersions();
  agents::Source ASource();
  agents::Limits SomeLimits();
  CodeError AnError();
  agents::Artefact AnArtefact();
  bool Finished(agents::JobReport& report);  // fills the common part; whether a payload belongs to it

  std::mt19937 engine_;
};

std::string Print(const Program& program);
std::string Print(const agents::TraceRequest& request);
std::string Print(const agents::CompileRequest& request);
std::string Print(const agents::JudgeRequest& request);
std::string Print(const agents::TraceReport& report);
std::string Print(const agents::CompileReport& report);
std::string Print(const agents::JudgeReport& report);
std::string Print(const agents::ProbeReport& report);

}  // namespace kernelwright::worker
