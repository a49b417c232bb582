// A worker for tests that speaks the real protocol and misbehaves on command. The first argument says how it starts;
// the first chip of a probe job says how it treats that job. It exists to bring about what a real worker does rarely:
// dying, hanging, writing garbage.
//
// starts: ok, silent (never answers), missing (lacks jax), no_module, syntax, garbage, old_version, problem (an old
// jax), slow FILE (answers
//         once FILE exists)
// jobs:   ok, log, big, env, crash, exit, garbage, hang (answers when cancelled), deaf (never answers), refuse,
//         no_payload, crash_unless:FILE (makes FILE and dies, unless it exists), hold (ends, but leaves a process of
//         another group with its pipes), mute (stops reading its input), wait:FILE (answers once FILE exists)
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/worker/framing.h"
#include "daemon/worker/marshal_jobs.h"

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;

std::mutex write_mutex;

void Reply(const v1::WorkerReply& reply) {
  const std::lock_guard lock(write_mutex);
  if (!WriteFrame(1, reply.SerializeAsString(), {}).ok()) ::_exit(9);
}

void WriteText(int fd, const std::string& text) {
  if (::write(fd, text.data(), text.size()) < 0) ::_exit(9);
}

// Blocks until a file exists; told by the kernel, so nothing sleeps.
void AwaitFile(const fs::path& path) {
  const int watch = ::inotify_init1(IN_CLOEXEC);
  ::inotify_add_watch(watch, path.parent_path().c_str(), IN_CREATE | IN_MOVED_TO);
  while (!fs::exists(path)) {
    char events[4096];
    if (::read(watch, events, sizeof events) <= 0) ::_exit(9);
  }
  ::close(watch);
}

[[noreturn]] void Die() {
  ::kill(::getpid(), SIGKILL);
  ::_exit(9);
}

void HoldPipes() {
  if (::fork() != 0) ::_exit(0);
  ::setsid();
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {  // until the test is done with it
  }
  ::_exit(0);
}

std::string Environment() {
  std::string text;
  for (char** entry = environ; *entry != nullptr; ++entry) text += std::string(*entry) + "\n";
  return text;
}

void Finish(uint64_t id, const std::string& detail, v1::JobResult::Outcome outcome = v1::JobResult::DONE) {
  v1::WorkerReply reply;
  reply.set_id(id);
  reply.mutable_result()->set_outcome(outcome);
  if (outcome == v1::JobResult::DONE) {
    v1::ProbeResult::Chip& chip = *reply.mutable_result()->mutable_probe()->add_chips();
    chip.set_chip(std::to_string(::getpid()));
    chip.set_compiles(true);
    chip.set_detail(detail);
  }
  Reply(reply);
}

void Treat(uint64_t id, const std::string& how) {
  v1::WorkerReply reply;
  reply.set_id(id);
  const std::string file = how.substr(how.find(':') + 1);
  if (how == "log") {
    reply.mutable_log()->set_role("candidate");
    reply.mutable_log()->set_text("\x1b[31mhello");
    Reply(reply);
    Finish(id, "logged");
  } else if (how == "big") {
    Finish(id, std::string(5 << 20, 'x'));
  } else if (how == "env") {
    Finish(id, Environment());
  } else if (how == "crash") {
    WriteText(2, "Fatal Python error: Segmentation fault\n");
    Die();
  } else if (how == "exit") {
    WriteText(2, "first line\nlast words api_key=sk-abcdefghijklmnopqrstuvwxyz012345");
    ::_exit(7);
  } else if (how == "garbage") {
    WriteText(1,
              "\x03"
              "abc");
  } else if (how == "refuse") {
    reply.set_protocol_error("I do not know that job");
    Reply(reply);
  } else if (how == "no_payload") {
    reply.mutable_result()->set_outcome(v1::JobResult::DONE);
    Reply(reply);
  } else if (how.starts_with("crash_unless:")) {
    if (fs::exists(file)) return Finish(id, "second time");
    std::ofstream(file).close();
    Die();
  } else if (how.starts_with("wait:")) {
    std::thread([id, file] {
      AwaitFile(file);
      Finish(id, "waited");
    }).detach();
  } else if (how == "hold") {
    HoldPipes();
  } else if (how == "mute") {
    ::pause();
  } else if (how != "hang" && how != "deaf") {
    Finish(id, how);
  }
}

void Start(const std::vector<std::string>& arguments) {
  const std::string& how = arguments.at(0);
  if (how == "missing") {
    WriteText(2, "some noise\nkernelwright-worker: error: jax is not installed in this interpreter\n");
    ::_exit(3);
  }
  if (how == "no_module") {
    WriteText(2, "Traceback (most recent call last):\nModuleNotFoundError: No module named 'google.protobuf'\n");
    ::_exit(1);
  }
  if (how == "syntax") {
    WriteText(2, "    match x:\nSyntaxError: invalid syntax\n");
    ::_exit(1);
  }
  if (how == "garbage")
    WriteText(1, "Hello from a print in sitecustomize, which came before the worker could take its output away.\n");
  if (how == "slow") AwaitFile(arguments.at(1));
}

int Serve(const std::vector<std::string>& arguments) {
  Start(arguments);
  FrameReader reader(0);
  std::map<uint64_t, std::string> jobs;
  while (true) {
    auto message = reader.Next({});
    if (!message || !message->has_value()) return 0;
    v1::WorkerRequest request;
    if (!ParseMessage(**message, request)) return 1;
    v1::WorkerReply reply;
    reply.set_id(request.id());
    if (request.has_hello() && arguments[0] != "silent") {
      v1::HelloReply& hello = *reply.mutable_hello();
      hello.set_protocol_version(arguments[0] == "old_version" ? 7 : 1);
      hello.set_python("fake");
      if (arguments[0] == "problem") hello.set_problem("jax 0.4.1 is too old");
      hello.set_sandbox(v1::HelloReply::LANDLOCK);
      hello.set_pid(static_cast<uint32_t>(::getpid()));
      (*hello.mutable_versions())["jax"] = "0.0";
      Reply(reply);
    } else if (request.has_job()) {
      const std::string how = request.job().has_probe() ? request.job().probe().chips(0) : "ok";
      jobs[request.id()] = how;
      Treat(request.id(), how);
    } else if (request.has_cancel()) {
      if (jobs[request.cancel().job()] != "deaf") Finish(request.cancel().job(), "", v1::JobResult::CANCELLED);
    } else if (request.has_shutdown()) {
      return 0;
    }
  }
}

}  // namespace
}  // namespace kernelwright::worker

int main(int argc, char** argv) { return kernelwright::worker::Serve({argv + 1, argv + argc}); }
