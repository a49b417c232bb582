// look_up_api: signature, documentation and source of a name of the installed jax, so that no model has to guess.
#include <algorithm>
#include <cctype>
#include <set>

#include "daemon/base/text.h"
#include "daemon/tools/registry.h"

namespace kernelwright::tools {
namespace {

constexpr size_t kMostDoc = 4000;
constexpr size_t kMostSource = 5000;

// "jax.numpy.where", "pl.BlockSpec": names with dots, nothing that could be run.
bool IsDottedName(const std::string& name) {
  bool start = true;
  for (char c : name) {
    if (c == '.') {
      if (start) return false;
      start = true;
      continue;
    }
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (!letter && (start || std::isdigit(static_cast<unsigned char>(c)) == 0)) return false;
    start = false;
  }
  return !start && name.size() <= 200;
}

// What kernels usually import these as.
std::string Expand(const std::string& name) {
  struct Alias {
    std::string_view from;
    std::string_view to;
  };
  for (const auto& [from, to] :
       {Alias{"pl.", "jax.experimental.pallas."}, Alias{"pltpu.", "jax.experimental.pallas.tpu."},
        Alias{"jnp.", "jax.numpy."}, Alias{"lax.", "jax.lax."}}) {
    if (name.starts_with(from)) return std::string(to) + name.substr(from.size());
  }
  return name;
}

class LookUpApiTool : public Tool {
 public:
  explicit LookUpApiTool(ApiLibrary& library) : library_(library) {}

  const models::ToolSpec& spec() const override { return spec_; }

  Expected<ToolOutput> Run(const Json& arguments, const std::stop_token& stop) override {
    const std::string given = TextArgument(arguments, "name");
    if (!IsDottedName(given)) {
      return ToolError("`name` must be a dotted name such as jax.experimental.pallas.BlockSpec, got " +
                       Truncate(SanitizeUtf8(given), 80));
    }
    const Expected<ApiEntry> entry = library_.Lookup(Expand(given), stop);
    if (!entry) {
      const ErrorKind kind = entry.error().kind();
      if (kind == ErrorKind::kCancelled || kind == ErrorKind::kInternal) return Fail(entry.error());
      return ToolError(entry.error());
    }
    std::string text = entry->name + ": " + entry->kind + " (" + entry->version + ")\n";
    if (!entry->signature.empty()) text += entry->signature + "\n";
    if (!entry->doc.empty()) text += "\n" + CutLines(entry->doc, kMostDoc, "set `source` for the code") + "\n";
    if (!entry->members.empty()) text += "\nmembers: " + Truncate(Join(entry->members, ", "), 3000) + "\n";
    if (arguments.value("source", false)) {
      text += "\n" + entry->file + (entry->line > 0 ? ":" + std::to_string(entry->line) : "") + "\n" +
              (entry->source.empty() ? "The source is not available.\n"
                                     : CutLines(entry->source, kMostSource, "look up a member of it") + "\n");
    }
    ToolOutput output{.text = std::move(text), .data = {{"name", entry->name}, {"version", entry->version}}};
    output.progress = seen_.insert(output.text).second;
    return output;
  }

 private:
  ApiLibrary& library_;
  std::set<std::string> seen_;
  const models::ToolSpec spec_{
      "look_up_api",
      "Signature and documentation of a function or class of the installed jax. Prefixes pl., pltpu., jnp. and lax. "
      "are "
      "known. Look a name up before you use one that is not in the code already.",
      ObjectSchema({{"name", StringField("Dotted name: pl.BlockSpec, jax.lax.fori_loop")},
                    {"source", {{"type", "boolean"}, {"description", "Also the source code"}}}},
                   {"name"})};
};

}  // namespace

std::vector<std::unique_ptr<Tool>> MakeLookUpApi(const ToolServices& services) {
  if (services.api == nullptr) return {};
  return OneTool<LookUpApiTool>(*services.api);
}

}  // namespace kernelwright::tools
