// Reports over golden dumps: those of the cost model and this folder's own, which are of testdata/kernel.py.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/cost/cost_test_util.h"
#include "daemon/cost/detailed_cost.h"
#include "daemon/cost/kernel_test_util.h"
#include "daemon/profile/build_report.h"
#include "daemon/profile/step.h"

namespace kernelwright::profile {

inline cost::Dumps Dumps(const std::string& chip, const std::string& program) {
  const auto own = std::filesystem::path(KW_SOURCE_DIR) / "daemon/profile/testdata" / chip / program;
  if (!std::filesystem::exists(own)) return cost::GoldenDumps(chip, program);
  cost::Dumps dumps;
  const auto late = std::filesystem::path(KW_SOURCE_DIR) / "daemon/cost/testdata" / chip / "late";
  for (const auto& folder : {own, late}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      dumps.push_back({entry.path().filename().string(), cost::ReadText(entry.path())});
    }
  }
  std::sort(dumps.begin(), dumps.end(), [](const cost::Dump& a, const cost::Dump& b) { return a.name < b.name; });
  return dumps;
}

inline cost::DetailedCost Detail(const std::string& chip, const std::string& program, const cost::Work& work = {}) {
  return cost::EstimateInDetail(Dumps(chip, program), cost::ShippedChip(chip), work, {{"libtpu", "0.0.52"}},
                                kRecordedRounds);
}

inline SourceText KernelSource() {
  return {"kernel.py", cost::ReadText(std::filesystem::path(KW_SOURCE_DIR) / "daemon/profile/testdata/kernel.py")};
}

// A traced program that is nothing but this kernel.
inline Program ProgramOf(PallasCall call) {
  Program program;
  Operation operation;
  operation.name = "pallas_call";
  operation.pallas.push_back(std::move(call));
  program.main.operations.push_back(std::move(operation));
  return program;
}

inline ProfileReport Report(const std::string& chip, const std::string& program, const Program* traced = nullptr,
                            const cost::Work& work = {}) {
  ProfileInput input;
  input.file = "kernel.py";
  input.function = program;
  input.inputs = "x=f32[8,128]";
  input.program = traced;
  input.work = work;
  input.sources = {KernelSource()};
  return BuildReport(Detail(chip, program, work), cost::ShippedChip(chip), input);
}

inline const KernelProfile* FindKernel(const ProfileReport& report, const std::string& name) {
  for (const KernelProfile& kernel : report.kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

inline const LineProfile* FindLine(const ProfileReport& report, int number) {
  for (const LineProfile& line : report.lines) {
    if (line.line == number) return &line;
  }
  return nullptr;
}

inline const Advice* FindAdvice(const ProfileReport& report, const std::string& id) {
  for (const Advice& advice : report.advice) {
    if (advice.id == id) return &advice;
  }
  return nullptr;
}

}  // namespace kernelwright::profile
