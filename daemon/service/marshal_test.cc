// Nothing is lost between values and messages.
#include "daemon/service/marshal.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace kernelwright::service {
namespace {

// Every field of a message set to something that is not its default: a field added to the contract without a line in
// marshal.cc shows up as a difference.
void Fill(google::protobuf::Message* message) {
  const auto* reflection = message->GetReflection();
  const auto* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    const int number = field->number();
    const std::string text = field->name() + "!";
    if (field->is_map()) continue;
    if (field->is_repeated()) {
      ASSERT_EQ(field->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_STRING) << field->full_name();
      reflection->AddString(message, field, text + "1");
      reflection->AddString(message, field, text + "2");
      continue;
    }
    switch (field->cpp_type()) {
      case google::protobuf::FieldDescriptor::CPPTYPE_STRING:
        reflection->SetString(message, field, text);
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE:
        reflection->SetDouble(message, field, number + 0.5);
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_UINT32:
        reflection->SetUInt32(message, field, static_cast<uint32_t>(number));
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_INT64:
        reflection->SetInt64(message, field, number + (1LL << 40));
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_UINT64:
        reflection->SetUInt64(message, field, static_cast<uint64_t>(number) + (1ULL << 40));
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_BOOL:
        reflection->SetBool(message, field, true);
        break;
      default:
        FAIL() << field->full_name();
    }
  }
}

template <typename Message>
void ExpectRoundTrip(Message message) {
  Fill(&message);
  EXPECT_EQ(ToProto(FromProto(message)).DebugString(), message.DebugString());
}

TEST(Marshal, EveryFieldRoundTrips) {
  v1::StartRunRequest start;
  (*start.mutable_environment())["PATH"] = "/bin";
  ExpectRoundTrip(start);
  v1::DoctorRequest doctor;
  (*doctor.mutable_environment())["HOME"] = "/h";
  ExpectRoundTrip(doctor);
  ExpectRoundTrip(v1::RunRecord());
  ExpectRoundTrip(v1::PruneRequest());
  ExpectRoundTrip(v1::PruneReply());
  ExpectRoundTrip(v1::DoctorItem());
}

TEST(Marshal, EventsKeepTheirPayload) {
  const agents::RunEvent event{
      12, "r1", 1'700'000'000'000, "candidate_changed",
      R"({"chip":"v6e","candidate":{"id":"c3","status":"failed","why":"no \"room\"","estimate_ms":1.5,"unknown":1}})"};
  const Expected<v1::Event> message = ToProto(event);
  ASSERT_TRUE(message) << message.error().ToString();
  EXPECT_EQ(message->candidate_changed().candidate().id(), "c3");
  const Expected<agents::RunEvent> back = FromProto(*message);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->sequence, 12U);
  EXPECT_EQ(back->run, "r1");
  EXPECT_EQ(back->time_ms, event.time_ms);
  EXPECT_EQ(back->kind, event.kind);
  const nlohmann::json payload = nlohmann::json::parse(back->payload_json);
  EXPECT_EQ(payload["candidate"]["why"], "no \"room\"");
  EXPECT_EQ(payload["candidate"]["estimate_ms"], 1.5);
  EXPECT_EQ(payload["candidate"]["gate"], "");  // defaults are written
  EXPECT_FALSE(payload["candidate"].contains("unknown"));
}

TEST(Marshal, EveryKindOfEventIsCarried) {
  const auto* kinds = v1::Event::descriptor()->oneof_decl(0);
  for (int i = 0; i < kinds->field_count(); ++i) {
    const Expected<v1::Event> message = ToProto(agents::RunEvent{1, "r", 1, kinds->field(i)->name(), "{}"});
    ASSERT_TRUE(message);
    EXPECT_EQ(FromProto(*message)->kind, kinds->field(i)->name());
  }
}

TEST(Marshal, AnUnknownKindKeepsItsNumberAndBadJsonIsAnError) {
  for (const char* kind : {"from_the_future", "", "sequence"}) {
    const Expected<v1::Event> message = ToProto(agents::RunEvent{9, "r", 1, kind, "{}"});
    ASSERT_TRUE(message);
    EXPECT_EQ(message->sequence(), 9U);
    EXPECT_EQ(FromProto(*message)->kind, "");
  }
  EXPECT_FALSE(ToProto(agents::RunEvent{9, "r", 1, "progress", "{"}));
}

}  // namespace
}  // namespace kernelwright::service
