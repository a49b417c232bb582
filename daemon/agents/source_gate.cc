// Walks the concrete syntax tree for the constructs by which a candidate could reach the host, the clock, the checker
// or an earlier result; see source_gate.h.
#include "daemon/agents/source_gate.h"

#include <map>
#include <set>
#include <utility>

#include "daemon/agents/gate_list.h"
#include "daemon/kernels/syntax.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::agents {
namespace {

using kernels::Node;

// Modules that reach files, processes, the network, the clock or the interpreter's own state.
const std::set<std::string_view>& ForbiddenModules() {
  static const std::set<std::string_view> modules = {
      "os",         "sys",       "subprocess",  "socket",   "threading", "time",
      "ctypes",     "importlib", "builtins",    "signal",   "gc",        "inspect",
      "io",         "pathlib",   "shutil",      "pickle",   "marshal",   "multiprocessing",
      "concurrent", "asyncio",   "atexit",      "tempfile", "weakref",   "types",
      "runpy",      "code",      "faulthandler"};
  return modules;
}

bool IsForbiddenCall(std::string_view callee) {
  static const std::set<std::string_view> names = {"eval",   "exec", "compile", "__import__", "open",  "globals",
                                                   "locals", "vars", "setattr", "delattr",    "input", "breakpoint"};
  if (names.contains(callee)) return true;
  for (std::string_view tail : {"pure_callback", "io_callback", "debug.callback", "host_callback.call", "config.update",
                                "block_until_ready", "device_put", "clear_caches"}) {
    if (callee == tail) return true;
    if (callee.size() > tail.size() && callee.ends_with(tail) && callee[callee.size() - tail.size() - 1] == '.') {
      return true;
    }
  }
  return callee.find("jax.profiler") != std::string_view::npos;
}

bool IsCachingDecorator(std::string_view decorator) {
  return decorator.find("lru_cache") != std::string_view::npos || decorator.ends_with(".cache") ||
         decorator == "cache" || decorator.find("cached_property") != std::string_view::npos;
}

std::string_view FirstName(std::string_view dotted) { return dotted.substr(0, dotted.find('.')); }

class Finder {
 public:
  explicit Finder(const kernels::SourceFile& file) {
    for (const kernels::Import& import : file.imports()) imported_.insert(import.alias);
  }

  bool Visit(const Node& node) {
    const std::string_view type = node.type();
    if (type == "import_statement" || type == "import_from_statement") {
      VisitImport(node);
    } else if (type == "call") {
      const std::string_view callee = node.Field("function").text();
      if (IsForbiddenCall(callee)) Add("call", callee, node);
      if (AtModuleLevel(node) && (callee.starts_with("jnp.") || callee.starts_with("np.") ||
                                  callee.starts_with("numpy.") || callee.starts_with("jax.numpy."))) {
        Add("module array", node.text(), node);
      }
    } else if (type == "keyword_argument") {
      if (node.Field("name").text() == "interpret") Add("interpret", node.text(), node);
    } else if (type == "try_statement") {
      Add("try", "try/except", node);
    } else if (type == "global_statement" || type == "nonlocal_statement") {
      Add("global", node.text(), node);
    } else if (type == "decorator") {
      if (IsCachingDecorator(node.text())) Add("cache", node.text(), node);
    } else if (type == "assignment" || type == "augmented_assignment") {
      VisitAssignment(node.Field("left"));
    } else if (type == "attribute") {
      const std::string_view name = node.Field("attribute").text();
      if (name.starts_with("__") && name.ends_with("__") && name != "__name__" && name != "__init__") {
        Add("call", name, node);
      }
    }
    return true;
  }

  std::vector<SourceFinding> Take() { return std::move(findings_); }

 private:
  void Add(std::string_view kind, std::string_view text, const Node& node) {
    findings_.push_back({std::string(kind), std::string(text), node.row() + 1});
  }

  void VisitImport(const Node& node) {
    const Node module = node.Field("module_name");
    if (module) {
      if (ForbiddenModules().contains(FirstName(module.text()))) Add("import", module.text(), node);
      return;
    }
    for (const Node& child : node.NamedChildren()) {
      const std::string_view name = child.Is("aliased_import") ? child.Field("name").text() : child.text();
      if (ForbiddenModules().contains(FirstName(name))) Add("import", name, node);
    }
  }

  // `jax.lax.dot = f` patches a module that others use.
  void VisitAssignment(const Node& left) {
    if (left.Is("attribute") && imported_.contains(std::string(FirstName(left.text()))))
      Add("patch", left.text(), left);
    for (const Node& child : left.NamedChildren()) {
      if (child.Is("attribute")) VisitAssignment(child);
    }
  }

  static bool AtModuleLevel(const Node& node) {
    for (Node up = node.parent(); up; up = up.parent()) {
      if (up.Is("function_definition") || up.Is("lambda")) return false;
    }
    return true;
  }

  std::set<std::string> imported_;
  std::vector<SourceFinding> findings_;
};

std::string Signature(const kernels::FunctionInfo& function) {
  std::string text;
  for (const kernels::FunctionParameter& parameter : function.parameters) {
    text += parameter.name;
    if (parameter.keyword_only) text += "/keyword";
    if (parameter.variadic) text += "/variadic";
    if (!parameter.default_text.empty()) text += "/default";
    text += ' ';
  }
  return text;
}

}  // namespace

std::vector<SourceFinding> FindForbidden(std::string_view text) {
  const kernels::SourceFile file("", std::string(text));
  Finder finder(file);
  kernels::Walk(file.tree().root(), [&](const Node& node) { return finder.Visit(node); });
  return finder.Take();
}

GateResult CheckSource(const std::string& path, std::string_view original, std::string_view candidate,
                       std::string_view function) {
  const kernels::SourceFile before(path, std::string(original));
  const kernels::SourceFile after(path, std::string(candidate));
  if (const Status syntax = after.CheckSyntax(); !syntax.ok()) return FailGate("G10", syntax.ToString());

  std::map<std::pair<std::string, std::string>, int> allowed;
  for (const SourceFinding& finding : FindForbidden(original)) ++allowed[{finding.kind, finding.text}];
  for (const SourceFinding& finding : FindForbidden(candidate)) {
    if (--allowed[{finding.kind, finding.text}] < 0) {
      return FailGate("G10", path + ":" + std::to_string(finding.line) + ": the edit adds a forbidden " + finding.kind +
                                 ": " + finding.text);
    }
  }
  if (!function.empty()) {
    const auto old_function = before.FindFunction(function);
    const auto new_function = after.FindFunction(function);
    if (!new_function) return FailGate("G10", "the edit removes " + std::string(function));
    if (old_function && Signature(*old_function) != Signature(*new_function)) {
      return FailGate("G10", path + ":" + std::to_string(new_function->position.line) +
                                 ": the edit changes the signature of " + std::string(function));
    }
  }
  return Pass("G10");
}

}  // namespace kernelwright::agents
