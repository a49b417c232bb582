// Implementation of the pipe framing with poll(2), read(2) and write(2) alone.
#include "daemon/worker/framing.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "daemon/base/errno_status.h"
#include "daemon/base/no_sigpipe.h"
#include "daemon/worker/stop_fd.h"

namespace kernelwright::worker {
namespace {

constexpr size_t kReadChunk = size_t{256} << 10;
constexpr size_t kMaxVarintBytes = 10;

Status Broken(std::string message) {
  return {ErrorKind::kInternal, std::move(message), "worker protocol",
          "Run the command again; when it repeats, run `kernelwright doctor`."};
}

// Waits until `fd` is ready for `events`, a stop is asked for, or the deadline passes.
class Waiter {
 public:
  explicit Waiter(const std::stop_token& stop) : stop_(stop), wake_(stop) {}

  Status Wait(int fd, short events, const Deadline& deadline, const char* what) {
    while (true) {
      if (Status running = CheckRunning(stop_, deadline, what); !running.ok()) return running;
      std::array<pollfd, 2> fds{{{fd, events, 0}, {wake_.fd(), POLLIN, 0}}};
      const int ready = ::poll(fds.data(), fds.size(), deadline.PollTimeout());
      if (ready < 0 && errno != EINTR) return StatusFromErrno(errno, "cannot wait for the worker");
      if (ready > 0 && fds[0].revents != 0) return {};
    }
  }

 private:
  std::stop_token stop_;
  StopFd wake_;
};

std::string EncodeVarint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

Status WriteAll(int fd, std::string_view bytes, Waiter& waiter, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno == EINTR) {
      continue;
    } else if (written < 0 && errno == EAGAIN) {
      if (Status ready = waiter.Wait(fd, POLLOUT, deadline, "sending to the worker"); !ready.ok()) return ready;
    } else {
      return Broken("cannot send to the worker: " + ErrnoText(errno));
    }
  }
  return {};
}

}  // namespace

FrameReader::FrameReader(int fd, size_t max_message_bytes) : fd_(fd), max_message_bytes_(max_message_bytes) {}

Expected<std::optional<std::string>> FrameReader::TakeMessage() {
  if (needed_ == 0) {
    uint64_t length = 0;
    for (size_t i = 0;; ++i) {
      if (i == kMaxVarintBytes) return Fail(Broken("the worker sent something that is not a message"));
      if (start_ + i >= buffer_.size()) return std::nullopt;
      const auto byte = static_cast<unsigned char>(buffer_[start_ + i]);
      length |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if ((byte & 0x80) != 0) continue;
      start_ += i + 1;
      break;
    }
    if (length == 0) return std::string();
    if (length > max_message_bytes_) {
      return Fail(Broken("the worker announced a message of " + std::to_string(length) + " bytes; the limit is " +
                         std::to_string(max_message_bytes_)));
    }
    needed_ = length;
  }
  if (buffer_.size() - start_ < needed_) return std::nullopt;
  std::string message =
      start_ == 0 && buffer_.size() == needed_ ? std::exchange(buffer_, {}) : buffer_.substr(start_, needed_);
  start_ = buffer_.empty() ? 0 : start_ + needed_;
  needed_ = 0;
  return message;
}

Expected<std::optional<std::string>> FrameReader::Next(const std::stop_token& stop, const Deadline& deadline) {
  Waiter waiter(stop);
  while (true) {
    Expected<std::optional<std::string>> message = TakeMessage();
    if (!message || message->has_value()) return message;
    if (start_ > 0) {
      buffer_.erase(0, start_);
      start_ = 0;
    }
    if (Status ready = waiter.Wait(fd_, POLLIN, deadline, "reading from the worker"); !ready.ok()) return Fail(ready);
    // Memory grows with what arrives, not with what a length claims.
    const size_t size = buffer_.size();
    buffer_.resize(size + kReadChunk);
    const ssize_t count = ::read(fd_, buffer_.data() + size, kReadChunk);
    const int error = errno;
    buffer_.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) {
      if (buffer_.empty() && needed_ == 0) return std::nullopt;
      return Fail(Broken("the worker closed its output inside a message"));
    }
    if (count < 0 && error != EINTR && error != EAGAIN) {
      return Fail(Broken("cannot read from the worker: " + ErrnoText(error)));
    }
  }
}

Status WriteFrame(int fd, std::string_view message, const std::stop_token& stop, const Deadline& deadline,
                  size_t max_message_bytes) {
  if (message.size() > max_message_bytes) {
    return Broken("a request of " + std::to_string(message.size()) + " bytes is above the limit of " +
                  std::to_string(max_message_bytes));
  }
  Waiter waiter(stop);
  const NoSigpipe guard;
  const std::string length = EncodeVarint(message.size());
  if (Status sent = WriteAll(fd, length, waiter, deadline); !sent.ok()) return sent;
  return WriteAll(fd, message, waiter, deadline);
}

Status SetNonBlocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return StatusFromErrno(errno, "cannot prepare a pipe to the worker");
  }
  return {};
}

}  // namespace kernelwright::worker
