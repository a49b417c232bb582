// Event streams and the doctor over gRPC's callback interface; see reactors.h.
#include "daemon/service/reactors.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "daemon/service/call_thread.h"
#include "daemon/service/marshal.h"
#include "daemon/service/wire_status.h"

namespace kernelwright::service {
namespace {

class WatchReactor final : public grpc::ServerWriteReactor<v1::Event> {
 public:
  WatchReactor(agents::Engine* engine, v1::WatchRequest request, Activity::Call call)
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
    auto stream = engine_->Subscribe(request_.run(), request_.since_sequence(), request_.follow());
    if (!stream) return stream.error();
    while (true) {
      auto batch = (*stream)->Next(stop, Deadline::Never());
      if (!batch) return batch.error();
      for (const agents::RunEvent& event : batch->events) {
        Expected<v1::Event> message = ToProto(event);
        if (!message) return message.error();
        if (!Write(*message)) return Status(ErrorKind::kCancelled, "the client left");
      }
      if (batch->ended) return {};
      if (stop.stop_requested()) return Status(ErrorKind::kCancelled, "the client left");
    }
  }

  // One write at a time; gRPC's flow control holds it back while the client is slow, and a client that leaves ends it.
  bool Write(const v1::Event& event) {
    std::unique_lock lock(mutex_);
    event_ = event;
    writing_ = true;
    StartWrite(&event_);
    written_.wait(lock, [this] { return !writing_; });
    return write_ok_;
  }

  agents::Engine* engine_;
  const v1::WatchRequest request_;
  const Activity::Call call_;
  std::mutex mutex_;
  std::condition_variable written_;
  bool writing_ = false;
  bool write_ok_ = true;
  v1::Event event_;
  CallThread thread_;  // last: it uses all the others
};

class DoctorReactor final : public grpc::ServerUnaryReactor {
 public:
  DoctorReactor(agents::Engine* engine, v1::DoctorRequest request, v1::DoctorReply* reply, Activity::Call call)
      : call_(std::move(call)), thread_([this, engine, reply, request = std::move(request)](std::stop_token stop) {
          auto items = engine->Doctor(FromProto(request), std::move(stop));
          if (!items) {
            Finish(ToWire(items.error()));
            return;
          }
          for (const agents::DoctorItem& item : *items) *reply->add_items() = ToProto(item);
          Finish(grpc::Status::OK);
        }) {}

  void Start() { thread_.Start(); }
  void OnCancel() override { thread_.RequestStop(); }
  void OnDone() override { delete this; }

 private:
  const Activity::Call call_;
  CallThread thread_;
};

template <typename Reactor>
class Refusal final : public Reactor {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerWriteReactor<v1::Event>* ServeWatch(agents::Engine* engine, const v1::WatchRequest& request,
                                                Activity::Call call) {
  auto* reactor = new WatchReactor(engine, request, std::move(call));
  reactor->Start();
  return reactor;
}

grpc::ServerWriteReactor<v1::Event>* RefuseWatch(const grpc::Status& status) {
  return new Refusal<grpc::ServerWriteReactor<v1::Event>>(status);
}

grpc::ServerUnaryReactor* ServeDoctor(agents::Engine* engine, const v1::DoctorRequest& request, v1::DoctorReply* reply,
                                      Activity::Call call) {
  auto* reactor = new DoctorReactor(engine, request, reply, std::move(call));
  reactor->Start();
  return reactor;
}

grpc::ServerUnaryReactor* RefuseDoctor(const grpc::Status& status) {
  return new Refusal<grpc::ServerUnaryReactor>(status);
}

}  // namespace kernelwright::service
