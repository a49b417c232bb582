// Runs every target over its seeds, over damaged copies of them and over what fuzzing has found before. Part of the
// unit tests, also under sanitizers, so that what was fixed stays fixed without a fuzzer at hand.
// With a folder as argument it writes the seeds there instead, one folder for each target: the corpus of a fuzzer.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/base/gzip.h"
#include "tests/fuzz/targets.h"

namespace {

using kernelwright::fuzz::Target;
namespace fs = std::filesystem;

constexpr int kDamagedCopies = 3;
constexpr size_t kLongestSeed = 60000;

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (path.extension() != ".gz") return text.str();
  auto plain = kernelwright::GzipDecompress(text.str());
  return plain ? *std::move(plain) : std::string();
}

std::vector<fs::path> Files(const fs::path& root) {
  std::vector<fs::path> out;
  if (!fs::exists(root)) return out;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool IsSeed(const Target& target, const fs::path& path) {
  std::string name = path.filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const bool analysis = name.find("schedule-analysis") != std::string::npos;
  return std::any_of(target.seeds.begin(), target.seeds.end(), [&](std::string_view seed) {
    return name.ends_with(seed) && analysis == (seed.find("schedule-analysis") != std::string_view::npos);
  });
}

void Damage(std::string* text, uint64_t* state) {
  constexpr std::string_view kInserted = "{}[]()/*;%:,>!= \n0x9\0s_p$#\"";
  for (int i = 0; i < 6 && !text->empty(); ++i) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    (*text)[(*state >> 33) % text->size()] = kInserted[(*state >> 17) % kInserted.size()];
  }
}

int RunAll(const fs::path& top) {
  uint64_t state = 42;
  size_t inputs = 0;
  const auto golden = Files(top / "daemon/cost/testdata");
  for (const Target& target : kernelwright::fuzz::Targets()) {
    for (const fs::path& path : Files(top / "tests/fuzz/regressions" / std::string(target.name))) {
      target.run(Read(path));
      ++inputs;
    }
    target.run("");
    for (const fs::path& path : golden) {
      if (!IsSeed(target, path)) continue;
      std::string text = Read(path);
      if (text.size() > kLongestSeed) continue;
      target.run(text);
      for (int copy = 0; copy < kDamagedCopies; ++copy) {
        Damage(&text, &state);
        target.run(text);
      }
      inputs += 1 + kDamagedCopies;
    }
  }
  std::printf("%zu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}

int WriteSeeds(const fs::path& top, const fs::path& out) {
  size_t number = 0;
  for (const Target& target : kernelwright::fuzz::Targets()) {
    const fs::path folder = out / std::string(target.name);
    fs::create_directories(folder);
    auto files = Files(top / "tests/fuzz/regressions" / std::string(target.name));
    for (const fs::path& path : Files(top / "daemon/cost/testdata")) {
      if (IsSeed(target, path)) files.push_back(path);
    }
    for (const fs::path& path : files) {
      const std::string text = Read(path);
      if (text.size() > kLongestSeed) continue;
      std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary) << text;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path top = KW_SOURCE_DIR;
  return argc > 1 ? WriteSeeds(top, argv[1]) : RunAll(top);
}
