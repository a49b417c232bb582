// Runs independent blocking calls side by side on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

namespace kernelwright::agents {

// Calls work(i) for i in 0 … count-1, at most `width` at once, in order of start; returns when all that started have
// ended. After `stop`, or once work returned false, nothing new starts.
inline void RunParallel(size_t count, int width, std::stop_token stop, const std::function<bool(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> go_on{true};
  auto loop = [&] {
    while (go_on.load() && !stop.stop_requested()) {
      const size_t i = next.fetch_add(1);
      if (i >= count) return;
      if (!work(i)) go_on.store(false);
    }
  };
  if (width <= 1 || count <= 1) return loop();
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < std::min(static_cast<size_t>(width), count); ++i) threads.emplace_back(loop);
}

}  // namespace kernelwright::agents
