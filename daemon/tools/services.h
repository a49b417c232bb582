// What the tools need from the rest of the product, as interfaces over plain values: a driver gives an agent exactly
// the ones that its stage allows. A null one means that the tool is not offered.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/base/json.h"
#include "daemon/base/status.h"
#include "daemon/cost/chips.h"
#include "daemon/tools/knowledge.h"
#include "daemon/tools/workspace.h"

namespace kernelwright::tools {

// Work on the kernel as it is in the workspace now.
struct ActionRequest {
  std::map<std::string, std::string> files;  // relative path -> text, of what was edited
  std::string function;                      // qualified name; empty: the one that the run is about
  std::vector<std::string> chips;            // empty: those of the run
};

struct ActionReport {
  bool good = false;      // it compiled, its values are right, a better setting was found
  std::string text;       // for the model: the root cause and its line first, no whole logs
  Json data;              // for events
  bool progress = false;  // better than anything before in this run
};

class KernelActions {
 public:
  virtual ~KernelActions() = default;
  // Values and races in the interpreter, against the frozen reference.
  virtual Expected<ActionReport> Check(const ActionRequest& request, const std::stop_token& stop) = 0;
  // Syntax, lint, trace and the TPU's compiler.
  virtual Expected<ActionReport> Compile(const ActionRequest& request, const std::stop_token& stop) = 0;
  // Where the cycles go, by line, with what bounds them.
  virtual Expected<ActionReport> Profile(const ActionRequest& request, const std::stop_token& stop) = 0;
  // Block sizes by search.
  virtual Expected<ActionReport> Tune(const ActionRequest& request, const std::stop_token& stop) = 0;
};

// What a name of the installed jax is. Answered by a worker that imports it: the version is the user's.
struct ApiEntry {
  std::string name;       // as it was found: "jax.experimental.pallas.BlockSpec"
  std::string kind;       // class, function, module, value
  std::string signature;  // with its name; empty when there is none
  std::string doc;
  std::string source;                // of its definition; may be cut
  std::string file;                  // within the package
  int line = 0;                      // 0: not known
  std::string version;               // "jax 0.10.2"
  std::vector<std::string> members;  // of a module or class: public names
};

class ApiLibrary {
 public:
  virtual ~ApiLibrary() = default;
  // kNotFound with the names nearest to it.
  virtual Expected<ApiEntry> Lookup(const std::string& name, const std::stop_token& stop) = 0;
};

// What was tried in this run, in order.
struct HistoryEntry {
  std::string id;      // "c3"
  std::string what;    // one line
  std::string status;  // passed, failed, rejected, best, …
  std::string gate;    // that rejected it
  std::string why;     // root cause, one or a few lines
  std::optional<double> estimate_ms;
  std::string chip;
  std::string evidence;  // class of the figure
};

class RunHistory {
 public:
  virtual ~RunHistory() = default;
  virtual Expected<std::vector<HistoryEntry>> Entries() = 0;
};

struct ToolServices {
  Workspace* workspace = nullptr;
  bool may_edit = false;  // false in stages that only read: then propose_edit is not offered
  KernelActions* actions = nullptr;
  ApiLibrary* api = nullptr;
  const KnowledgeIndex* knowledge = nullptr;
  RunHistory* history = nullptr;
  const cost::ChipTable* chips = nullptr;
};

}  // namespace kernelwright::tools
