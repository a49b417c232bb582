// Property tests: random values survive the way to proto bytes and back, field by field; and the cases that a random
// value does not reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "daemon/worker/marshal_ir.h"
#include "daemon/worker/marshal_jobs.h"
#include "daemon/worker/testdata/random_values.h"

namespace kernelwright::worker {
namespace {

using ::testing::HasSubstr;

constexpr int kRounds = 200;

template <typename Proto>
Proto Reparsed(const Proto& proto) {
  Proto copy;
  EXPECT_TRUE(ParseMessage(proto.SerializeAsString(), copy));
  return copy;
}

TEST(Marshal, RandomProgramsSurvive) {
  for (uint32_t seed = 0; seed < kRounds; ++seed) {
    RandomValues random(seed);
    const Program program = random.AProgram();
    EXPECT_EQ(Print(FromProto(Reparsed(ToProto(program)))), Print(program)) << seed;
  }
}

TEST(Marshal, RandomInputsSurvive) {
  for (uint32_t seed = 0; seed < kRounds; ++seed) {
    RandomValues random(seed);
    const kernels::InputSpec input = random.AnInput();
    auto back = FromProto(Reparsed(ToProto(input)));
    ASSERT_TRUE(back.has_value()) << input.PathText();
    EXPECT_EQ(*back, input) << kernels::FormatInput(input);
  }
}

TEST(Marshal, RandomRequestsSurvive) {
  for (uint32_t seed = 0; seed < kRounds; ++seed) {
    RandomValues random(seed);
    const agents::TraceRequest trace = random.ATraceRequest();
    EXPECT_EQ(Print(*TraceRequestFromProto(Reparsed(ToProto(trace)))), Print(trace)) << seed;
    const agents::CompileRequest compile = random.ACompileRequest();
    EXPECT_EQ(Print(*CompileRequestFromProto(Reparsed(ToProto(compile)))), Print(compile)) << seed;
    const agents::JudgeRequest judge = random.AJudgeRequest();
    EXPECT_EQ(Print(*JudgeRequestFromProto(Reparsed(ToProto(judge)))), Print(judge)) << seed;
  }
}

TEST(Marshal, RandomReportsSurvive) {
  for (uint32_t seed = 0; seed < kRounds; ++seed) {
    RandomValues random(seed);
    const agents::TraceReport trace = random.ATraceReport();
    EXPECT_EQ(Print(*TraceReportFromProto(Reparsed(ToProto(trace)))), Print(trace)) << seed;
    const agents::CompileReport compile = random.ACompileReport();
    EXPECT_EQ(Print(*CompileReportFromProto(Reparsed(ToProto(compile)))), Print(compile)) << seed;
    const agents::JudgeReport judge = random.AJudgeReport();
    EXPECT_EQ(Print(*JudgeReportFromProto(Reparsed(ToProto(judge)))), Print(judge)) << seed;
    const agents::ProbeReport probe = random.AProbeReport();
    EXPECT_EQ(Print(*ProbeReportFromProto(Reparsed(ToProto(probe)))), Print(probe)) << seed;
  }
}

// A field that is added to the contract and forgotten here must not pass unnoticed: over all random values, each field
// of each message that crosses the pipe is set at least once.
class SeenFields {
 public:
  void Visit(const google::protobuf::Message& message) {
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    reflection.ListFields(message, &fields);
    for (const auto* field : fields) {
      seen_.insert(field->full_name());
      if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        Visit(reflection.GetMessage(message, field));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        Visit(reflection.GetRepeatedMessage(message, field, i));
      }
    }
  }
  // Fields below `type` that were never set.
  void Missing(const google::protobuf::Descriptor& type, std::set<std::string>& visited,
               std::vector<std::string>& missing) const {
    if (!visited.insert(type.full_name()).second) return;
    for (int i = 0; i < type.field_count(); ++i) {
      const google::protobuf::FieldDescriptor& field = *type.field(i);
      if (!seen_.contains(field.full_name())) missing.push_back(field.full_name());
      if (field.message_type() != nullptr) Missing(*field.message_type(), visited, missing);
    }
  }

 private:
  std::set<std::string> seen_;
};

TEST(Marshal, EveryFieldOfTheContractTravels) {
  SeenFields seen;
  for (uint32_t seed = 0; seed < kRounds; ++seed) {
    RandomValues random(seed);
    for (const v1::Job& job :
         {ToProto(random.ATraceRequest()), ToProto(random.ACompileRequest()), ToProto(random.AJudgeRequest()),
          ProbeToProto({"v5e"}, {.deadline = std::chrono::milliseconds(1)})}) {
      seen.Visit(job);
    }
    for (const v1::JobResult& result : {ToProto(random.ATraceReport()), ToProto(random.ACompileReport()),
                                        ToProto(random.AJudgeReport()), ToProto(random.AProbeReport())}) {
      seen.Visit(result);
    }
  }
  std::set<std::string> visited;
  std::vector<std::string> missing;
  seen.Missing(*v1::Job::descriptor(), visited, missing);
  seen.Missing(*v1::JobResult::descriptor(), visited, missing);
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

TEST(Marshal, DeeplyNestedGraphsAreRead) {
  Program program;
  Graph* graph = &program.main;
  for (int depth = 0; depth < 150; ++depth) {
    graph->operations.emplace_back();
    graph->operations[0].regions.emplace_back();
    graph->operations[0].region_names.emplace_back("jaxpr");
    graph = &graph->operations[0].regions[0];
  }
  graph->name = "innermost";
  EXPECT_EQ(Print(FromProto(Reparsed(ToProto(program)))), Print(program));
}

TEST(Marshal, AnUnfinishedJobHasNoPayload) {
  v1::JobResult result;
  result.set_outcome(v1::JobResult::MEMORY);
  result.set_detail("8 GiB were not enough");
  result.set_role("candidate");
  result.mutable_trace()->set_output_tree("must not be read");
  auto report = TraceReportFromProto(std::move(result));
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->outcome, agents::JobOutcome::kMemory);
  EXPECT_EQ(report->role, "candidate");
  EXPECT_TRUE(report->output_tree.empty());
}

TEST(Marshal, NonsenseResultsAreErrors) {
  v1::JobResult unknown;
  EXPECT_THAT(ProbeReportFromProto(std::move(unknown)).error().message(), HasSubstr("unknown outcome"));
  v1::JobResult other;
  other.set_outcome(v1::JobResult::DONE);
  other.mutable_probe();
  EXPECT_THAT(CompileReportFromProto(std::move(other)).error().message(), HasSubstr("without its result"));
  v1::JobResult path;
  path.set_outcome(v1::JobResult::DONE);
  path.mutable_trace()->add_inputs()->set_path("a b");
  EXPECT_THAT(TraceReportFromProto(std::move(path)).error().message(), HasSubstr("not a path"));
}

TEST(Marshal, AGateThatIsNotKnownIsNeverAPass) {
  v1::JobResult result;
  result.set_outcome(v1::JobResult::DONE);
  result.mutable_judge()->add_gates()->set_status(static_cast<v1::GateResult::Status>(99));
  EXPECT_EQ(JudgeReportFromProto(std::move(result))->gates[0].status, agents::GateStatus::kNotRun);
}

TEST(Marshal, BytesThatAreNoMessageAreRefused) {
  v1::WorkerReply reply;
  EXPECT_FALSE(ParseMessage("\xff\xff\xff", reply));
}

}  // namespace
}  // namespace kernelwright::worker
