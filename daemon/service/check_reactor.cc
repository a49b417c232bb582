// See check_reactor.h.
#include "daemon/service/check_reactor.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "daemon/service/call_thread.h"
#include "daemon/service/marshal_check.h"
#include "daemon/service/wire_status.h"

namespace kernelwright::service {
namespace {

class CheckReactor final : public grpc::ServerWriteReactor<v1::CheckEvent> {
 public:
  CheckReactor(agents::Engine* engine, v1::CheckRequest request, Activity::Call call)
      : engine_(engine),
        request_(std::move(request)),
        call_(std::move(call)),
        thread_([this](std::stop_token stop) { Finish(ToWire(Run(std::move(stop)))); }) {}

  void Start() { thread_.Start(); }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    write_ok_ = ok;
    writing_ = false;
    written_.notify_all();
  }
  void OnCancel() override { thread_.RequestStop(); }
  void OnDone() override { delete this; }

 private:
  Status Run(std::stop_token stop) {
    const auto on_stage = [this](const agents::CheckStageReport& stage) {
      v1::CheckEvent event;
      *event.mutable_stage() = ToProto(stage);
      // A client that left ends the check by its cancel.
      (void)Write(std::move(event));
    };
    auto result = engine_->Check(FromProto(request_), on_stage, std::move(stop));
    if (!result) return result.error();
    v1::CheckEvent event;
    *event.mutable_result() = ToProto(*result);
    return Write(std::move(event)) ? Status() : Status(ErrorKind::kCancelled, "the client left");
  }

  // One write at a time; gRPC's flow control holds it back while the client is slow.
  bool Write(v1::CheckEvent event) {
    std::unique_lock lock(mutex_);
    if (!write_ok_) return false;
    event_ = std::move(event);
    writing_ = true;
    StartWrite(&event_);
    written_.wait(lock, [this] { return !writing_; });
    return write_ok_;
  }

  agents::Engine* engine_;
  const v1::CheckRequest request_;
  const Activity::Call call_;
  std::mutex mutex_;
  std::condition_variable written_;
  bool writing_ = false;
  bool write_ok_ = true;
  v1::CheckEvent event_;
  CallThread thread_;  // last: it uses all the others
};

class Refusal final : public grpc::ServerWriteReactor<v1::CheckEvent> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerWriteReactor<v1::CheckEvent>* ServeCheck(agents::Engine* engine, const v1::CheckRequest& request,
                                                     Activity::Call call) {
  auto* reactor = new CheckReactor(engine, request, std::move(call));
  reactor->Start();
  return reactor;
}

grpc::ServerWriteReactor<v1::CheckEvent>* RefuseCheck(const grpc::Status& status) { return new Refusal(status); }

}  // namespace kernelwright::service
