// Which Python interpreter a file is worked on with, and why. A pure decision: what exists on the machine is asked
// through an interface, so that every case can be tested. The order: what the user named (--python or the setting), the
// active environment (VIRTUAL_ENV), the nearest .venv above the file, our own environment.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::worker {

// What the decision may ask of the machine.
class InterpreterSystem {
 public:
  virtual ~InterpreterSystem() = default;
  virtual bool IsExecutableFile(const std::filesystem::path& path) const = 0;
  virtual bool IsFolder(const std::filesystem::path& path) const = 0;
  // Whether the folder belongs to this user or to root. Another user's .venv in a shared folder must not run as us.
  virtual bool IsOurs(const std::filesystem::path& folder) const = 0;
  // First match of a program name in a PATH-like list.
  virtual std::optional<std::filesystem::path> FindOnPath(const std::string& name, const std::string& path) const = 0;
};

// The machine itself; lives for ever.
const InterpreterSystem& RealInterpreterSystem();

struct InterpreterQuery {
  std::string python;             // --python or the setting; empty: none. A program, a path, or an environment's folder
  std::string file;               // the user's file, absolute or relative to working_directory; may be empty
  std::string working_directory;  // absolute
  std::map<std::string, std::string> environment;  // of the client: PATH, VIRTUAL_ENV, KERNELWRIGHT_HOME, HOME, …
};

struct InterpreterChoice {
  enum class Origin { kNamed, kActive, kVenv, kOwn };
  std::filesystem::path python;  // absolute, links not followed: an environment is known by the path it is run by
  Origin origin = Origin::kOwn;
  std::string reason;                  // "the .venv above the file", for doctor and for errors
  std::vector<std::string> looked_at;  // one line per place, in order, the chosen one last
};

// kEnvironment when there is none: the message lists what was looked at, the remedy how to get one. A name that the
// user gave and that does not exist is an error, never a reason to take another one.
Expected<InterpreterChoice> ChooseInterpreter(const InterpreterQuery& query, const InterpreterSystem& system);

// Folder of our own environment: $KERNELWRIGHT_HOME/python, else kernelwright/python in $XDG_DATA_HOME or
// $HOME/.local/share. Empty when none of the three variables is set.
std::filesystem::path OwnEnvironmentFolder(const std::map<std::string, std::string>& environment);

}  // namespace kernelwright::worker
