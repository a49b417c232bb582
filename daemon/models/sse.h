// Server-sent events, as far as model servers use them: a stream of bytes, cut anywhere, becomes events. Follows the
// HTML standard: LF, CR and CRLF end a line, an empty line ends an event, lines that start with ":" are comments.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernelwright::models {

struct SseEvent {
  std::string type;  // of "event:", empty when there was none
  std::string data;  // lines joined by '\n'
  bool operator==(const SseEvent&) const = default;
};

class SseParser {
 public:
  // An event larger than this makes the stream unusable.
  explicit SseParser(size_t max_event_bytes = size_t{32} << 20) : max_event_bytes_(max_event_bytes) {}

  // The events that are complete after these bytes.
  std::vector<SseEvent> Feed(std::string_view bytes);
  // An event whose last line ended but whose empty line never came: some servers end like that. The standard drops it;
  // we give it when its data is whole lines, so that a decoder can judge.
  std::vector<SseEvent> Finish();

  bool too_large() const { return too_large_; }
  // Whether any field or comment was seen: false for text that is no event stream at all.
  bool saw_field() const { return saw_field_; }

 private:
  void Line(std::string_view line, std::vector<SseEvent>* events);

  const size_t max_event_bytes_;
  std::string line_;  // not ended yet
  SseEvent event_;
  bool has_data_ = false;
  bool skip_lf_ = false;  // the last byte was a CR: an LF that follows belongs to it
  bool at_start_ = true;
  bool too_large_ = false;
  bool saw_field_ = false;
};

}  // namespace kernelwright::models
