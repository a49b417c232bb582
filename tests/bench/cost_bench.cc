// Speed and memory of the cost model, from one run: how fast a schedule is read, how long the replay of whole programs
// takes, how much memory the largest kernel needs. Times are of the CPU, so that other work on the machine does not
// count.
//
// usage: kw_cost_bench                 a table for the golden programs
//        kw_cost_bench DIR CHIP …      the same for folders of dumps; "DIR CHIP SECONDS" lines follow for a comparison
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/gzip.h"
#include "daemon/compiler/bundles.h"
#include "daemon/cost/chips.h"
#include "daemon/cost/program_estimate.h"

namespace {

using namespace kernelwright;
namespace fs = std::filesystem;

constexpr size_t kParsedText = size_t{16} << 20;
constexpr int kRepetitions = 5;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (path.extension() != ".gz") return text.str();
  auto plain = GzipDecompress(text.str());
  return plain ? *std::move(plain) : std::string();
}

std::vector<cost::Dump> Dumps(const std::vector<fs::path>& folders) {
  std::vector<cost::Dump> dumps;
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (name.ends_with(".gz")) name.resize(name.size() - 3);
      if (name.ends_with(".txt")) dumps.push_back({name, Read(entry.path())});
    }
  }
  return dumps;
}

bool IsSchedule(const std::string& name) {
  return name.ends_with("-final_bundles.txt") && name.find("schedule-analysis") == std::string::npos;
}

// Peak of the process' memory in bytes; the peak before is forgotten.
void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }
size_t StatusBytes(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoul(line.substr(line.find(':') + 1)) * 1024;
  }
  return 0;
}

struct Program {
  std::string name;
  std::string chip;
  std::vector<fs::path> folders;
};

// Whole schedules of `programs` until there is enough text to time. Returns megabytes a second: the median of runs.
double ParseSpeed(const std::vector<Program>& programs, size_t* bytes) {
  std::vector<std::string> texts;
  *bytes = 0;
  for (size_t i = 0; *bytes < kParsedText && i < programs.size() * 1000; ++i) {
    for (cost::Dump& dump : Dumps(programs[i % programs.size()].folders)) {
      if (!IsSchedule(dump.name)) continue;
      *bytes += dump.text.size();
      texts.push_back(std::move(dump.text));
    }
  }
  std::vector<double> speeds;
  for (int run = 0; run < kRepetitions; ++run) {
    std::vector<std::string> copies = texts;
    const double start = CpuSeconds();
    size_t bundles = 0;
    for (std::string& text : copies) {
      const auto parsed = compiler::ParseBundles(std::move(text));
      if (parsed) bundles += parsed->bundle_count();
    }
    const double seconds = CpuSeconds() - start;
    if (bundles > 0) speeds.push_back(static_cast<double>(*bytes) / 1e6 / seconds);
  }
  std::sort(speeds.begin(), speeds.end());
  return speeds.empty() ? 0 : speeds[speeds.size() / 2];
}

int Run(const std::vector<Program>& programs, const cost::ChipTable& chips, bool compare) {
  size_t bytes = 0;
  const double speed = ParseSpeed(programs, &bytes);
  std::printf("parse: %.0f MB/s of CPU time (%.1f MB of schedules, median of %d runs)\n\n", speed,
              static_cast<double>(bytes) / 1e6, kRepetitions);
  std::printf(
      "| program | chip | schedules, MB | estimate, ms of CPU | memory / largest schedule | result "
      "|\n|---|---|---|---|---|---|\n");
  std::vector<std::string> lines;
  for (const Program& program : programs) {
    const cost::Chip* chip = chips.Find(program.chip);
    if (chip == nullptr) continue;
    const auto dumps = Dumps(program.folders);
    size_t total = 0;
    size_t largest = 0;
    for (const cost::Dump& dump : dumps) {
      if (!IsSchedule(dump.name)) continue;
      total += dump.text.size();
      largest = std::max(largest, dump.text.size());
    }
    std::vector<double> times;
    std::string outcome;
    double memory = 0;
    for (int run = 0; run < kRepetitions; ++run) {
      auto copy = dumps;
      // Memory that is free but kept would hide what is taken now; to give it back would slow down the other runs.
      if (run == 0) malloc_trim(0);
      ResetPeak();
      const size_t before = StatusBytes("VmRSS");
      const double start = CpuSeconds();
      const cost::CostResult result = cost::EstimateFromDumps(std::move(copy), *chip, {}, {});
      times.push_back(CpuSeconds() - start);
      // The text itself was there before.
      if (run == 0)
        memory = static_cast<double>(StatusBytes("VmHWM") - before + largest) / static_cast<double>(largest);
      const auto* estimate = std::get_if<cost::Estimate>(&result);
      char text[64];
      std::snprintf(text, sizeof(text), "%.4f ms", estimate == nullptr ? 0 : estimate->milliseconds);
      outcome = estimate == nullptr ? "refused" : text;
    }
    std::sort(times.begin(), times.end());
    const double seconds = times[times.size() / 2];
    // A page more or less is much of a small schedule.
    char ratio[32] = "–";
    if (largest > (size_t{1} << 20)) std::snprintf(ratio, sizeof(ratio), "%.2f", memory);
    std::printf("| %s | %s | %.2f | %.2f | %s | %s |\n", program.name.c_str(), program.chip.c_str(),
                static_cast<double>(total) / 1e6, seconds * 1e3, ratio, outcome.c_str());
    char line[512];
    std::snprintf(line, sizeof(line), "time %s %s %.6f", program.folders.front().c_str(), program.chip.c_str(),
                  seconds);
    lines.emplace_back(line);
  }
  if (compare) {
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path top = KW_SOURCE_DIR;
  const auto chips = cost::ParseChips(Read(top / "agents/chips.json"));
  if (!chips) {
    std::fprintf(stderr, "%s\n", chips.error().ToString().c_str());
    return 5;
  }
  std::vector<Program> programs;
  for (int i = 1; i + 1 < argc; i += 2) programs.push_back({fs::path(argv[i]).filename(), argv[i + 1], {argv[i]}});
  if (argc > 1) return Run(programs, *chips, true);
  const fs::path golden = top / "daemon/cost/testdata";
  for (const char* chip : {"v5e", "v5p", "v6e", "tpu7x"}) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(golden / chip)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (name != "late") programs.push_back({name, chip, {golden / chip / name, golden / chip / "late"}});
    }
  }
  return Run(programs, *chips, false);
}
