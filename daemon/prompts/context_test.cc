// Whatever the limit, what is made fits, and calls stay with their results.
#include "daemon/prompts/context.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::prompts {
namespace {

using models::Message;
using models::Role;
using models::ToolCall;
using models::ToolResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Lines(int count, const std::string& word = "line") {
  std::string text;
  for (int i = 0; i < count; ++i) text += word + " " + std::to_string(i) + "\n";
  return text;
}

TEST(FitTextTest, KeepsWhatIsAskedFor) {
  EXPECT_EQ(FitText("short", 100, Keep::kStart), "short");
  EXPECT_THAT(FitText(Lines(100), 100, Keep::kStart), StartsWith("line 0\nline 1\n"));
  EXPECT_THAT(FitText(Lines(100), 100, Keep::kEnd), HasSubstr("left out"));
  EXPECT_TRUE(FitText(Lines(100), 100, Keep::kEnd).ends_with("line 98\nline 99\n"));
  const std::string both = FitText(Lines(100), 120, Keep::kBoth);
  EXPECT_THAT(both, StartsWith("line 0\n"));
  EXPECT_TRUE(both.ends_with("line 99\n"));
  EXPECT_EQ(FitText(Lines(100), 10, Keep::kAll), Lines(100));
}

TEST(FitTextTest, AlwaysFits) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = random() % 30; i > 0; --i)
      text += std::string(random() % 80, 'x') + (random() % 9 == 0 ? "€" : "") + "\n";
    const size_t most = random() % 400;
    const Keep keep = static_cast<Keep>(random() % 3);
    ASSERT_LE(FitText(text, most, keep).size(), std::max(most, std::min(text.size(), most))) << most;
  }
}

Prompt TestPrompt() {
  return ParsePrompt(
             "p",
             "---\nvariables: error 9 both, source 5 both, notes 1, chip 10 all\n---\n# System\nYou mend.\n# Task\n"
             "{{chip}}\n{{error}}\n{{source}}\n{{#notes}}\nNotes:\n{{notes}}\n{{/notes}}\n",
             "", "p.md")
      .value();
}

TEST(BuildPromptTest, TheLeastImportantGivesWayFirst) {
  const std::map<std::string, std::string> values = {
      {"error", Lines(20, "error")}, {"source", Lines(50, "source")}, {"notes", Lines(50, "note")}, {"chip", "v5e"}};
  const BuiltPrompt all = BuildPrompt(TestPrompt(), values, 10'000).value();
  EXPECT_TRUE(all.cut.empty());
  const BuiltPrompt some = BuildPrompt(TestPrompt(), values, 500).value();
  EXPECT_THAT(some.task, HasSubstr(Lines(20, "error")));
  EXPECT_THAT(some.task, Not(HasSubstr("Notes:")));
  EXPECT_THAT(some.task, HasSubstr("source 49"));
  EXPECT_THAT(some.cut, ElementsAre("notes", "source"));
  const auto none = BuildPrompt(TestPrompt(), values, 10);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), ErrorKind::kLimit);
}

TEST(BuildPromptTest, AlwaysFitsOrSaysThatItCannot) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const std::map<std::string, std::string> values = {{"error", Lines(random() % 40)},
                                                       {"source", Lines(random() % 90)},
                                                       {"notes", Lines(random() % 60)},
                                                       {"chip", "v6e"}};
    const size_t most = 20 + random() % 1500;
    const auto built = BuildPrompt(TestPrompt(), values, most);
    if (built) {
      ASSERT_LE(built->system.size() + built->task.size(), most);
      ASSERT_THAT(built->task, StartsWith("v6e"));
    } else {
      ASSERT_LT(most, 60);
    }
  }
}

// Every result follows the message with its call, and each call of an answer has its result in the next message.
void ExpectPaired(const std::vector<Message>& messages) {
  std::multiset<std::string> open;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == Role::kAssistant) {
      ASSERT_TRUE(open.empty());
      for (const ToolCall& call : messages[i].ToolCalls()) open.insert(call.id);
      continue;
    }
    for (const models::Part& part : messages[i].parts) {
      const auto* result = std::get_if<ToolResult>(&part);
      if (result == nullptr) continue;
      ASSERT_TRUE(open.contains(result->id)) << "a result without its call";
      open.erase(open.find(result->id));
    }
  }
  ASSERT_TRUE(open.empty()) << "a call without its result";
}

std::vector<Message> Conversation(std::mt19937& random) {
  std::vector<Message> messages = {Message::User("The task.\n" + Lines(random() % 60))};
  for (int turn = random() % 12; turn > 0; --turn) {
    Message answer = Message::Assistant(random() % 3 == 0 ? "" : Lines(random() % 8, "thought"));
    Message results{Role::kUser, {}};
    for (int call = random() % 3; call >= 0; --call) {
      ToolCall made;
      made.id = "c" + std::to_string(turn) + "-" + std::to_string(call);
      made.name = "read_file";
      made.arguments = {{"path", "k.py"}};
      made.raw = DumpJson(made.arguments);
      answer.parts.emplace_back(made);
      results.parts.emplace_back(ToolResult{made.id, made.name, Lines(random() % 80, "result"), random() % 4 == 0});
    }
    messages.push_back(std::move(answer));
    messages.push_back(std::move(results));
    if (random() % 5 == 0) {
      messages.push_back(Message::Assistant("done"));
      messages.push_back(Message::User(Lines(random() % 20, "more")));
    }
  }
  return messages;
}

TEST(CompactTest, C59AlwaysFitsAndStaysValid) {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    const std::vector<Message> messages = Conversation(random);
    const size_t most = 200 + random() % 8000;
    const std::vector<Message> compact = Compact(messages, most);
    ASSERT_LE(SizeOf(compact), most) << "round " << round;
    ASSERT_FALSE(compact.empty());
    ASSERT_EQ(compact.front().role, Role::kUser);
    ExpectPaired(compact);
    if (SizeOf(messages) <= most) {
      ASSERT_EQ(compact.size(), messages.size());
    }
  }
}

TEST(CompactTest, TheTaskAndTheNewestStayAndTheRestIsTold) {
  std::vector<Message> messages = {Message::User("The task.")};
  for (int turn = 0; turn < 10; ++turn) {
    ToolCall call;
    call.id = std::to_string(turn);
    call.name = "compile";
    call.arguments = {{"function", "f" + std::to_string(turn)}};
    messages.push_back({Role::kAssistant, {call}});
    messages.push_back(
        {Role::kUser, {ToolResult{call.id, call.name, "D07 error " + std::to_string(turn) + "\n" + Lines(100), true}}});
  }
  const std::vector<Message> compact = Compact(messages, 3000);
  EXPECT_LE(SizeOf(compact), 3000);
  EXPECT_THAT(compact.front().Text(), StartsWith("The task."));
  const auto* last = std::get_if<ToolResult>(&compact.back().parts.front());
  ASSERT_NE(last, nullptr);
  EXPECT_THAT(last->text, StartsWith("D07 error 9\n"));
  std::string all = compact.front().Text();
  for (const Message& message : compact) {
    for (const models::Part& part : message.parts) {
      if (const auto* result = std::get_if<ToolResult>(&part)) all += result->text;
    }
  }
  EXPECT_THAT(all, HasSubstr("D07 error 3")) << "why each failed is kept";
}

TEST(CompactTest, CompactingTwiceChangesNothing) {
  std::mt19937 random(4);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Message> once = Compact(Conversation(random), 2500);
    EXPECT_EQ(SizeOf(Compact(once, 2500)), SizeOf(once));
  }
}

}  // namespace
}  // namespace kernelwright::prompts
