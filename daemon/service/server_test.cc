// A daemon and its clients in one process, over a real socket: who gets in, what is carried, and how it ends.
#include "daemon/service/server.h"

#include <sys/stat.h>

#include <future>
#include <thread>

#include "daemon/base/files.h"
#include "daemon/service/channel.h"
#include "daemon/service/grpc_client.h"
#include "daemon/service/grpc_service.h"
#include "daemon/service/testing/test_engine.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"

namespace kernelwright::service {
namespace {

using kernelwright::testing::TestEngine;
using std::chrono::milliseconds;
using std::chrono::seconds;

agents::RunRequest Optimize() {
  agents::RunRequest request;
  request.kind = "optimize";
  request.file = "/f.py";
  return request;
}

ServerOptions Options(BuildIdentity build, ProtocolRange protocol) {
  ServerOptions options;
  options.build = std::move(build);
  options.protocol = protocol;
  return options;
}

ServerOptions IdleExit(milliseconds after) {
  ServerOptions options;
  options.idle_exit = after;
  return options;
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Expected<TempFolder> made = TempFolder::Make("kw-");
    ASSERT_TRUE(made);
    temp_ = std::make_unique<TempFolder>(std::move(*made));
    folder_.folder = temp_->path();
  }

  void StartServer(ServerOptions options = {}) {
    options.folder = folder_;
    Expected<std::unique_ptr<Server>> started =
        Server::Start(std::move(options), [this]() -> Expected<std::unique_ptr<agents::Engine>> {
          auto engine = std::make_unique<TestEngine>();
          engine_ = engine.get();
          return engine;
        });
    ASSERT_TRUE(started) << started.error().ToString();
    server_ = std::move(*started);
  }

  std::unique_ptr<GrpcClient> NewClient() {
    const Expected<Discovery> discovery = ReadDiscovery(folder_.discovery());
    EXPECT_TRUE(discovery);
    return MakeGrpcClient(*discovery);
  }

  std::unique_ptr<TempFolder> temp_;
  RuntimeFolder folder_;
  TestEngine* engine_ = nullptr;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, HandshakeTellsWhoIsThere) {
  StartServer(Options({"9.9.9", 77, "abc"}, {1, 3}));
  const auto client = NewClient();
  const Expected<HandshakeResult> hello = client->Handshake(seconds(5));
  ASSERT_TRUE(hello) << hello.error().ToString();
  EXPECT_EQ(hello->peer.pid, ::getpid());
  EXPECT_EQ(hello->peer.build.build, 77);
  EXPECT_EQ(hello->peer.build.commit, "abc");
  EXPECT_EQ(hello->protocol.max, 3U);
  EXPECT_EQ(hello->protocol.min, 1U);
  EXPECT_EQ(hello->active_runs, 0U);
}

TEST_F(ServerTest, SocketAndFilesArePrivate) {
  StartServer();
  for (const auto& path : {folder_.socket(), folder_.discovery(), folder_.lock()}) {
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << path;
  }
}

// Each method of the contract, so that a new one cannot forget the check.
TEST_F(ServerTest, EveryCallWithoutTheTokenIsRefused) {
  StartServer();
  const auto* service = v1::StartRunRequest::descriptor()->file()->FindServiceByName("Kernelwright");
  ASSERT_NE(service, nullptr);
  ASSERT_GE(service->method_count(), 12);
  grpc::GenericStub stub(MakeChannel(folder_.socket()));
  for (int i = 0; i < service->method_count(); ++i) {
    for (const std::string& token : {std::string(), std::string(64, '0'), server_->identity().token + "0"}) {
      grpc::ClientContext context;
      if (!token.empty()) context.AddMetadata(kTokenKey, token);
      context.set_deadline(std::chrono::system_clock::now() + seconds(10));
      grpc::CompletionQueue queue;
      const std::string name = "/" + service->full_name() + "/" + service->method(i)->name();
      const auto call = stub.PrepareCall(&context, name, &queue);
      const auto next = [&queue] {
        void* tag = nullptr;
        bool ok = false;
        EXPECT_TRUE(queue.Next(&tag, &ok));
        return ok;
      };
      call->StartCall(nullptr);
      next();
      const grpc::Slice nothing;
      call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
      next();
      grpc::ByteBuffer answer;
      call->Read(&answer, nullptr);
      EXPECT_FALSE(next()) << name;
      grpc::Status status;
      call->Finish(&status, nullptr);
      next();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << name;
      queue.Shutdown();
    }
  }
  EXPECT_TRUE(engine_->requests().empty());
  EXPECT_FALSE(engine_->shut_down());
}

TEST_F(ServerTest, AnotherCookieIsNotTrusted) {
  StartServer();
  Discovery discovery = server_->identity();
  discovery.cookie = std::string(64, 'f');
  const Expected<HandshakeResult> hello = MakeGrpcClient(discovery)->Handshake(seconds(5));
  ASSERT_FALSE(hello);
  EXPECT_NE(hello.error().message().find("not the daemon"), std::string::npos);
}

TEST_F(ServerTest, RequestsAndErrorsArriveWhole) {
  StartServer();
  const auto client = NewClient();
  agents::RunRequest request;
  request.kind = "optimize";
  request.file = "/f.py";
  request.chips = {"v5e", "v6e"};
  request.environment = {{"PATH", "/bin"}};
  const Expected<std::string> run = client->StartRun(request);
  ASSERT_TRUE(run) << run.error().ToString();
  ASSERT_EQ(engine_->requests().size(), 1U);
  EXPECT_EQ(engine_->requests()[0].chips, request.chips);
  EXPECT_EQ(engine_->requests()[0].environment, request.environment);

  request.file = "/missing.py";
  const Expected<std::string> refused = client->StartRun(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kUsage);
  EXPECT_EQ(refused.error().ToString(), "/missing.py: there is no such file. Check the path.");

  EXPECT_EQ(client->GetRun("nope").error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(client->ListRuns(0)->size(), 1U);
  EXPECT_EQ(client->GetStatus()->engine.active_runs, 1U);
  EXPECT_GT(client->GetStatus()->resident_bytes, 1U << 20);
  EXPECT_TRUE(*client->CancelRun(*run));
  EXPECT_FALSE(*client->CancelRun(*run));
  EXPECT_EQ(client->GetRun(*run)->exit_code, 4);
  EXPECT_EQ(client->Doctor({}, {})->at(0).value, "/usr/bin/python3");
  EXPECT_EQ(client->PruneRuns({0, 0, true})->runs, 1U);
}

TEST_F(ServerTest, ExportComesInChunksAndWhole) {
  StartServer();
  const auto client = NewClient();
  const Expected<std::string> run = client->StartRun(Optimize());
  std::string text;
  size_t largest = 0;
  ASSERT_TRUE(client
                  ->ExportRun(*run,
                              [&](std::string_view part) {
                                text += part;
                                largest = std::max(largest, part.size());
                                return true;
                              })
                  .ok());
  EXPECT_GT(text.size(), 3'000'000U);
  EXPECT_LE(largest, 1U << 20);
  EXPECT_EQ(text.substr(text.size() - 4), "x\"}\n");
  EXPECT_TRUE(client->ExportRun(*run, [](std::string_view) { return false; }).ok());
}

// Events before, during and after the attach arrive once and in order.
TEST_F(ServerTest, ReplayAndLiveHaveNoGapAndNoRepeat) {
  StartServer();
  const auto client = NewClient();
  const Expected<std::string> run = client->StartRun(Optimize());
  ASSERT_TRUE(run);
  constexpr int kEvents = 2000;
  std::thread writer([&] {
    for (int i = 0; i < kEvents; ++i) engine_->Emit(*run, "log_line", R"({"level":"info","text":"x"})");
    engine_->FinishRun(*run, "improved", "{}", 0);
  });
  std::vector<std::thread> readers;
  for (const uint64_t since : {uint64_t{0}, uint64_t{1}, uint64_t{500}}) {
    readers.emplace_back([&, since] {
      const auto reader = NewClient();
      uint64_t last = since;
      const Status watched = reader->WatchEvents(*run, since, true,
                                                 [&](const agents::RunEvent& event) {
                                                   EXPECT_EQ(event.sequence, last + 1);
                                                   last = event.sequence;
                                                   return true;
                                                 },
                                                 {});
      EXPECT_TRUE(watched.ok()) << watched.ToString();
      EXPECT_EQ(last, static_cast<uint64_t>(kEvents) + 2);
    });
  }
  writer.join();
  for (std::thread& reader : readers) reader.join();
}

TEST_F(ServerTest, WithoutFollowTheStoredEventsEndTheStream) {
  StartServer();
  const auto client = NewClient();
  const Expected<std::string> run = client->StartRun(Optimize());
  int events = 0;
  ASSERT_TRUE(client->WatchEvents(*run, 0, false, [&](const auto&) { return ++events > 0; }, {}).ok());
  EXPECT_EQ(events, 1);
  EXPECT_EQ(client->WatchEvents("nope", 0, true, [](const auto&) { return true; }, {}).kind(), ErrorKind::kNotFound);
}

// A client that reads nothing holds back nobody, and costs the daemon no queue.
TEST_F(ServerTest, ASlowClientDoesNotHoldBackOthers) {
  StartServer();
  const auto client = NewClient();
  const Expected<std::string> run = client->StartRun(Optimize());
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  uint64_t slow_last = 0;
  std::thread slow([&] {
    const auto reader = NewClient();
    const Status watched = reader->WatchEvents(*run, 0, true,
                                               [&](const agents::RunEvent& event) {
                                                 released.wait();
                                                 EXPECT_EQ(event.sequence, slow_last + 1);
                                                 slow_last = event.sequence;
                                                 return true;
                                               },
                                               {});
    EXPECT_TRUE(watched.ok());
  });
  const std::string payload = R"({"level":"info","text":")" + std::string(20'000, 'x') + R"("})";
  for (int i = 0; i < 200; ++i) engine_->Emit(*run, "log_line", payload);
  engine_->FinishRun(*run, "improved", "{}", 0);
  uint64_t fast_last = 0;
  ASSERT_TRUE(client
                  ->WatchEvents(*run, 0, true,
                                [&](const agents::RunEvent& event) {
                                  fast_last = event.sequence;
                                  return true;
                                },
                                {})
                  .ok());
  EXPECT_EQ(fast_last, 202U);
  release.set_value();
  slow.join();
  EXPECT_EQ(slow_last, 202U);
}

TEST_F(ServerTest, CancelEndsAWatchAndTheDoctor) {
  StartServer();
  const auto client = NewClient();
  const Expected<std::string> run = client->StartRun(Optimize());
  std::stop_source stop;
  const Status watched =
      client->WatchEvents(*run, 0, true, [&](const auto&) { return stop.request_stop(), true; }, stop.get_token());
  EXPECT_EQ(watched.kind(), ErrorKind::kCancelled);

  engine_->doctor_blocks = true;
  std::stop_source doctor_stop;
  auto doctor = std::async(std::launch::async, [&] { return client->Doctor({}, doctor_stop.get_token()); });
  // The cancel may come before the call has left: both orders must end it.
  doctor_stop.request_stop();
  EXPECT_FALSE(doctor.get());
  EXPECT_EQ(client->GetRun(*run)->status, "running");
}

TEST_F(ServerTest, AnIdleDaemonStopsWhenAskedAndABusyOneDoesNot) {
  StartServer();
  const auto client = NewClient();
  const Expected<std::string> run = client->StartRun(Optimize());
  Expected<StopResult> stop = client->StopDaemon(false);
  ASSERT_TRUE(stop);
  EXPECT_FALSE(stop->stopping);
  EXPECT_EQ(stop->active_runs, 1U);
  engine_->FinishRun(*run, "improved", "{}", 0);
  stop = client->StopDaemon(false);
  EXPECT_TRUE(stop->stopping);
  EXPECT_EQ(server_->WaitForEnd(), "a client asked for it");
  const Expected<std::string> late = client->StartRun(Optimize());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().where(), kClosingWhere);
  server_->Stop();
  EXPECT_FALSE(std::filesystem::exists(folder_.discovery()));
  EXPECT_FALSE(std::filesystem::exists(folder_.socket()));
}

TEST_F(ServerTest, StopEndsStreamsAndInterruptsRuns) {
  StartServer();
  const auto client = NewClient();
  const Expected<std::string> run = client->StartRun(Optimize());
  std::promise<void> attached;
  auto watch = std::async(std::launch::async, [&] {
    return client->WatchEvents(*run, 0, true, [&](const auto&) { return attached.set_value(), true; }, {});
  });
  attached.get_future().wait();
  server_->Stop();
  EXPECT_TRUE(watch.get().ok());
  // Another one can serve from here on.
  server_.reset();
  StartServer();
  EXPECT_TRUE(NewClient()->Handshake(seconds(5)));
}

// The loser must leave the winner's socket alone.
TEST_F(ServerTest, C08SocketIsNotStolen) {
  StartServer();
  struct stat before{};
  ASSERT_EQ(::stat(folder_.socket().c_str(), &before), 0);
  bool engine_made = false;
  ServerOptions options;
  options.folder = folder_;
  const auto second = Server::Start(options, [&]() -> Expected<std::unique_ptr<agents::Engine>> {
    engine_made = true;
    return std::make_unique<TestEngine>();
  });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::kConflict);
  EXPECT_NE(second.error().message().find(std::to_string(::getpid())), std::string::npos);
  EXPECT_FALSE(engine_made);
  struct stat after{};
  ASSERT_EQ(::stat(folder_.socket().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_TRUE(NewClient()->Handshake(seconds(5)));
}

TEST_F(ServerTest, IdleDaemonEnds) {
  StartServer(IdleExit(milliseconds(50)));
  EXPECT_NE(server_->WaitForEnd().find("no client"), std::string::npos);
}

TEST_F(ServerTest, ARunOrAWatcherKeepsTheDaemon) {
  StartServer(IdleExit(milliseconds(30)));
  const auto client = NewClient();
  const Expected<std::string> run = client->StartRun(Optimize());
  ASSERT_TRUE(run);
  auto ended = std::async(std::launch::async, [&] { return server_->WaitForEnd(); });
  EXPECT_EQ(ended.wait_for(milliseconds(300)), std::future_status::timeout);
  std::stop_source stop;
  std::promise<void> attached;
  auto watch = std::async(std::launch::async, [&] {
    bool first = true;
    return client->WatchEvents(
        "", 0, true,
        [&](const auto&) {
          if (std::exchange(first, false)) attached.set_value();
          return true;
        },
        stop.get_token());
  });
  attached.get_future().wait();
  engine_->FinishRun(*run, "improved", "{}", 0);
  EXPECT_EQ(ended.wait_for(milliseconds(300)), std::future_status::timeout);
  stop.request_stop();
  EXPECT_EQ(watch.get().kind(), ErrorKind::kCancelled);
  EXPECT_NE(ended.get().find("no client"), std::string::npos);
}

// A socket that somebody removed is opened again by the daemon itself.
TEST_F(ServerTest, C09UnreachableDaemonRebinds) {
  ServerOptions often;
  often.ping_interval = milliseconds(20);
  StartServer(often);
  std::filesystem::remove(folder_.socket());
  std::filesystem::remove(folder_.discovery());
  const auto give_up = std::chrono::steady_clock::now() + seconds(20);
  while (!std::filesystem::exists(folder_.discovery()) && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
  }
  const Expected<HandshakeResult> hello = NewClient()->Handshake(seconds(5));
  EXPECT_TRUE(hello) << hello.error().ToString();
}

}  // namespace
}  // namespace kernelwright::service
