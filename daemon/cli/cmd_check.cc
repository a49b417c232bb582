// check: what is wrong with a file's kernels, where, on which chips, and what mends it.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "daemon/base/files.h"
#include "daemon/cli/check_fix.h"
#include "daemon/cli/check_json.h"
#include "daemon/cli/check_sarif.h"
#include "daemon/cli/check_view.h"
#include "daemon/cli/connection.h"
#include "daemon/cli/context.h"
#include "daemon/cli/interrupt.h"
#include "daemon/cli/target.h"
#include "daemon/kernels/diff.h"
#include "daemon/kernels/notebook.h"
#include "daemon/service/build_identity.h"

namespace kernelwright::cli {
namespace {

constexpr size_t kMaxStandardInput = size_t{16} << 20;

struct Flags {
  std::string target;
  std::string inputs;
  bool semantics = true;
  bool fixes = true;
  bool standard_input = false;
  bool sarif = false;
  bool raw = false;
  bool fix = false;
  bool diff = false;
};

Expected<agents::CheckRequest> MakeRequest(const CommonOptions& common, const Flags& flags) {
  Expected<Target> target = ParseTarget(flags.target);
  if (!target) return Fail(target.error());
  agents::CheckRequest request;
  request.file = target->file;
  request.function = target->function;
  request.inputs = flags.inputs;
  request.chips = common.chips;
  request.semantics = flags.semantics;
  request.fixes = flags.fixes || flags.fix;
  request.python = common.python;
  request.timeout_seconds = common.timeout_seconds;
  request.budget_seconds = common.budget_seconds;
  request.sandbox = common.sandbox;
  request.working_directory = std::filesystem::current_path().string();
  request.environment = InterpreterEnvironment();
  if (flags.standard_input) {
    auto text = ReadFile("/dev/stdin", kMaxStandardInput);
    if (!text) return Fail(text.error());
    request.files.push_back({request.file, *std::move(text)});
  }
  return request;
}

// The texts of the files that diagnostics and fixes name, as they were checked: notebooks as modules.
struct CheckedTexts {
  Texts texts;
  std::map<std::string, kernels::Notebook> notebooks;
};

CheckedTexts TextsOf(const agents::CheckRequest& request, const agents::CheckResult& result) {
  Texts texts;
  for (const agents::FileText& file : request.files) texts[file.path] = file.text;
  const auto read = [&](const std::string& path) {
    if (path.empty() || texts.contains(path)) return;
    if (auto text = ReadFile(path, kMaxStandardInput)) texts[path] = *std::move(text);
  };
  for (const diagnose::Diagnostic& diagnostic : result.diagnostics) {
    read(diagnostic.place.file);
    for (const diagnose::Fix& fix : diagnostic.fixes) {
      for (const kernels::TextEdit& edit : fix.edits) read(edit.file);
    }
  }
  CheckedTexts checked;
  for (auto& [path, text] : texts) {
    if (!kernels::Notebook::IsNotebook(path)) continue;
    auto notebook = kernels::Notebook::Parse(path, text);
    if (!notebook) continue;  // the check has said so
    text = notebook->module();
    checked.notebooks.emplace(path, *std::move(notebook));
  }
  checked.texts = std::move(texts);
  return checked;
}

// Modules of notebooks back in their notebooks.
Expected<FixedTexts> AsFiles(FixedTexts fixed, const CheckedTexts& checked) {
  for (auto& [path, text] : fixed.after) {
    const auto notebook = checked.notebooks.find(path);
    if (notebook == checked.notebooks.end()) continue;
    auto after = notebook->second.WithModule(text);
    if (!after) return Fail(after.error());
    text = *std::move(after);
    fixed.before[path] = notebook->second.json();
  }
  return fixed;
}

class CheckCommand {
 public:
  CheckCommand(Context* context, const Flags& flags) : context_(context), output_(context->output), flags_(flags) {}

  Expected<int> Run() {
    auto request = MakeRequest(context_->common, flags_);
    if (!request) return Fail(request.error());
    auto client = OpenClient(context_);
    if (!client) return Fail(client.error());
    client_ = *std::move(client);
    auto result = Check(*request);
    if (!result) return Fail(result.error());
    return flags_.fix ? Fix(*request, *std::move(result)) : Show(*request, *result);
  }

 private:
  Expected<agents::CheckResult> Check(const agents::CheckRequest& request) {
    std::stop_source stop;
    const InterruptWatcher interrupts([&stop](int count) {
      if (count > 1) ::_exit(ExitCode(ErrorKind::kCancelled));
      stop.request_stop();
    });
    return client_->Check(
        request,
        [this](const agents::CheckStageReport& stage) { output_.Note(RenderStage(stage, output_.error_style())); },
        stop.get_token());
  }

  Expected<int> Show(const agents::CheckRequest& request, const agents::CheckResult& result) {
    const std::string folder = request.working_directory;
    bool written = true;
    if (output_.json()) {
      written = output_.OutJson(CheckJson(request, result));
    } else if (flags_.sarif) {
      written = output_.OutJson(CheckSarif(result, folder, service::ThisBuild().version));
    } else {
      CheckedTexts checked = TextsOf(request, result);
      const CheckViewOptions options{flags_.raw, folder, std::move(checked.notebooks)};
      written = output_.Out(RenderCheck(result, checked.texts, options, output_.out_style()));
    }
    if (!result.failure.ok()) output_.Note("kernelwright: " + result.failure.ToString());
    if (!written) return Fail(ErrorKind::kEnvironment, "standard output cannot be written", "", "Free space there.");
    return agents::CheckExitCode(result);
  }

  // Several fixes, each proven alone, are proven together before anything is written; when they do not go together,
  // the first is taken.
  Expected<int> Fix(const agents::CheckRequest& request, const agents::CheckResult& result) {
    const CheckedTexts checked = TextsOf(request, result);
    auto trial = Try(request, result, checked, std::numeric_limits<size_t>::max());
    if (trial && trial->after && trial->after->has_errors() && trial->fixed.titles.size() > 1) {
      trial = Try(request, result, checked, 1);
    }
    if (!trial) return Fail(trial.error());
    if (!trial->after) {
      output_.Note("nothing to apply: no proven fix");
      return Show(request, result);
    }
    if (!trial->after->failure.ok()) return Fail(trial->after->failure);
    if (flags_.diff) {
      for (const auto& [path, text] : trial->fixed.after) {
        output_.Out(
            kernels::UnifiedDiff(NameInDiff(path, request.working_directory), trial->fixed.before.at(path), text));
      }
      return agents::CheckExitCode(result);
    }
    if (flags_.standard_input) {
      return Fail(ErrorKind::kUsage, "there is no file to write to", "--stdin", "Add --diff to see the fixes.");
    }
    if (Status written = WriteFixed(trial->files); !written.ok()) return Fail(written);
    for (const std::string& title : trial->fixed.titles) output_.Note("applied: " + title);
    return Show(request, *trial->after);
  }

  // Fixes taken together, and what a check says of the files with them.
  struct Trial {
    FixedTexts fixed;                          // as they are shown: notebooks as modules
    FixedTexts files;                          // as they are written
    std::optional<agents::CheckResult> after;  // nothing: there is no fix to take
  };

  Expected<Trial> Try(const agents::CheckRequest& request, const agents::CheckResult& result,
                      const CheckedTexts& checked, size_t most) {
    auto fixed = ApplyFixes(result.diagnostics, checked.texts, most);
    if (!fixed) return Fail(fixed.error());
    auto files = AsFiles(*fixed, checked);
    if (!files) return Fail(files.error());
    Trial trial{*std::move(fixed), *std::move(files), std::nullopt};
    if (trial.fixed.after.empty()) return trial;
    auto after = Check(Fixed(request, trial.files));
    if (!after) return Fail(after.error());
    trial.after = *std::move(after);
    return trial;
  }

  static agents::CheckRequest Fixed(agents::CheckRequest request, const FixedTexts& fixed) {
    for (const auto& [path, text] : fixed.after) {
      std::erase_if(request.files, [&path = path](const agents::FileText& file) { return file.path == path; });
      request.files.push_back({path, text});
    }
    request.fixes = false;
    return request;
  }

  static std::string NameInDiff(const std::string& file, const std::string& folder) {
    const std::filesystem::path relative = std::filesystem::path(file).lexically_relative(folder);
    if (!relative.empty() && *relative.begin() != "..") return relative.generic_string();
    return std::filesystem::path(file).relative_path().generic_string();
  }

  Context* context_;
  Output& output_;
  const Flags& flags_;
  std::unique_ptr<service::Client> client_;
};

}  // namespace

void AddCheck(CLI::App* program, Context* context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program->add_subcommand("check", "Say what is wrong with kernels, where, and what mends it");
  command
      ->add_option("target", flags->target,
                   "FILE.py for all functions with inputs, or FILE.py::function, FILE.py::Class.method")
      ->required()
      ->type_name("FILE.py[::function]");
  command
      ->add_option("--inputs", flags->inputs,
                   "Arguments, e.g. 'x=bf16[4096,4096],n=8'; else the comment '# kernelwright: …' above the function")
      ->type_name("TEXT");
  command->add_flag("--semantics,!--no-semantics", flags->semantics,
                    "Run the kernels in the interpreter too: races, unwritten memory, bounds (default)");
  command->add_flag("--fixes,!--no-fixes", flags->fixes, "Look for fixes and prove them (default)");
  command->add_flag("--stdin", flags->standard_input, "Check the text on standard input in place of the file's");
  auto* sarif = command->add_flag("--sarif", flags->sarif, "Print SARIF 2.1.0 on standard output");
  command->add_flag("--raw", flags->raw, "Show the texts of jax and the compiler whole");
  auto* fix = command->add_flag("--fix", flags->fix, "Apply the proven fixes, if the file is unchanged");
  command->add_flag("--diff", flags->diff, "With --fix: print the changes and write nothing")->needs(fix);
  AddCommonOptions(command, context,
                   "  kernelwright check matmul.py\n"
                   "  kernelwright check matmul.py::matmul --chip all --inputs 'x=bf16[4096,4096],y=bf16[4096,4096]'\n"
                   "  kernelwright check matmul.py --fix --diff\n"
                   "  kernelwright check matmul.py --sarif > check.sarif");
  sarif->excludes(command->get_option("--json"));
  command->callback([=] { context->command = [=] { return CheckCommand(context, *flags).Run(); }; });
}

}  // namespace kernelwright::cli
