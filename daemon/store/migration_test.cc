// C44 and C43: what older builds wrote opens, and what cannot be opened is left as it is.
#include <fstream>

#include "daemon/base/files.h"
#include "daemon/store/content_cache.h"
#include "daemon/store/schema.h"
#include "daemon/store/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::store {
namespace {

using ::testing::HasSubstr;

class MigrationTest : public ::testing::Test {
 protected:
  TempFolder folder_ = *TempFolder::Make();
  std::filesystem::path path_ = folder_.path() / "store.db";
};

// Each released schema version has its file testdata/store_vN.sql: the schema as that build made it, with some rows.
TEST_F(MigrationTest, c44_EveryOlderVersionOpensWithItsHistory) {
  for (size_t version = 1; version <= StoreMigrations().size(); ++version) {
    const std::filesystem::path path = folder_.path() / ("v" + std::to_string(version) + ".db");
    {
      const std::string sql =
          *ReadFile(std::string(KW_SOURCE_DIR) + "/daemon/store/testdata/store_v" + std::to_string(version) + ".sql");
      Database database = *Database::Open(path, Database::Mode::kReadWriteCreate);
      const Status status = database.Execute(sql);
      ASSERT_TRUE(status) << status.ToString();
    }
    Expected<std::unique_ptr<Store>> opened = Store::Open(path);
    ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
    Store& store = **opened;
    const std::vector<store::Run> runs = *store.ListRuns();
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[1].kind, "tune");
    EXPECT_EQ(runs[1].status, RunStatus::kFinished);
    EXPECT_EQ(runs[1].result["status"], "improved");
    EXPECT_EQ(runs[1].reference["seed"], 7);
    EXPECT_EQ(store.ListCandidates(runs[1].id)->size(), 2U);
    const std::vector<Evaluation> evaluations = *store.ListEvaluations(runs[1].id, "c1");
    ASSERT_EQ(evaluations.size(), 2U);
    EXPECT_EQ(evaluations[1].reason, "VMEM limit exceeded");
    EXPECT_EQ((*store.FindApproval(runs[0].id, "feed"))->who, "alice");
    EXPECT_EQ(store.ReadEvents(0)->size(), 3U);
    EXPECT_EQ(*store.LastSeq(), 7);
    EXPECT_TRUE(store.CheckIntegrity());
    EXPECT_EQ(*store.AppendEvent({0, "", 0, "after", {}}), 8);
  }
}

TEST_F(MigrationTest, StepsRunInOrderAndAFailedOneLeavesTheVersionBefore) {
  constexpr int64_t kId = 42;
  const char* const first[] = {"CREATE TABLE a (x); INSERT INTO a VALUES (1);"};
  const char* const broken[] = {first[0], "INSERT INTO a VALUES (2); INSERT INTO nowhere VALUES (1);"};
  const char* const fixed[] = {first[0], "INSERT INTO a VALUES (2);", "INSERT INTO a VALUES (3);"};
  Database database = *Database::Open(path_, Database::Mode::kReadWriteCreate);
  ASSERT_TRUE(Migrate(database, first, kId));
  EXPECT_FALSE(Migrate(database, broken, kId));
  EXPECT_EQ(*database.Scalar("PRAGMA user_version"), 1);
  EXPECT_EQ(*database.Scalar("SELECT count(*) FROM a"), 1);
  ASSERT_TRUE(Migrate(database, fixed, kId));
  EXPECT_EQ(*database.Scalar("PRAGMA user_version"), 3);
  EXPECT_EQ(*database.Scalar("SELECT count(*) FROM a"), 3);
  ASSERT_TRUE(Migrate(database, fixed, kId));
  EXPECT_EQ(*database.Scalar("SELECT count(*) FROM a"), 3);
}

TEST_F(MigrationTest, NewerDatabaseIsRefusedUntouched) {
  {
    ASSERT_TRUE(Store::Open(path_).has_value());
  }
  {
    Database database = *Database::Open(path_, Database::Mode::kReadWriteCreate);
    ASSERT_TRUE(database.Execute("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  const std::string before = *ReadFile(path_);
  const Status status = Store::Open(path_).error();
  EXPECT_EQ(status.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(status.ToString(), HasSubstr("newer kernelwright (schema 99"));
  EXPECT_EQ(*ReadFile(path_), before);
}

TEST_F(MigrationTest, ForeignDatabaseIsRefusedUntouched) {
  {
    Database database = *Database::Open(path_, Database::Mode::kReadWriteCreate);
    ASSERT_TRUE(database.Execute("CREATE TABLE bookmarks (url)"));
  }
  const std::string before = *ReadFile(path_);
  EXPECT_THAT(Store::Open(path_).error().ToString(), HasSubstr("another program"));
  EXPECT_EQ(*ReadFile(path_), before);
}

TEST_F(MigrationTest, c43_DamagedFileIsRefusedUntouched) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(8192, 'x')));
  const Status status = Store::Open(path_).error();
  EXPECT_EQ(status.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(status.ToString(), HasSubstr("damaged"));
  EXPECT_THAT(status.ToString(), HasSubstr(".recover"));
  EXPECT_EQ(*ReadFile(path_), std::string(8192, 'x'));
}

TEST_F(MigrationTest, c43_TornPagesAreFoundByTheCheck) {
  {
    std::unique_ptr<Store> store = *Store::Open(path_);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(store->AppendEvent({0, "", 0, "x", std::string(2000, 'x')}).has_value());
  }
  std::string bytes = *ReadFile(path_);
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 8192; ++i) bytes[i] = '\x5a';
  {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  Expected<std::unique_ptr<Store>> store = Store::Open(path_);
  const Status status = store ? (*store)->CheckIntegrity() : store.error();
  EXPECT_EQ(status.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(status.ToString(), HasSubstr("damaged"));
}

TEST_F(MigrationTest, MissingPermissionIsSaid) {
  const Status status = Store::Open("/proc/kernelwright/store.db").error();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.ToString(), HasSubstr("/proc/kernelwright"));
}

TEST_F(MigrationTest, TwoProcessesMayOpenAtOnce) {
  std::unique_ptr<Store> first = *Store::Open(path_);
  std::unique_ptr<Store> second = *Store::Open(path_);
  EXPECT_EQ(*first->AppendEvent({0, "", 0, "a", {}}), 1);
  EXPECT_EQ(*second->AppendEvent({0, "", 0, "b", {}}), 2);
  EXPECT_EQ(first->ReadEvents(0)->size(), 2U);
}

}  // namespace
}  // namespace kernelwright::store
