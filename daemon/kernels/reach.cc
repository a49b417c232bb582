// Closure over names; see reach.h.
#include "daemon/kernels/reach.h"

#include <algorithm>
#include <deque>

namespace kernelwright::kernels {
namespace {

std::string LastPart(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

std::string FirstPart(const std::string& dotted) { return dotted.substr(0, dotted.find('.')); }

class Closure {
 public:
  explicit Closure(const std::vector<UserFile>& files) : files_(files) {}

  void AddFunction(const SourceFile* file, const FunctionInfo* function) {
    if (!seen_functions_.insert(function).second) return;
    functions_.emplace_back(file, function);
    AddNames(*file, file->References(*function));
  }

  // Follows names until nothing new is found.
  void Run() {
    while (!pending_.empty()) {
      const std::string name = std::move(pending_.front());
      pending_.pop_front();
      for (const UserFile& user : files_) Resolve(*user.source, name);
    }
  }

  const std::vector<std::pair<const SourceFile*, const FunctionInfo*>>& functions() const { return functions_; }
  const std::vector<ReachedConstant>& constants() const { return constants_; }

 private:
  void AddName(const std::string& name) {
    if (names_.insert(name).second) pending_.push_back(name);
  }

  void AddNames(const SourceFile& file, const ReferencedNames& references) {
    for (const std::string& name : references.names) AddName(name);
    for (const std::string& attribute : references.attributes) AddName(LastPart(attribute));
    // A name that an import bound to something else stands for that.
    for (const Import& entry : file.imports()) {
      if (!entry.name.empty() && entry.name != entry.alias && references.names.contains(entry.alias)) {
        AddName(entry.name);
      }
    }
  }

  void Resolve(const SourceFile& file, const std::string& name) {
    for (const FunctionInfo& function : file.functions()) {
      // A class's name stands for all its methods.
      if (function.name == name || (function.in_class && FirstPart(function.qualified_name) == name)) {
        AddFunction(&file, &function);
      }
    }
    for (const ModuleConstant& constant : file.constants()) {
      const bool of_class = constant.name.find('.') != std::string::npos && FirstPart(constant.name) == name;
      if ((LastPart(constant.name) != name && !of_class) || !seen_constants_.insert(&constant).second) continue;
      constants_.push_back({&file, &constant});
      AddNames(file, file.References(constant.value_range));
    }
  }

  const std::vector<UserFile>& files_;
  std::set<std::string> names_;
  std::deque<std::string> pending_;
  std::set<const FunctionInfo*> seen_functions_;
  std::set<const ModuleConstant*> seen_constants_;
  std::vector<std::pair<const SourceFile*, const FunctionInfo*>> functions_;
  std::vector<ReachedConstant> constants_;
};

}  // namespace

Reached FindReachable(const std::vector<UserFile>& files, const SourceFile& entry_file, const FunctionInfo& entry) {
  Closure closure(files);
  for (const FunctionInfo& function : entry_file.functions()) {
    if (function.range == entry.range) closure.AddFunction(&entry_file, &function);
  }
  const auto was_entered = [](const UserFile& user, const FunctionInfo& function) {
    return std::any_of(user.entered.begin(), user.entered.end(), [&](const std::string& name) {
      return name == function.qualified_name || name.starts_with(function.qualified_name + ".");
    });
  };
  // What the trace saw is reached, however it was called.
  for (const UserFile& user : files) {
    for (const FunctionInfo& function : user.source->functions()) {
      if (user.entered_known && user.entered.contains(function.qualified_name)) {
        closure.AddFunction(user.source, &function);
      }
    }
  }
  closure.Run();

  Reached reached;
  reached.constants = closure.constants();
  for (const auto& [file, function] : closure.functions()) {
    const bool nested = std::any_of(closure.functions().begin(), closure.functions().end(), [&](const auto& other) {
      return other.first == file && other.second != function &&
             other.second->range_with_decorators.begin <= function->range_with_decorators.begin &&
             other.second->range_with_decorators.end >= function->range_with_decorators.end;
    });
    if (nested) continue;
    const auto user = std::find_if(files.begin(), files.end(), [&](const UserFile& u) { return u.source == file; });
    reached.functions.push_back({file, function, !user->entered_known || was_entered(*user, *function)});
  }
  return reached;
}

}  // namespace kernelwright::kernels
