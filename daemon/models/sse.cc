// A byte machine without look-ahead, so that it does not matter where the network cut the stream; see sse.h.
#include "daemon/models/sse.h"

#include <utility>

namespace kernelwright::models {
namespace {
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
}

std::vector<SseEvent> SseParser::Feed(std::string_view bytes) {
  std::vector<SseEvent> events;
  while (!bytes.empty() && !too_large_) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() + event_.data.size() > max_event_bytes_) {
      too_large_ = true;
      break;
    }
    if (end == std::string_view::npos) {
      line_ += piece;
      break;
    }
    skip_lf_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    line_ += piece;
    const std::string line = std::exchange(line_, {});
    Line(line, &events);
  }
  return events;
}

std::vector<SseEvent> SseParser::Finish() {
  std::vector<SseEvent> events;
  if (!line_.empty()) {
    const std::string line = std::exchange(line_, {});
    Line(line, &events);
  }
  Line({}, &events);
  return events;
}

void SseParser::Line(std::string_view line, std::vector<SseEvent>* events) {
  if (std::exchange(at_start_, false) && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) {
    SseEvent event = std::exchange(event_, {});
    if (std::exchange(has_data_, false)) events->push_back(std::move(event));
    return;
  }
  if (line.front() == ':') {
    saw_field_ = true;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
    saw_field_ = true;
  } else if (name == "event") {
    event_.type = value;
    saw_field_ = true;
  } else if (name == "id" || name == "retry") {
    saw_field_ = true;
  }
}

}  // namespace kernelwright::models
