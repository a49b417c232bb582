// See context.h.
#include "daemon/prompts/context.h"

#include <algorithm>
#include <utility>

#include "daemon/base/text.h"

namespace kernelwright::prompts {
namespace {

using models::Message;
using models::Part;
using models::Role;
using models::TextPart;
using models::ToolCall;
using models::ToolResult;

// What a message costs beyond its texts: names of fields and brackets.
constexpr size_t kMessageOverhead = 24;
constexpr size_t kResultLine = 160;

std::string LeftOut(size_t lines) { return "[… " + std::to_string(lines) + " lines left out …]\n"; }

// One line about what an agent did in a message; empty for the user's own words.
std::string Summary(const Message& message) {
  std::string line;
  for (const Part& part : message.parts) {
    if (const auto* call = std::get_if<ToolCall>(&part)) {
      line += "- called " + call->name + " " +
              Truncate(call->raw.empty() ? DumpJson(call->arguments) : call->raw, 100) + "\n";
    } else if (const auto* result = std::get_if<ToolResult>(&part)) {
      const std::string first(Trim(SplitLines(result->text).empty() ? "" : SplitLines(result->text).front()));
      line += "  " + std::string(result->is_error ? "failed: " : "got: ") + Truncate(first, 100) + "\n";
    } else if (const auto* text = std::get_if<TextPart>(&part)) {
      const std::string_view words = Trim(text->text);
      if (!words.empty()) {
        line += std::string(message.role == Role::kUser ? "- was told: " : "- said: ") +
                Truncate(ReplaceAll(words, "\n", " "), 160) + "\n";
      }
    }
  }
  return line;
}

// Results of tools as one line each.
Message Shortened(const Message& message) {
  Message shorter = message;
  for (Part& part : shorter.parts) {
    if (auto* result = std::get_if<ToolResult>(&part); result != nullptr && result->text.size() > kResultLine) {
      result->text = FitText(result->text, kResultLine, Keep::kStart);
    }
  }
  return shorter;
}

bool IsResults(const Message& message) {
  return std::any_of(message.parts.begin(), message.parts.end(),
                     [](const Part& part) { return std::holds_alternative<ToolResult>(part); });
}

// Where turns start that can stand after the task: an assistant's message, with the results that belong to it after it.
std::vector<size_t> TurnStarts(const std::vector<Message>& messages) {
  std::vector<size_t> starts;
  for (size_t i = 1; i < messages.size(); ++i) {
    if (!IsResults(messages[i])) starts.push_back(i);
  }
  return starts;
}

// The first message with what was done since, then the messages from `from` on.
std::vector<Message> WithSummary(const std::vector<Message>& messages, size_t from, size_t most_summary) {
  std::string summary;
  for (size_t i = 1; i < from; ++i) summary += Summary(messages[i]);
  std::vector<Message> result = {messages.front()};
  if (!summary.empty()) {
    summary = "\n\nWhat was done so far, in short:\n" + FitText(summary, most_summary, Keep::kEnd);
    result.front().parts.emplace_back(TextPart{std::move(summary), {}});
  }
  result.insert(result.end(), messages.begin() + static_cast<ptrdiff_t>(from), messages.end());
  return result;
}

// Cuts every text so that the whole is within the limit; what is structured (calls) stays whole, or goes with its
// results.
std::vector<Message> CutHard(std::vector<Message> messages, size_t most_bytes) {
  size_t room = most_bytes;
  size_t texts = 0;
  for (Message& message : messages) {
    room -= std::min(room, kMessageOverhead);
    // Thoughts of earlier turns are only worth keeping while there is room.
    std::erase_if(message.parts, [](const Part& part) { return std::holds_alternative<models::Reasoning>(part); });
    for (const Part& part : message.parts) {
      if (const auto* call = std::get_if<ToolCall>(&part)) {
        room -= std::min(room, call->name.size() + DumpJson(call->arguments).size() + call->signature.size());
      } else {
        ++texts;
      }
    }
  }
  const size_t each = texts == 0 ? 0 : room / texts;
  for (Message& message : messages) {
    for (Part& part : message.parts) {
      if (auto* text = std::get_if<TextPart>(&part)) {
        text->text = FitText(text->text, each, Keep::kBoth);
        text->signature.clear();
      }
      if (auto* result = std::get_if<ToolResult>(&part)) result->text = FitText(result->text, each, Keep::kStart);
    }
  }
  return messages;
}

}  // namespace

std::string FitText(std::string_view text, size_t most_bytes, Keep keep) {
  if (text.size() <= most_bytes || keep == Keep::kAll) return std::string(text);
  const std::vector<std::string_view> lines = SplitLinesWithEnds(text);
  const size_t note = LeftOut(lines.size()).size() + 1;
  // No room for a note and a line: as many characters as fit.
  const size_t longest_end = keep == Keep::kEnd ? lines.back().size() : lines.front().size();
  if (most_bytes < note + std::min<size_t>(longest_end, 40)) {
    if (most_bytes < 4) return {};
    return Truncate(text, most_bytes - 3);
  }
  size_t room = most_bytes - note;
  size_t head = 0;
  size_t tail = 0;
  // One line from each wanted end in turn, while they fit.
  bool more = true;
  while (more && head + tail < lines.size()) {
    more = false;
    if (keep != Keep::kEnd && lines[head].size() <= room) {
      room -= lines[head++].size();
      more = true;
    }
    if (keep != Keep::kStart && head + tail < lines.size() && lines[lines.size() - 1 - tail].size() <= room) {
      room -= lines[lines.size() - 1 - tail++].size();
      more = true;
    }
  }
  if (head + tail == 0) return Truncate(text, most_bytes - 3);
  std::string result;
  for (size_t i = 0; i < head; ++i) result += lines[i];
  if (!result.empty() && !result.ends_with('\n')) result += '\n';
  result += LeftOut(lines.size() - head - tail);
  for (size_t i = lines.size() - tail; i < lines.size(); ++i) result += lines[i];
  return result;
}

Expected<BuiltPrompt> BuildPrompt(const Prompt& prompt, const std::map<std::string, std::string>& values,
                                  size_t most_bytes) {
  std::map<std::string, std::string> fitted = values;
  const auto render = [&] { return BuiltPrompt{Render(prompt.system, fitted), Render(prompt.task, fitted), {}}; };
  const auto size = [](const BuiltPrompt& built) { return built.system.size() + built.task.size(); };
  std::vector<Variable> order = prompt.variables;
  std::stable_sort(order.begin(), order.end(),
                   [](const Variable& a, const Variable& b) { return a.importance < b.importance; });
  std::vector<std::string> cut;
  BuiltPrompt built = render();
  for (const Variable& variable : order) {
    // A text that is shortened may still leave its heading; a few rounds settle it.
    for (int round = 0; round < 3 && size(built) > most_bytes && variable.keep != Keep::kAll; ++round) {
      std::string& value = fitted[variable.name];
      if (value.empty()) break;
      const size_t excess = size(built) - most_bytes;
      value = value.size() > excess + 80 ? FitText(value, value.size() - excess, variable.keep) : std::string();
      if (std::find(cut.begin(), cut.end(), variable.name) == cut.end()) cut.push_back(variable.name);
      built = render();
    }
    if (size(built) > most_bytes && variable.keep != Keep::kAll) {
      fitted[variable.name].clear();
      built = render();
    }
  }
  if (size(built) > most_bytes) {
    return Fail(ErrorKind::kLimit,
                "the prompt '" + prompt.name + "' needs " + std::to_string(size(built)) + " bytes and has " +
                    std::to_string(most_bytes),
                prompt.origin, "Use a model with a longer context, or a smaller file.");
  }
  built.cut = std::move(cut);
  return built;
}

size_t SizeOf(const Message& message) {
  size_t size = kMessageOverhead;
  for (const Part& part : message.parts) {
    if (const auto* text = std::get_if<TextPart>(&part)) size += text->text.size() + text->signature.size();
    if (const auto* call = std::get_if<ToolCall>(&part)) {
      size += call->name.size() + DumpJson(call->arguments).size() + call->signature.size();
    }
    if (const auto* result = std::get_if<ToolResult>(&part)) size += result->text.size();
    if (const auto* reasoning = std::get_if<models::Reasoning>(&part)) {
      size += reasoning->opaque.is_null() ? 0 : DumpJson(reasoning->opaque).size();
    }
  }
  return size;
}

size_t SizeOf(const std::vector<Message>& messages) {
  size_t size = 0;
  for (const Message& message : messages) size += SizeOf(message);
  return size;
}

std::vector<Message> Compact(const std::vector<Message>& messages, size_t most_bytes) {
  if (messages.empty() || SizeOf(messages) <= most_bytes) return messages;
  // Long results of all but the last turn first: they can be asked for again.
  const std::vector<size_t> starts = TurnStarts(messages);
  const size_t last_turn = starts.empty() ? messages.size() : starts.back();
  std::vector<Message> shorter = messages;
  for (size_t i = 1; i < last_turn; ++i) {
    shorter[i] = Shortened(messages[i]);
    if (SizeOf(shorter) <= most_bytes) return shorter;
  }
  // Then whole turns, the oldest first, each as a line of what was done.
  for (const size_t start : starts) {
    const size_t kept = SizeOf(messages.front()) +
                        SizeOf(std::vector<Message>(shorter.begin() + static_cast<ptrdiff_t>(start), shorter.end()));
    if (kept + 200 > most_bytes) continue;
    std::vector<Message> shortest = WithSummary(shorter, start, std::min<size_t>(4000, most_bytes - kept - 100));
    if (SizeOf(shortest) <= most_bytes) return shortest;
  }
  // The task and the last turn alone are too large.
  std::vector<Message> last = {messages.front()};
  last.insert(last.end(), messages.begin() + static_cast<ptrdiff_t>(last_turn), messages.end());
  std::vector<Message> cut = CutHard(std::move(last), most_bytes);
  if (SizeOf(cut) <= most_bytes) return cut;
  // Even the calls are too large: only the words of the task are left.
  return {Message::User(
      FitText(messages.front().Text(), most_bytes - std::min(most_bytes, kMessageOverhead), Keep::kBoth))};
}

}  // namespace kernelwright::prompts
