#include "daemon/agents/profile_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "daemon/base/files.h"
#include "daemon/base/gzip.h"
#include "daemon/cost/cost_test_util.h"

namespace kernelwright::agents {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Answers traces with an empty program and compiles with golden dumps, by chip.
class ScriptedWorker : public Toolchain {
 public:
  std::string dumps = "mms";
  std::map<std::string, CodeError> compile_errors;  // by chip
  JobOutcome outcome = JobOutcome::kDone;           // of compiles
  int compiles = 0;
  int traces = 0;

  const WorkerIdentity& identity() const override { return identity_; }
  Expected<TraceReport> Trace(const TraceRequest& request, std::stop_token) override {
    ++traces;
    TraceReport report;
    report.inputs = request.inputs;
    if (request.want_program) report.program.emplace();
    for (const std::string& chip : request.chips) report.artefacts.push_back({chip, "x", "x", std::nullopt});
    return report;
  }
  Expected<CompileReport> Compile(const CompileRequest& request, std::stop_token) override {
    ++compiles;
    CompileReport report;
    report.outcome = outcome;
    report.detail = "said so";
    const std::string& chip = request.artefact.chip;
    if (const auto error = compile_errors.find(chip); error != compile_errors.end()) report.error = error->second;
    if (!report.error && outcome == JobOutcome::kDone) {
      for (const cost::Dump& dump : cost::GoldenDumps(chip, dumps)) {
        report.dumps.push_back({dump.name, *GzipCompress(dump.text, 1)});
      }
    }
    report.versions = {{"libtpu", "0.0.52"}};
    return report;
  }
  Expected<JudgeReport> Judge(const JudgeRequest&, std::stop_token) override { return JudgeReport(); }
  Expected<ProbeReport> Probe(const std::vector<std::string>&, const Limits&, std::stop_token) override {
    return ProbeReport();
  }

 private:
  WorkerIdentity identity_;
};

class OneWorker : public ToolchainProvider {
 public:
  explicit OneWorker(std::shared_ptr<Toolchain> worker) : worker_(std::move(worker)) {}
  Expected<std::shared_ptr<Toolchain>> Get(const ToolchainOptions&, std::stop_token) override { return worker_; }
  std::vector<std::string> Describe() const override { return {}; }
  uint32_t QueuedJobs() const override { return 0; }
  void Shutdown() override {}

 private:
  std::shared_ptr<Toolchain> worker_;
};

class MemoryCache : public BlobCache {
 public:
  std::optional<std::string> Get(const std::string& key) override {
    const auto found = blobs_.find(key);
    return found == blobs_.end() ? std::nullopt : std::optional(found->second);
  }
  void Put(const std::string& key, const std::string& blob) override { blobs_[key] = blob; }

 private:
  std::map<std::string, std::string> blobs_;
};

class ProfileRunTest : public ::testing::Test {
 protected:
  ProfileRunTest() : folder_(*TempFolder::Make()) {
    const std::string file = (folder_.path() / "kernel.py").string();
    EXPECT_TRUE(WriteFileAtomically(file, "# kernelwright: x=f32[8,128]\ndef f(x):\n    return x\n").ok());
    inputs_.request.file = file;
    inputs_.request.function = "f";
    inputs_.build = "test";
    inputs_.chips = {&cost::ShippedChip("v5e")};
  }

  json Run(int exit_code) {
    OneWorker provider(worker_);
    auto reply = RunProfile(inputs_, provider, &cache_, {});
    if (!reply) {
      ADD_FAILURE() << reply.error().ToString();
      return {};
    }
    EXPECT_EQ(reply->exit_code, exit_code);
    html_ = reply->html;
    return json::parse(reply->result_json);
  }

  TempFolder folder_;
  std::shared_ptr<ScriptedWorker> worker_ = std::make_shared<ScriptedWorker>();
  MemoryCache cache_;
  ProfileInputs inputs_;
  std::string html_;
};

TEST_F(ProfileRunTest, OneChipIsRepeatedAtTheTop) {
  inputs_.request.want_html = true;
  const json result = Run(0);
  EXPECT_EQ(result["command"], "profile");
  EXPECT_EQ(result["status"], "profiled");
  EXPECT_EQ(result["inputs_origin"], "comment");
  EXPECT_EQ(result["lines"], result["results"][0]["lines"]);
  EXPECT_EQ(result["evidence"]["versions"]["kernelwright"], "test");
  EXPECT_EQ(result["evidence"]["versions"]["libtpu"], "0.0.52");
  EXPECT_TRUE(result["against"].is_null());
  EXPECT_THAT(html_, HasSubstr("<!doctype html>"));
}

TEST_F(ProfileRunTest, ASecondProfileComesFromTheCache) {
  const json first = Run(0);
  const json second = Run(0);
  EXPECT_EQ(worker_->compiles, 1);
  EXPECT_EQ(first["lines"], second["lines"]);
  EXPECT_EQ(first["estimate_ms"], second["estimate_ms"]);
  EXPECT_EQ(first["evidence"], second["evidence"]);
}

TEST_F(ProfileRunTest, OneProfiledChipIsAResult) {
  inputs_.chips = {&cost::ShippedChip("v5e"), &cost::ShippedChip("v6e")};
  CodeError error;
  error.stage = "compile";
  error.type = "MosaicError";
  error.message = "cannot do that\nmore";
  error.frames = {{"k.py", 7, 3, 7, 9, "f"}};
  worker_->compile_errors["v6e"] = error;
  const json result = Run(0);
  EXPECT_FALSE(result.contains("lines"));
  EXPECT_EQ(result["results"][0]["status"], "profiled");
  const json& failed = result["results"][1];
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_EQ(failed["error"]["kind"], "user_code");
  EXPECT_EQ(failed["error"]["line"], 7);
  EXPECT_EQ(failed["error"]["where"], "k.py:7");
  EXPECT_EQ(failed["error"]["message"], "does not compile for v6e: cannot do that");
}

TEST_F(ProfileRunTest, NothingProfiledHasTheExitCodeOfItsReason) {
  CodeError error;
  error.message = "no";
  worker_->compile_errors["v5e"] = error;
  EXPECT_EQ(Run(1)["status"], "failed");
  worker_->compile_errors.clear();
  worker_->outcome = JobOutcome::kDeadline;
  const json late = Run(4);
  EXPECT_EQ(late["error"]["kind"], "limit");
  EXPECT_THAT(late["error"]["remedy"].get<std::string>(), HasSubstr("--timeout"));
  EXPECT_EQ(html_, "");
}

TEST_F(ProfileRunTest, ARefusedTimeIsAResult) {
  worker_->dumps = "when";
  const json result = Run(0);
  EXPECT_EQ(result["status"], "refused");
  EXPECT_TRUE(result["estimate_ms"].is_null());
  EXPECT_EQ(result["counts"], "static");
}

TEST_F(ProfileRunTest, AnotherChipIsComparedWith) {
  inputs_.against_chip = &cost::ShippedChip("v6e");
  const json result = Run(0);
  EXPECT_EQ(result["chip"], "v5e");
  EXPECT_EQ(result["against"]["chip"], "v6e");
  EXPECT_GT(result["against"]["ratio"].get<double>(), 0);
  EXPECT_EQ(worker_->compiles, 2);
}

TEST_F(ProfileRunTest, TheOtherVersionGetsTheSameInputs) {
  const std::string other = (folder_.path() / "other.py").string();
  ASSERT_TRUE(WriteFileAtomically(other, "# kernelwright: x=f32[99,128]\ndef g(x):\n    return x\n").ok());
  inputs_.request.against_file = other;
  inputs_.request.against_function = "g";
  const json result = Run(0);
  EXPECT_EQ(result["against"]["function"], "g");
  EXPECT_EQ(result["against"]["verdict"], "tie");
}

TEST_F(ProfileRunTest, WhatIsWrongWithTheFileIsAnError) {
  inputs_.request.function = "absent";
  OneWorker provider(worker_);
  const auto reply = RunProfile(inputs_, provider, &cache_, {});
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().ToString(), HasSubstr("absent"));
  EXPECT_EQ(worker_->compiles, 0);
}

}  // namespace
}  // namespace kernelwright::agents
