// Who a build is. Builds have a total order, so that two installed builds never shut each other down in turn: the
// number of commits decides, then the commit's name. The range of protocol versions is what a build can talk to.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace kernelwright::service {

struct ProtocolRange {
  uint32_t min = 1;
  uint32_t max = 1;

  bool Overlaps(const ProtocolRange& other) const { return min <= other.max && other.min <= max; }
};

// The versions that this build speaks; the published window is in docs/daemon.md.
inline constexpr ProtocolRange kProtocol{1, 1};

struct BuildIdentity {
  std::string version;  // "0.1.0"
  int64_t build = 0;    // number of commits
  std::string commit;   // breaks ties

  bool operator==(const BuildIdentity& other) const { return build == other.build && commit == other.commit; }
  bool OlderThan(const BuildIdentity& other) const {
    return std::tie(build, commit) < std::tie(other.build, other.commit);
  }
  // "0.1.0 (build 42, 1a2b3c)"
  std::string ToString() const { return version + " (build " + std::to_string(build) + ", " + commit + ")"; }
};

// The identity that was compiled in.
BuildIdentity ThisBuild();

}  // namespace kernelwright::service
