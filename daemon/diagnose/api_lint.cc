// Resolves each dotted name through the file's imports to its whole path and looks that up in the table of changed
// names. Arguments are looked at in the calls of the functions that the table names.
#include "daemon/diagnose/api_lint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/base/hash.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::diagnose {
namespace {

using kernels::ByteRange;
using kernels::Node;
using kernels::SourceFile;

constexpr std::string_view kPallas = "jax.experimental.pallas";
constexpr std::string_view kPallasTpu = "jax.experimental.pallas.tpu";

// Code that asks what there is (`hasattr`, a version, an except branch) handles both names.
bool IsGuarded(const Node& node) {
  const auto asks = [](std::string_view text) {
    return text.find("hasattr") != std::string_view::npos || text.find("getattr") != std::string_view::npos ||
           text.find("version") != std::string_view::npos;
  };
  for (Node up = node.parent(); up; up = up.parent()) {
    if (up.Is("try_statement")) return true;
    if (up.Is("if_statement") && asks(up.Field("condition").text())) return true;
    if ((up.Is("conditional_expression") || up.Is("boolean_operator")) && asks(up.text())) return true;
  }
  return false;
}

std::string LastPart(std::string_view path) { return std::string(path.substr(path.rfind('.') + 1)); }

std::vector<Node> PositionalArguments(const Node& call) {
  std::vector<Node> arguments;
  for (const Node& argument : call.Field("arguments").NamedChildren()) {
    if (argument.Is("keyword_argument") || argument.Is("dictionary_splat") || argument.Is("list_splat")) continue;
    arguments.push_back(argument);
  }
  return arguments;
}

Node KeywordArgument(const Node& call, std::string_view name) {
  for (const Node& argument : call.Field("arguments").NamedChildren()) {
    if (argument.Is("keyword_argument") && argument.Field("name").text() == name) return argument;
  }
  return {};
}

bool HasSplat(const Node& call) {
  const auto arguments = call.Field("arguments").NamedChildren();
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const Node& a) { return a.Is("dictionary_splat") || a.Is("list_splat"); });
}

class Linter {
 public:
  Linter(const SourceFile& file, const ApiNames& names, std::string_view jax_version)
      : file_(file), version_(jax_version), hash_(Sha256Hex(file.text())) {
    for (const ApiName& name : names.names()) {
      if (name.removed.empty() || CompareVersions(jax_version, name.removed) < 0) continue;
      const std::string path = name.module + "." + name.old_name;
      const bool about_arguments = !name.argument.empty() || name.kind == ApiName::Kind::kArgumentOrder;
      (about_arguments ? by_callee_ : by_path_)[path].push_back(&name);
    }
    for (const kernels::Import& import : file.imports()) {
      if (import.name == "*" || import.module.starts_with(".")) continue;
      std::string path = import.module;
      if (!import.name.empty()) {
        path += "." + import.name;
      } else if (import.alias == import.module.substr(0, import.module.find('.')) &&
                 import.range.end <= file.text().size() && !IsAliased(import)) {
        path = import.alias;  // `import jax.experimental.pallas` binds jax
      }
      const auto [it, is_new] = bound_.emplace(import.alias, path);
      if (!is_new && it->second != path) ambiguous_.insert(import.alias);
    }
  }

  std::vector<Diagnostic> Run() {
    CollectRebound();
    kernels::Walk(file_.tree().root(), [&](const Node& node) { return Visit(node); });
    std::stable_sort(found_.begin(), found_.end(), [](const Diagnostic& a, const Diagnostic& b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    return std::move(found_);
  }

 private:
  bool IsAliased(const kernels::Import& import) const {
    return std::string_view(file_.text())
               .substr(import.range.begin, import.range.end - import.range.begin)
               .find(" as " + import.alias) != std::string_view::npos;
  }

  // A name that the file also binds otherwise is not followed.
  void CollectRebound() {
    kernels::Walk(file_.tree().root(), [&](const Node& node) {
      if (node.Is("assignment") || node.Is("for_statement") || node.Is("for_in_clause")) {
        Rebind(node.Field("left"));
      } else if (node.Is("parameters") || node.Is("lambda_parameters")) {
        for (const Node& child : node.NamedChildren()) {
          const Node name = child.Field("name");
          Rebind(name ? name : child);
        }
      } else if (node.Is("function_definition") || node.Is("class_definition")) {
        Rebind(node.Field("name"));
      }
      return true;
    });
  }

  void Rebind(const Node& target) {
    if (target.Is("identifier")) {
      ambiguous_.insert(std::string(target.text()));
    } else if (target.Is("pattern_list") || target.Is("tuple_pattern") || target.Is("typed_parameter")) {
      for (const Node& child : target.NamedChildren()) {
        if (child.Is("identifier")) ambiguous_.insert(std::string(child.text()));
      }
    }
  }

  // Whole path of a dotted expression, empty when it does not start at an import.
  std::string Resolve(const Node& node) const {
    if (!node.Is("identifier") && !node.Is("attribute")) return "";
    const std::string_view text = node.text();
    if (text.find_first_of(" \t\n()[]") != std::string_view::npos) return "";
    const std::string first(text.substr(0, text.find('.')));
    const auto it = bound_.find(first);
    if (it == bound_.end() || ambiguous_.contains(first)) return "";
    return it->second + std::string(text.substr(first.size()));
  }

  bool Visit(const Node& node) {
    if (node.Is("import_from_statement")) {
      VisitImport(node);
      return false;
    }
    if (node.Is("import_statement")) return false;
    if (node.Is("keyword_argument")) {
      kernels::Walk(node.Field("value"), [&](const Node& child) { return Visit(child); });
      return false;
    }
    if (node.Is("call")) VisitCall(node);
    if (node.Is("attribute") || node.Is("identifier")) {
      const std::string path = Resolve(node);
      const auto it = by_path_.find(path);
      if (it != by_path_.end()) {
        VisitName(node, *it->second.front());
        return false;
      }
      if (node.Is("attribute")) {
        // The attribute's own name is no reference; only what it is taken from is looked at.
        kernels::Walk(node.Field("object"), [&](const Node& child) { return Visit(child); });
        return false;
      }
    }
    return true;
  }

  void VisitImport(const Node& statement) {
    const std::string module(statement.Field("module_name").text());
    bool first = true;
    for (const Node& child : statement.NamedChildren()) {
      if (first) {
        first = false;  // the module
        continue;
      }
      const bool aliased = child.Is("aliased_import");
      const Node name = aliased ? child.Field("name") : child;
      const auto it = by_path_.find(module + "." + std::string(name.text()));
      if (it == by_path_.end() || IsGuarded(statement)) continue;
      const ApiName& api = *it->second.front();
      Diagnostic* diagnostic = Add(api, name);
      if (api.kind != ApiName::Kind::kRename || api.new_name.substr(0, api.new_name.rfind('.')) != module) continue;
      // One edit for the statement and for the uses of the name.
      std::vector<std::pair<Node, std::string>> edits = {{name, LastPart(api.new_name)}};
      if (!aliased) {
        for (const Node& use : Uses(name.text())) edits.emplace_back(use, LastPart(api.new_name));
      }
      AddFix(diagnostic, api, edits);
    }
  }

  // References to a plain name outside of imports.
  std::vector<Node> Uses(std::string_view name) const {
    std::vector<Node> uses;
    kernels::Walk(file_.tree().root(), [&](const Node& node) {
      if (node.Is("import_from_statement") || node.Is("import_statement")) return false;
      const Node parent = node.parent();
      const bool is_label = (parent.Is("attribute") && parent.Field("attribute") == node) ||
                            (parent.Is("keyword_argument") && parent.Field("name") == node);
      if (node.Is("identifier") && node.text() == name && !is_label) uses.push_back(node);
      return true;
    });
    return uses;
  }

  void VisitName(const Node& node, const ApiName& api) {
    if (IsGuarded(node)) return;
    if (node.Is("identifier") && api.kind == ApiName::Kind::kRename) return;  // said at its import
    Diagnostic* diagnostic = Add(api, node.Is("attribute") ? node.Field("attribute") : node);
    const Node call = node.parent().Is("call") && node.parent().Field("function") == node ? node.parent() : Node();
    switch (api.kind) {
      case ApiName::Kind::kRename:
        FixRename(diagnostic, api, node);
        break;
      case ApiName::Kind::kLoad:
        FixLoad(diagnostic, api, call);
        break;
      case ApiName::Kind::kStore:
        FixStore(diagnostic, api, call);
        break;
      case ApiName::Kind::kRepeat:
        FixRepeat(diagnostic, api, call);
        break;
      default:
        break;
    }
  }

  void FixRename(Diagnostic* diagnostic, const ApiName& api, const Node& node) {
    const size_t dot = api.new_name.rfind('.');
    const std::string module = api.new_name.substr(0, dot);
    if (Resolve(node.Field("object")) == module) {
      AddFix(diagnostic, api, {{node.Field("attribute"), LastPart(api.new_name)}});
    } else if (const auto alias = AliasOf(module)) {
      AddFix(diagnostic, api, {{node, *alias + "." + LastPart(api.new_name)}});
    }
  }

  // `pl.load(ref, (i, pl.ds(0, 8)))` as text between brackets: `i, pl.ds(0, 8)`.
  std::string IndexText(const Node& index) const {
    if (!index.Is("tuple")) return std::string(index.text());
    std::string text;
    for (const Node& part : index.NamedChildren()) {
      if (part.Is("comment")) return "";
      text += text.empty() ? "" : ", ";
      text += part.text() == "slice(None)" ? ":" : std::string(part.text());
    }
    return text.empty() ? "()" : text;
  }

  void FixLoad(Diagnostic* diagnostic, const ApiName& api, const Node& call) {
    const auto arguments = PositionalArguments(call);
    if (!call || arguments.size() != 2 || call.Field("arguments").NamedChildren().size() != 2) return;
    const std::string index = IndexText(arguments[1]);
    if (!index.empty()) AddFix(diagnostic, api, {{call, std::string(arguments[0].text()) + "[" + index + "]"}});
  }

  void FixStore(Diagnostic* diagnostic, const ApiName& api, const Node& call) {
    const auto arguments = PositionalArguments(call);
    if (!call || arguments.size() != 3 || call.Field("arguments").NamedChildren().size() != 3) return;
    if (!call.parent().Is("expression_statement")) return;
    const std::string index = IndexText(arguments[1]);
    if (index.empty()) return;
    std::string value(arguments[2].text());
    if (value.find('\n') != std::string::npos) value = "(" + value + ")";
    AddFix(diagnostic, api, {{call, std::string(arguments[0].text()) + "[" + index + "] = " + value}});
  }

  void FixRepeat(Diagnostic* diagnostic, const ApiName& api, const Node& call) {
    const auto alias = AliasOf("jax.numpy");
    if (!call || !alias || HasSplat(call)) return;
    const auto arguments = PositionalArguments(call);
    const Node axis = arguments.size() == 3 ? arguments[2] : KeywordArgument(call, "axis").Field("value");
    const Node times = arguments.size() >= 2 ? arguments[1] : KeywordArgument(call, "repeats").Field("value");
    if (arguments.empty() || arguments.size() > 3 || !axis || !times) return;
    const bool plain = times.Is("integer") || times.Is("identifier") || times.Is("attribute") || times.Is("subscript");
    const std::string count = plain ? std::string(times.text()) : "(" + std::string(times.text()) + ")";
    AddFix(diagnostic, api,
           {{call, *alias + ".concatenate([" + std::string(arguments[0].text()) + "] * " + count +
                       ", axis=" + std::string(axis.text()) + ")"}});
  }

  void VisitCall(const Node& call) {
    const auto it = by_callee_.find(Resolve(call.Field("function")));
    if (it == by_callee_.end() || IsGuarded(call)) return;
    for (const ApiName* api : it->second) {
      const Node argument = api->argument.empty() ? Node() : KeywordArgument(call, api->argument);
      switch (api->kind) {
        case ApiName::Kind::kKeyword:
          if (argument) AddFix(Add(*api, argument.Field("name")), *api, {{argument.Field("name"), api->new_name}});
          break;
        case ApiName::Kind::kKeywordRemoved:
          if (argument) AddFix(Add(*api, argument.Field("name")), *api, {}, WithComma(argument));
          break;
        case ApiName::Kind::kIndexingMode:
          if (argument) FixIndexingMode(Add(*api, argument.Field("name")), *api, call, argument);
          break;
        case ApiName::Kind::kParamsDict:
          if (argument) VisitParamsDict(*api, argument);
          break;
        case ApiName::Kind::kArgumentOrder:
          VisitArgumentOrder(*api, call);
          break;
        default:
          break;
      }
    }
  }

  void VisitArgumentOrder(const ApiName& api, const Node& call) {
    const auto arguments = PositionalArguments(call);
    if (arguments.empty() || HasSplat(call)) return;
    const bool map_first = arguments[0].Is("lambda");
    const bool shape_second = arguments.size() == 2 && (arguments[1].Is("tuple") || arguments[1].Is("list"));
    if (!map_first && !(shape_second && arguments[0].Is("identifier") && IsFunction(arguments[0].text()))) return;
    Diagnostic* diagnostic = Add(api, arguments[0]);
    if (arguments.size() == 2) {
      AddFix(diagnostic, api,
             {{arguments[0], std::string(arguments[1].text())}, {arguments[1], std::string(arguments[0].text())}});
    }
  }

  bool IsFunction(std::string_view name) const {
    return std::any_of(file_.functions().begin(), file_.functions().end(),
                       [&](const kernels::FunctionInfo& f) { return f.name == name; });
  }

  void FixIndexingMode(Diagnostic* diagnostic, const ApiName& api, const Node& call, const Node& argument) {
    const auto positional = PositionalArguments(call);
    const Node keyword = KeywordArgument(call, "block_shape");
    const Node shape = positional.empty() ? keyword.Field("value") : positional[0];
    const auto alias = AliasOf(kPallas);
    const std::string_view mode = argument.Field("value").text();
    const bool unblocked = mode.find("nblocked") != std::string_view::npos;
    const bool padded = mode.find('(') != std::string_view::npos && mode.find("()") == std::string_view::npos;
    if (!unblocked) {
      // `Blocked` was the default.
      if (mode.find("Blocked") != std::string_view::npos) AddFix(diagnostic, api, {}, WithComma(argument));
      return;
    }
    if (!shape.Is("tuple") || !alias || padded) return;
    std::vector<std::pair<Node, std::string>> edits;
    for (const Node& dim : shape.NamedChildren()) {
      if (dim.text() != "None") edits.emplace_back(dim, *alias + ".Element(" + std::string(dim.text()) + ")");
    }
    AddFix(diagnostic, api, edits, WithComma(argument));
  }

  // Keyword arguments of `dict(mosaic=dict(a=1))` or `{"mosaic": {"a": 1}}` for the TPU, as text; nothing when another
  // form is used.
  static std::optional<std::string> MosaicArguments(const Node& dict) {
    if (dict.Is("call") && dict.Field("function").text() == "dict") {
      std::string_view text = dict.Field("arguments").text();
      text = text.substr(1, text.size() - 2);
      return std::string(text);
    }
    if (!dict.Is("dictionary")) return std::nullopt;
    std::string text;
    for (const Node& pair : dict.NamedChildren()) {
      std::string_view key = pair.Field("key").text();
      if (!pair.Is("pair") || key.size() < 3 || (key.front() != '"' && key.front() != '\'')) return std::nullopt;
      text += text.empty() ? "" : ", ";
      text += std::string(key.substr(1, key.size() - 2)) + "=" + std::string(pair.Field("value").text());
    }
    return text;
  }

  void VisitParamsDict(const ApiName& api, const Node& argument) {
    const Node value = argument.Field("value");
    Node mosaic;
    if (value.Is("call") && value.Field("function").text() == "dict") {
      mosaic = KeywordArgument(value, "mosaic").Field("value");
    } else if (value.Is("dictionary")) {
      for (const Node& pair : value.NamedChildren()) {
        const std::string_view key = pair.Field("key").text();
        if (key == "\"mosaic\"" || key == "'mosaic'") mosaic = pair.Field("value");
      }
    } else {
      return;
    }
    Diagnostic* diagnostic = Add(api, value);
    const auto alias = AliasOf(kPallasTpu);
    const auto arguments = mosaic ? MosaicArguments(mosaic) : std::nullopt;
    if (alias && arguments) AddFix(diagnostic, api, {{value, *alias + ".CompilerParams(" + *arguments + ")"}});
  }

  // How this file writes a module: "pl"; nothing when it does not import it.
  std::optional<std::string> AliasOf(std::string_view module) const {
    for (const auto& [alias, path] : bound_) {
      if (path == module && !ambiguous_.contains(alias)) return alias;
    }
    for (const kernels::Import& import : file_.imports()) {
      if (import.module == module && import.name.empty() && bound_.at(import.alias) == import.alias) {
        return import.module;
      }
    }
    return std::nullopt;
  }

  // A keyword argument with the comma before it, or after it when it is the first.
  ByteRange WithComma(const Node& argument) const {
    const auto children = argument.parent().Children();
    ByteRange range{argument.begin(), argument.end()};
    for (size_t i = 0; i < children.size(); ++i) {
      if (!(children[i] == argument)) continue;
      if (i > 0 && children[i - 1].Is(",")) {
        range.begin = children[i - 1].begin();
      } else if (i + 1 < children.size() && children[i + 1].Is(",")) {
        range.end = children[i + 1].end();
        if (i + 2 < children.size()) range.end = children[i + 2].begin();
      }
      break;
    }
    return range;
  }

  Diagnostic* Add(const ApiName& api, const Node& node) {
    Diagnostic diagnostic;
    diagnostic.id = api.id;
    diagnostic.name = api.name;
    diagnostic.stage = Stage::kApi;
    const auto begin = file_.Position(node.begin());
    const auto end = file_.Position(node.end());
    diagnostic.place = {file_.path(), begin.line, begin.column, end.line, end.column};
    const std::string old = api.module + "." + api.old_name;
    const std::string gone = " since jax " + api.removed + "; this is jax " + std::string(version_);
    if (api.kind == ApiName::Kind::kArgumentOrder) {
      diagnostic.message = "the arguments of " + api.old_name + " are in the old order, refused" + gone;
    } else if (api.kind == ApiName::Kind::kParamsDict) {
      diagnostic.message = "compiler_params is a dictionary, refused" + gone;
    } else if (!api.argument.empty()) {
      diagnostic.message = api.old_name + " has no argument `" + api.argument + "`" + gone;
    } else {
      diagnostic.message = old + " is gone" + gone;
    }
    diagnostic.cause = "The name belongs to an older version of jax.";
    diagnostic.advice = !api.advice.empty()                   ? api.advice
                        : api.kind == ApiName::Kind::kKeyword ? "Write `" + api.new_name + "=`."
                                                              : "Write `" + Short(api.new_name) + "`.";
    diagnostic.page = "docs/diagnostics/" + api.id + ".md";
    found_.push_back(std::move(diagnostic));
    return &found_.back();
  }

  // "pl.ANY" in this file's words, the whole path when it has none.
  std::string Short(const std::string& path) const {
    const size_t dot = path.rfind('.');
    const auto alias = dot == std::string::npos ? std::nullopt : AliasOf(path.substr(0, dot));
    return alias ? *alias + path.substr(dot) : path;
  }

  void AddFix(Diagnostic* diagnostic, const ApiName& api, const std::vector<std::pair<Node, std::string>>& edits,
              std::optional<ByteRange> removed = std::nullopt) {
    Fix fix;
    fix.title =
        diagnostic->advice.size() < 60 ? diagnostic->advice : "Use the form of jax " + api.removed + " and later";
    if (fix.title.ends_with('.')) fix.title.pop_back();
    for (const auto& [node, text] : edits) fix.edits.push_back({file_.path(), {node.begin(), node.end()}, text, hash_});
    if (removed) fix.edits.push_back({file_.path(), *removed, "", hash_});
    if (!fix.edits.empty()) diagnostic->fixes.push_back(std::move(fix));
  }

  const SourceFile& file_;
  std::string_view version_;
  std::string hash_;
  std::map<std::string, std::vector<const ApiName*>> by_path_;    // whole path of a name
  std::map<std::string, std::vector<const ApiName*>> by_callee_;  // whole path of a function with changed arguments
  std::map<std::string, std::string> bound_;                      // name in this file -> whole path
  std::set<std::string> ambiguous_;                               // names with more than one meaning here
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> LintApi(const SourceFile& file, const ApiNames& names, std::string_view jax_version) {
  return Linter(file, names, jax_version).Run();
}

}  // namespace kernelwright::diagnose
