// The door of the daemon: what keeps it open, and that it closes once for all.
#include "daemon/service/activity.h"

#include "gtest/gtest.h"

namespace kernelwright::service {
namespace {

const auto kNoRuns = [] { return 0U; };

TEST(Activity, WorkStreamsAndRunsKeepTheDoorOpen) {
  Activity activity;
  EXPECT_TRUE(activity.idle_since());
  {
    const auto work = activity.Begin(Activity::Kind::kWork);
    EXPECT_FALSE(activity.idle_since());
    EXPECT_TRUE(activity.TryClose(kNoRuns, false).any());
  }
  {
    const auto stream = activity.Begin(Activity::Kind::kStream);
    EXPECT_EQ(activity.TryClose(kNoRuns, false).streams, 1U);
  }
  EXPECT_EQ(activity.TryClose([] { return 2U; }, false).runs, 2U);
  EXPECT_FALSE(activity.closing());
  const auto brief = activity.Begin(Activity::Kind::kBrief);
  EXPECT_FALSE(activity.TryClose(kNoRuns, false).any());
  EXPECT_TRUE(activity.closing());
}

TEST(Activity, AClosedDoorTurnsWorkAway) {
  Activity activity;
  const auto stream = activity.Begin(Activity::Kind::kStream);
  EXPECT_TRUE(activity.TryClose(kNoRuns, true).any());
  EXPECT_FALSE(activity.Begin(Activity::Kind::kWork));
  EXPECT_FALSE(activity.Begin(Activity::Kind::kStream));
  EXPECT_TRUE(activity.Begin(Activity::Kind::kBrief));
}

TEST(Activity, IdleCountsFromTheLastEnd) {
  Activity activity;
  const auto before = Activity::Clock::now();
  {
    const auto call = activity.Begin(Activity::Kind::kBrief);
  }
  ASSERT_TRUE(activity.idle_since());
  EXPECT_GE(*activity.idle_since(), before);
}

}  // namespace
}  // namespace kernelwright::service
