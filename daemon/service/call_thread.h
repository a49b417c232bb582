// A thread that serves one call of gRPC's callback interface with blocking code, and a stop source that fires when the
// client cancels or leaves. The reactor owns it and destroys it in OnDone, which gRPC may run on any thread.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

namespace kernelwright::service {

class CallThread {
 public:
  explicit CallThread(std::function<void(std::stop_token)> body) : body_(std::move(body)) {}
  ~CallThread() {
    stop_.request_stop();
    if (!thread_.joinable()) return;
    // OnDone can only follow the body's last statement, so there is nothing left to wait for on its own thread.
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  void Start() {
    thread_ = std::thread([this] { body_(stop_.get_token()); });
  }
  void RequestStop() { stop_.request_stop(); }

 private:
  std::function<void(std::stop_token)> body_;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace kernelwright::service
