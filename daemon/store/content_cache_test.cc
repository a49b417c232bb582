#include "daemon/store/content_cache.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "daemon/base/files.h"
#include "daemon/base/hash.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace kernelwright::store {
namespace {

class ContentCacheTest : public ::testing::Test {
 protected:
  TempFolder folder_ = *TempFolder::Make();
  std::filesystem::path path_ = folder_.path() / "cache.db";
  FakeClock clock_;
  std::unique_ptr<ContentCache> Open(uint64_t limit = 1 << 20) { return *ContentCache::Open(path_, limit, clock_); }
  void Tick() { clock_.Advance(std::chrono::seconds(2)); }
};

TEST_F(ContentCacheTest, GivesBackWhatWasPut) {
  auto cache = Open();
  EXPECT_EQ(cache->Get("k"), std::nullopt);
  const std::string bytes = *RandomBytes(5000);
  ASSERT_TRUE(cache->Put("k", "hlo", bytes));
  ASSERT_TRUE(cache->Put("empty", "hlo", ""));
  EXPECT_EQ(cache->Get("k"), bytes);
  EXPECT_EQ(cache->Get("empty"), "");
  ASSERT_TRUE(cache->Put("k", "hlo", "new"));
  EXPECT_EQ(cache->Get("k"), "new");
  cache.reset();
  EXPECT_EQ(Open()->Get("k"), "new");
}

TEST_F(ContentCacheTest, LeastRecentlyUsedGoesFirst) {
  auto cache = Open(40000);
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_TRUE(cache->Put(key, "x", *RandomBytes(10000)));
    Tick();
  }
  EXPECT_TRUE(cache->Get("a").has_value());
  Tick();
  ASSERT_TRUE(cache->Put("d", "x", *RandomBytes(10000)));
  EXPECT_TRUE(cache->Get("a").has_value());
  EXPECT_FALSE(cache->Get("b").has_value());
  EXPECT_TRUE(cache->Get("c").has_value());
  EXPECT_TRUE(cache->Get("d").has_value());
  EXPECT_LE(cache->Stats()->bytes, 40000);
}

TEST_F(ContentCacheTest, LimitHolds) {
  auto cache = Open(100000);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(cache->Put(std::to_string(i), "x", *RandomBytes(7000)));
    EXPECT_LE(cache->Stats()->bytes, 100000);
  }
  ASSERT_TRUE(cache->Put("huge", "x", *RandomBytes(200000)));
  EXPECT_FALSE(cache->Get("huge").has_value());
  EXPECT_TRUE(cache->Get("99").has_value());
  ASSERT_TRUE(cache->SetLimit(20000));
  EXPECT_LE(cache->Stats()->bytes, 20000);
  cache.reset();
  EXPECT_LT(std::filesystem::file_size(path_), 200000U);  // the file shrinks, too
}

TEST_F(ContentCacheTest, DamagedEntryIsAMissAndGoes) {
  auto cache = Open();
  ASSERT_TRUE(cache->Put("k", "x", "some bytes that are compressed"));
  {
    Database raw = *Database::Open(path_, Database::Mode::kReadWriteCreate);
    ASSERT_TRUE(raw.Execute("UPDATE cache SET bytes = x'1f8b0800deadbeef'"));
  }
  EXPECT_EQ(cache->Get("k"), std::nullopt);
  EXPECT_EQ(cache->Stats()->entries, 0);
  ASSERT_TRUE(cache->Put("k", "x", "12345"));
  {
    Database raw = *Database::Open(path_, Database::Mode::kReadWriteCreate);
    ASSERT_TRUE(raw.Execute("UPDATE cache SET raw_size = 4"));
  }
  EXPECT_EQ(cache->Get("k"), std::nullopt);
}

TEST_F(ContentCacheTest, DamagedFileStartsEmpty) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(10000, 'x')));
  auto cache = Open();
  EXPECT_EQ(cache->Stats()->entries, 0);
  ASSERT_TRUE(cache->Put("k", "x", "v"));
  EXPECT_EQ(cache->Get("k"), "v");
}

TEST_F(ContentCacheTest, RemoveAndClear) {
  auto cache = Open();
  ASSERT_TRUE(cache->Put("a", "x", "1"));
  ASSERT_TRUE(cache->Put("b", "x", "2"));
  ASSERT_TRUE(cache->Remove("a"));
  EXPECT_FALSE(cache->Get("a").has_value());
  ASSERT_TRUE(cache->Clear());
  EXPECT_EQ(cache->Stats()->entries, 0);
}

// Two processes write and evict in one file; each value that comes back is whole and belongs to its key.
TEST_F(ContentCacheTest, TwoProcessesShareIt) {
  {
    Open();
  }
  const auto work = [&](const std::string& who) {
    Expected<std::unique_ptr<ContentCache>> cache = ContentCache::Open(path_, 60000, clock_);
    if (!cache) return false;
    bool good = true;
    for (int i = 0; i < 60; ++i) {
      const std::string key = std::to_string(i % 10);
      good = good && (*cache)->Put(key, "x", fmt::format("{}:{}:{}", key, who, *RandomBytes(5000))).ok();
      const std::optional<std::string> value = (*cache)->Get(std::to_string((i + 3) % 10));
      good = good && (!value || value->starts_with(std::to_string((i + 3) % 10) + ":"));
    }
    return good && (*cache)->Stats()->bytes <= 60000;
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work("child") ? 0 : 1);
  EXPECT_TRUE(work("parent"));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace kernelwright::store
