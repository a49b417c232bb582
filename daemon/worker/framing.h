// Messages over a pipe: a varint length, then that many bytes. Reads and writes survive partial transfers and signals,
// can be cut short from another thread, and never use a stream library that might buffer, lock or lose an error.
// A connection is good for nothing once a write or a read failed half way: the caller ends it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "daemon/base/deadline.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace kernelwright::worker {

inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;

// Reads messages from a descriptor that stays the caller's. One thread at a time.
class FrameReader {
 public:
  explicit FrameReader(int fd, size_t max_message_bytes = kMaxMessageBytes);

  // The next message. Empty: the other side closed the pipe between two messages. Errors: kInternal for a broken frame
  // (end inside a message, a length that is too large or not a varint) or a failing read; kCancelled and kLimit when
  // `stop` or `deadline` came first, after which the same call may be repeated and continues where it was.
  Expected<std::optional<std::string>> Next(const std::stop_token& stop, const Deadline& deadline = Deadline::Never());

 private:
  // Takes one message out of what was read, if it is complete.
  Expected<std::optional<std::string>> TakeMessage();

  int fd_;
  size_t max_message_bytes_;
  std::string buffer_;  // bytes that were read and not handed out
  size_t start_ = 0;    // of the part of buffer_ that counts
  size_t needed_ = 0;   // length of the message being read, 0 while its length is unknown
};

// Writes one message; the descriptor should be non-blocking, else only whole blocks are interruptible. Errors:
// kInternal when the reader is gone or the message is larger than the limit (then nothing was written), kCancelled and
// kLimit when `stop` or `deadline` came first (part of the message may be in the pipe).
Status WriteFrame(int fd, std::string_view message, const std::stop_token& stop,
                  const Deadline& deadline = Deadline::Never(), size_t max_message_bytes = kMaxMessageBytes);

// Makes writes and reads of our end return at once instead of blocking; the other end is not affected.
Status SetNonBlocking(int fd);

}  // namespace kernelwright::worker
