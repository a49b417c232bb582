// Reads /proc for boot and start time; see process_identity.h.
#include "daemon/base/process_identity.h"

#include <unistd.h>

#include <charconv>
#include <sstream>
#include <vector>

#include "daemon/base/files.h"

namespace kernelwright {
namespace {

Expected<std::string> BootId() {
  Expected<std::string> text = ReadFile("/proc/sys/kernel/random/boot_id", 4096);
  if (!text) return text;
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return text;
}

struct Stat {
  char state = '?';
  uint64_t start_ticks = 0;
};

Expected<Stat> ReadStat(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  Expected<std::string> text = ReadFile(path, 4096);
  if (!text) return Fail(text.error());
  // The command name, field 2, is in brackets and may hold blanks and brackets itself.
  const size_t end = text->rfind(')');
  if (end == std::string::npos) return Fail(ErrorKind::kInternal, "no command name in the process state", path);
  std::istringstream fields(text->substr(end + 1));
  Stat stat;
  std::string field;
  fields >> stat.state;  // field 3
  for (int number = 4; number <= 21; ++number) fields >> field;
  fields >> stat.start_ticks;  // field 22
  if (!fields) return Fail(ErrorKind::kInternal, "the process state is shorter than expected", path);
  return stat;
}

}  // namespace

std::string ProcessIdentity::ToString() const {
  return boot_id + ":" + std::to_string(pid) + ":" + std::to_string(start_ticks);
}

Expected<ProcessIdentity> ProcessIdentity::Parse(const std::string& text) {
  const size_t second = text.rfind(':');
  const size_t first = second == std::string::npos || second == 0 ? std::string::npos : text.rfind(':', second - 1);
  if (first != std::string::npos) {
    ProcessIdentity identity;
    identity.boot_id = text.substr(0, first);
    const char* begin = text.data();
    const auto pid = std::from_chars(begin + first + 1, begin + second, identity.pid);
    const auto ticks = std::from_chars(begin + second + 1, begin + text.size(), identity.start_ticks);
    if (pid.ec == std::errc() && pid.ptr == begin + second && ticks.ec == std::errc() &&
        ticks.ptr == begin + text.size()) {
      return identity;
    }
  }
  return Fail(ErrorKind::kInternal, "not a process identity (boot:pid:ticks)", text);
}

Expected<ProcessIdentity> IdentifyProcess(pid_t pid) {
  Expected<std::string> boot = BootId();
  if (!boot) return Fail(boot.error());
  Expected<Stat> stat = ReadStat(pid);
  if (!stat) return Fail(stat.error());
  return ProcessIdentity{*boot, pid, stat->start_ticks};
}

Expected<ProcessIdentity> CurrentProcess() { return IdentifyProcess(::getpid()); }

bool IsAlive(const ProcessIdentity& identity) {
  Expected<std::string> boot = BootId();
  if (boot && *boot != identity.boot_id) return false;
  Expected<Stat> stat = ReadStat(identity.pid);
  if (!stat) return stat.error().kind() != ErrorKind::kNotFound;
  return stat->start_ticks == identity.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

}  // namespace kernelwright
