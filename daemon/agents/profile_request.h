// What `profile` asks of the engine and gets back; plain values, paths absolute. Mirrors profile.proto.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kernelwright::agents {

struct ProfileRequest {
  std::string file;
  std::string function;            // qualified name; empty: the only kernel function of the file
  std::string inputs;              // text of --inputs; empty: comment, module or capture
  std::vector<std::string> chips;  // "v6e", …, or "all"; empty: the default
  // What it is compared with: another function, another chip, or both; all empty: nothing.
  std::string against_file;
  std::string against_function;
  std::string against_chip;
  bool want_html = false;
  std::string python;                              // interpreter; empty: found as docs/environment.md says
  double timeout_seconds = 0;                      // per job; 0: the default
  double budget_seconds = 0;                       // for all; 0: no limit
  std::string sandbox;                             // auto, bubblewrap, landlock, none; empty: auto
  std::string working_directory;                   // of the client
  std::map<std::string, std::string> environment;  // as in RunRequest
};

struct ProfileReply {
  std::string result_json;  // the object of docs/json.md
  std::string html;         // the report as a page; empty unless asked for, or when nothing could be profiled
  int exit_code = 0;        // of the command
};

}  // namespace kernelwright::agents
