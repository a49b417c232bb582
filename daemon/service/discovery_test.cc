// The discovery file: round trip, and everything that makes a reader refuse it.
#include "daemon/service/discovery.h"

#include <sys/stat.h>

#include "daemon/base/files.h"
#include "daemon/service/startup_report.h"
#include "daemon/service/wire_status.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace kernelwright::service {
namespace {

Discovery Sample() {
  return {.socket = "/run/user/1/kernelwright/daemon.sock",
          .token = std::string(64, 'a'),
          .cookie = std::string(64, '0'),
          .pid = 42,
          .start_ms = 1'700'000'000'123,
          .build = {"0.1.0", 7, "abc"},
          .protocol = {1, 2}};
}

TEST(Discovery, RoundTripsWithPrivateMode) {
  const Expected<TempFolder> folder = TempFolder::Make();
  ASSERT_TRUE(folder);
  const std::filesystem::path file = folder->path() / "daemon.json";
  ASSERT_TRUE(WriteFileAtomically(file, "old and public", 0644).ok());
  ASSERT_TRUE(WriteDiscovery(file, Sample()).ok());
  struct stat info{};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const Expected<Discovery> read = ReadDiscovery(file);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(DiscoveryToJson(*read), DiscoveryToJson(Sample()));
}

TEST(Discovery, RefusesWhatOthersCouldTouch) {
  const Expected<TempFolder> folder = TempFolder::Make();
  const std::filesystem::path file = folder->path() / "daemon.json";
  EXPECT_EQ(ReadDiscovery(file).error().kind(), ErrorKind::kNotFound);
  ASSERT_TRUE(WriteDiscovery(file, Sample()).ok());
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  EXPECT_EQ(ReadDiscovery(file).error().kind(), ErrorKind::kEnvironment);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  std::filesystem::create_symlink(file, folder->path() / "link");
  EXPECT_EQ(ReadDiscovery(folder->path() / "link").error().kind(), ErrorKind::kEnvironment);
}

TEST(Discovery, RefusesValuesOutOfRange) {
  const nlohmann::json good = nlohmann::json::parse(DiscoveryToJson(Sample()));
  ASSERT_TRUE(ParseDiscovery(good.dump()));
  for (const auto& [key, value] : good.items()) {
    if (key == "capabilities") continue;
    nlohmann::json without = good;
    without.erase(key);
    EXPECT_FALSE(ParseDiscovery(without.dump())) << key;
    nlohmann::json mistyped = good;
    mistyped[key] = nlohmann::json::array();
    EXPECT_FALSE(ParseDiscovery(mistyped.dump())) << key;
  }
  nlohmann::json later = good;
  later["schema_version"] = 2;
  later["more"] = true;
  EXPECT_TRUE(ParseDiscovery(later.dump()));
  const std::string text = good.dump();
  for (size_t cut = 0; cut < text.size(); ++cut) EXPECT_FALSE(ParseDiscovery(text.substr(0, cut)));
}

TEST(BuildIdentity, OrderIsTotal) {
  const BuildIdentity older{"0.1.0", 7, "b"};
  const BuildIdentity newer{"0.1.0", 8, "a"};
  const BuildIdentity branch{"0.1.0", 7, "c"};
  EXPECT_TRUE(older.OlderThan(newer));
  EXPECT_FALSE(newer.OlderThan(older));
  EXPECT_TRUE(older.OlderThan(branch));
  EXPECT_FALSE(branch.OlderThan(older));
  EXPECT_FALSE(older.OlderThan(older));
}

TEST(StartupReport, RoundTrips) {
  StartupReport held{StartupReport::Kind::kHeld, 17, Status(ErrorKind::kConflict, "a \"b\"\n", "c", "d")};
  const Expected<StartupReport> read = ParseStartupReport(StartupReportToJson(held));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, StartupReport::Kind::kHeld);
  EXPECT_EQ(read->held_by, 17);
  EXPECT_EQ(read->error.ToString(), held.error.ToString());
  EXPECT_EQ(ParseStartupReport(StartupReportToJson({}))->kind, StartupReport::Kind::kReady);
  EXPECT_FALSE(ParseStartupReport("{\"status\":\"odd\"}"));
  EXPECT_FALSE(ParseStartupReport("{"));
}

TEST(WireStatus, KeepsKindPlaceAndRemedy) {
  for (const ErrorKind kind : {ErrorKind::kUserCode, ErrorKind::kUsage, ErrorKind::kEnvironment, ErrorKind::kCancelled,
                               ErrorKind::kLimit, ErrorKind::kConflict, ErrorKind::kNotFound, ErrorKind::kInternal}) {
    const Status back = FromWire(ToWire(Status(kind, "what", "where", "next")), "Call");
    EXPECT_EQ(back.kind(), kind);
    EXPECT_EQ(back.ToString(), "where: what. next");
  }
  EXPECT_TRUE(FromWire(ToWire(Status()), "Call").ok());
  EXPECT_EQ(FromWire({grpc::StatusCode::UNIMPLEMENTED, ""}, "Call").kind(), ErrorKind::kEnvironment);
}

}  // namespace
}  // namespace kernelwright::service
