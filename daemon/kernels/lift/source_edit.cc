// See source_edit.h.
#include "daemon/kernels/lift/source_edit.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "daemon/base/hash.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::kernels::lift {
namespace {

std::string Join(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) text += (i > 0 ? between : "") + parts[i];
  return text;
}

// The name that a file binds to a module, if it does.
std::optional<std::string> AliasOf(const SourceFile& file, const std::string& module) {
  const size_t dot = module.rfind('.');
  for (const Import& import : file.imports()) {
    if (!import.top_level) continue;
    if (import.module == module && import.name.empty() &&
        (module.find('.') == std::string::npos || import.alias != module.substr(0, module.find('.')))) {
      return import.alias;
    }
    if (dot != std::string::npos && import.module == module.substr(0, dot) && import.name == module.substr(dot + 1)) {
      return import.alias;
    }
    // `import jax.numpy` binds jax.
    if (module == "jax" && import.name.empty() && import.module.starts_with("jax.") && import.alias == "jax") {
      return "jax";
    }
  }
  return std::nullopt;
}

bool IsTransparentDecorator(const std::string& decorator) {
  for (const char* name : {"jax.jit", "jit", "partial(jax.jit", "functools.partial(jax.jit", "partial(jit",
                           "functools.partial(jit", "jax.named_call", "jax.named_scope(", "jax.checkpoint"}) {
    const std::string text(name);
    if (decorator == text ||
        (decorator.starts_with(text) && (text.find('(') != std::string::npos || decorator[text.size()] == '('))) {
      return true;
    }
  }
  return false;
}

kernels::Node FindDefinition(const SourceFile& file, const FunctionInfo& function) {
  kernels::Node found;
  Walk(file.tree().root(), [&](const kernels::Node& node) {
    if (node.Is("function_definition") && node.begin() == function.range.begin) found = node;
    return !found;
  });
  return found;
}

// The docstring's statement, if the function has one.
kernels::Node DocstringOf(const kernels::Node& definition) {
  const auto statements = definition.Field("body").NamedChildren();
  if (statements.empty() || !statements[0].Is("expression_statement")) return {};
  const auto children = statements[0].NamedChildren();
  return children.size() == 1 && children[0].Is("string") ? statements[0] : kernels::Node();
}

std::string RootOf(const std::string& path) { return path.substr(0, path.find_first_of(".[")); }

class Editor {
 public:
  Editor(const LiftRequest& request, const Target& target, const WriterContext& writer,
         const std::vector<WrittenStage>& stages)
      : request_(request),
        target_(target),
        writer_(writer),
        stages_(stages),
        jnp_(target.modules.jnp),
        jax_(target.modules.jax),
        text_(target.file->text()) {}

  std::variant<bool, Obstacle> Edit(Proposal& proposal) {
    if (!ReadParameters()) return obstacle_;
    const std::string results = Results();
    if (results.empty()) return obstacle_;
    const std::string guard = Guard();
    if (guard.empty()) return obstacle_;

    const kernels::Node definition = FindDefinition(*target_.file, target_.function);
    const kernels::Node doc = DocstringOf(definition);
    const kernels::Node body = definition.Field("body");
    const std::string indent = "    ";
    const std::string hash = Sha256Hex(text_);
    const std::string& path = target_.file->path();

    // The function's new body.
    const std::string dispatch = "if " + target_.takes + "(" + Join(GuardArguments(), ", ") + "):\n" + indent + indent +
                                 "return " + target_.lifted + "(" + Join(arrays_, ", ") + ")\n" + indent + "return " +
                                 target_.plain + "(" + Join(PassOn(), ", ") + ")";
    std::vector<kernels::Node> statements = body.NamedChildren();
    if (doc) statements.erase(statements.begin());
    if (statements.empty()) {
      obstacle_ = {"the function has no body", {}};
      return obstacle_;
    }
    const uint32_t begin = statements.front().begin();
    const uint32_t end = target_.function.range.end;
    proposal.edits.push_back({path, {begin, end}, dispatch, hash});

    // Behind it: the plain form, then the kernels.
    std::string after = "\n\n\ndef " + target_.plain +
                        text_.substr(definition.Field("name").end(), body.begin() - definition.Field("name").end());
    after += "\"\"\"`" + target_.function.name +
             "` in plain JAX: for what its kernels do not take, and for derivatives.\"\"\"\n" + indent;
    after += text_.substr(begin, end - begin);
    after += "\n\n\n" + guard + "\n\n" + Lifted(results);
    std::string kernels;
    for (const WrittenStage& stage : stages_) kernels += (kernels.empty() ? "" : "\n\n") + stage.text.text;
    while (!kernels.empty() && kernels.back() == '\n') kernels.pop_back();
    bool functools = std::any_of(stages_.begin(), stages_.end(), [](const auto& s) { return s.text.needs_functools; });

    std::vector<std::string> imports;
    if (!AliasOf(*target_.file, "jax")) imports.push_back("import jax");
    if (!AliasOf(*target_.file, "jax.numpy")) imports.push_back("import jax.numpy as jnp");
    if (request_.module_path.empty()) {
      after += "\n\n" + kernels;
      if (!AliasOf(*target_.file, "jax.experimental.pallas")) {
        imports.push_back("from jax.experimental import pallas as pl");
      }
      if (!AliasOf(*target_.file, "jax.experimental.pallas.tpu")) {
        imports.push_back("from jax.experimental.pallas import tpu as pltpu");
      }
      if (functools && !AliasOf(*target_.file, "functools")) AddFunctools(hash, proposal);
    } else {
      proposal.new_files.push_back({request_.module_path, Module(kernels, functools)});
      std::vector<std::string> calls;
      for (const WrittenStage& stage : stages_) calls.push_back(stage.names.call);
      imports.push_back("from " + std::string(request_.in_package ? "." : "") +
                        std::filesystem::path(request_.module_path).stem().string() + " import " + Join(calls, ", "));
    }
    while (!after.empty() && after.back() == '\n') after.pop_back();
    proposal.edits.push_back({path, {end, end}, after, hash});
    AddImports(imports, hash, proposal);
    return true;
  }

 private:
  const Node& node(int at) const { return writer_.flat.nodes[static_cast<size_t>(at)]; }
  bool Refuse(std::string reason) {
    obstacle_ = {std::move(reason), {}};
    return false;
  }

  // Sorts the parameters into arrays, values that are fixed, and defaults that must be what they were.
  bool ReadParameters() {
    std::set<std::string> roots;
    for (size_t i = 0; i < writer_.flat.inputs; ++i) {
      if (node(static_cast<int>(i)).name.empty()) return Refuse("the trace does not say which argument is which");
      roots.insert(RootOf(node(static_cast<int>(i)).name));
    }
    std::map<std::string, std::string> given;
    for (const InputSpec& input : request_.context.inputs) {
      if (input.kind == InputSpec::Kind::kStatic && input.path.size() == 1)
        given[input.path[0].name] = input.static_json;
      if (input.kind == InputSpec::Kind::kStatic && input.path.size() > 1) {
        return Refuse("an argument mixes arrays and fixed values: " + input.PathText());
      }
    }
    for (const FunctionParameter& parameter : target_.function.parameters) {
      if (parameter.variadic) return Refuse("it takes *args or **kwargs");
      if (parameter.name == "*" || parameter.name == "/") continue;
      if (roots.contains(parameter.name)) {
        arrays_.push_back(parameter.name);
        continue;
      }
      Fixed fixed{parameter.name, "", parameter.keyword_only, false};
      if (const auto found = given.find(parameter.name); found != given.end()) {
        fixed.test = TestOfJson(parameter.name, found->second, &fixed.value);
      } else {
        fixed.is_default = true;
        fixed.test = TestOfText(parameter.name, parameter.default_text);
      }
      if (fixed.test.empty()) {
        return Refuse("the argument `" + parameter.name + "` has a value that cannot be compared with");
      }
      fixed_.push_back(fixed);
    }
    if (arrays_.empty()) return Refuse("it takes no arrays");
    return true;
  }

  static std::string TestOfJson(const std::string& name, const std::string& json_text, std::string* value) {
    const auto json = nlohmann::json::parse(json_text, nullptr, false);
    if (json.is_boolean() || json.is_null()) {
      *value = json.is_null() ? "None" : json.get<bool>() ? "True" : "False";
      return name + " is " + *value;
    }
    *value = json_text;
    if (json.is_number_integer()) return "type(" + name + ") is int and " + name + " == " + *value;
    if (json.is_number_float()) return "type(" + name + ") is float and " + name + " == " + *value;
    if (json.is_string()) return "type(" + name + ") is str and " + name + " == " + *value;
    return "";
  }

  static std::string TestOfText(const std::string& name, const std::string& text) {
    if (text.empty()) return "";
    if (text == "None" || text == "True" || text == "False") return name + " is " + text;
    if (text.front() == '"' || text.front() == '\'') return "type(" + name + ") is str and " + name + " == " + text;
    const bool number = text.find_first_not_of("0123456789+-.eE_") == std::string::npos &&
                        text.find_first_of("0123456789") != std::string::npos && std::isalpha(text.front()) == 0;
    if (number) {
      const bool whole = text.find_first_of(".eE") == std::string::npos;
      return "type(" + name + ") is " + (whole ? "int" : "float") + " and " + name + " == " + text;
    }
    const bool dotted = std::all_of(text.begin(), text.end(),
                                    [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
    return dotted ? name + " is " + text : "";
  }

  std::vector<std::string> GuardArguments() const {
    std::vector<std::string> names = arrays_;
    for (const Fixed& fixed : fixed_) names.push_back(fixed.name);
    return names;
  }

  // The arguments of the plain form, as the function itself got them.
  std::vector<std::string> PassOn() const {
    std::vector<std::string> parts;
    for (const FunctionParameter& parameter : target_.function.parameters) {
      if (parameter.name == "*" || parameter.name == "/") continue;
      parts.push_back(parameter.keyword_only ? parameter.name + "=" + parameter.name : parameter.name);
    }
    return parts;
  }

  // The plain form as a function of the arrays alone.
  std::string PlainOfArrays() const {
    std::vector<std::string> parts;
    bool as_it_is = true;
    bool keywords = false;
    for (const FunctionParameter& parameter : target_.function.parameters) {
      if (parameter.name == "*" || parameter.name == "/") continue;
      const bool array = std::find(arrays_.begin(), arrays_.end(), parameter.name) != arrays_.end();
      const auto fixed =
          std::find_if(fixed_.begin(), fixed_.end(), [&](const Fixed& each) { return each.name == parameter.name; });
      if (!array && fixed != fixed_.end() && fixed->is_default) {
        keywords = true;  // left out, so that what follows needs its name
        continue;
      }
      const std::string value = array ? parameter.name : fixed->value;
      const bool named = keywords || parameter.keyword_only || !array;
      keywords = keywords || !array;
      parts.push_back(named ? parameter.name + "=" + value : value);
      as_it_is = as_it_is && !named;
    }
    if (as_it_is) return target_.plain;
    return "lambda " + Join(arrays_, ", ") + ": " + target_.plain + "(" + Join(parts, ", ") + ")";
  }

  // ---- what is returned

  // The statements of the lifted function; empty with an obstacle.
  std::string Results() {
    const std::string& tree = request_.output_tree;
    const size_t count = writer_.flat.outputs.size();
    std::string flat_tree = "PyTreeDef((";
    for (size_t i = 0; i < count; ++i) flat_tree += i > 0 ? ", *" : "*";
    if (count == 1) flat_tree += ",";
    flat_tree += "))";
    const bool single = tree == "PyTreeDef(*)";
    if (!single && tree != flat_tree) {
      Refuse("its result is neither an array nor a tuple of arrays: " + tree);
      return "";
    }
    NameSet taken;
    for (const std::string& word : {jax_, jnp_}) taken.Reserve(word);
    for (const std::string& array : arrays_) taken.Reserve(array);
    std::map<int, std::string> values;
    for (size_t i = 0; i < writer_.flat.inputs; ++i) {
      values[static_cast<int>(i)] = node(static_cast<int>(i)).name;
    }
    std::map<int, bool> final_nodes;
    for (const Arg& output : writer_.flat.outputs) final_nodes[Behind(writer_.flat, output).node] = true;
    std::vector<std::string> lines;
    std::string only_call;
    for (const WrittenStage& stage : stages_) {
      std::vector<std::string> arguments;
      for (int argument : stage.text.argument_nodes) arguments.push_back(values.at(argument));
      const std::string call = stage.names.call + "(" + Join(arguments, ", ") + ")";
      std::vector<std::string> targets;
      for (int output : stage.outputs) {
        targets.push_back(taken.Take(writer_.names.at(output)));
        values[output] = targets.back();
      }
      lines.push_back(Join(targets, ", ") + " = " + call);
      only_call = call;
    }
    std::vector<std::string> returned;
    for (const Arg& output : writer_.flat.outputs) {
      const Arg behind = Behind(writer_.flat, output);
      const auto written = final_nodes.size() == 1 && stages_.back().outputs == std::vector<int>{behind.node};
      std::string value = values.at(behind.node);
      if (written) {
        value = only_call;
        lines.pop_back();
      }
      const std::string shaped = Shaped(output, behind.node, value);
      if (shaped.empty()) return "";
      returned.push_back(shaped);
    }
    lines.push_back("return " + Join(returned, ", ") + (single || count > 1 ? "" : ","));
    return "    " + Join(lines, "\n    ") + "\n";
  }

  std::string Shaped(const Arg& output, int behind, std::string value) {
    const Node& raw = node(output.node);
    const auto& layout = writer_.axes.layout[static_cast<size_t>(output.node)];
    const auto& inner = writer_.axes.layout[static_cast<size_t>(behind)];
    if (layout.rows != inner.rows || layout.column != inner.column) {
      Refuse("its result repeats a value along an axis");
      return "";
    }
    const std::string kept = KeptType(writer_.flat, behind);
    if (kept != raw.type.dtype) value += ".astype(" + jnp_ + "." + raw.type.dtype + ")";
    // The calls give (leading axes of the first argument with rows and columns, columns).
    const auto primary = PrimaryInput();
    if (!primary) {
      Refuse("no argument has both rows and columns");
      return "";
    }
    std::vector<int64_t> lead = node(*primary).type.dims;
    lead.pop_back();
    std::vector<int64_t> wanted = raw.type.dims;
    const int64_t last = layout.column != kUnit ? writer_.axes.size.at(layout.column) : 1;
    std::vector<int64_t> given = lead;
    given.push_back(last);
    if (wanted == given) return value;
    if (layout.column == kUnit && wanted == lead) return value + "[..., 0]";
    exact_ = true;
    std::string shape;
    for (int64_t dim : wanted) shape += (shape.empty() ? "" : ", ") + std::to_string(dim);
    return value + ".reshape(" + shape + ")";
  }

  std::optional<int> PrimaryInput() const {
    for (size_t i = 0; i < writer_.flat.inputs; ++i) {
      const auto& layout = writer_.axes.layout[i];
      if (!writer_.axes.weights.contains(static_cast<int>(i)) && layout.rows && layout.column != kUnit) {
        return static_cast<int>(i);
      }
    }
    return std::nullopt;
  }

  // ---- what the kernels take

  std::string Guard() {
    std::vector<std::string> tests;
    const auto primary = PrimaryInput();
    if (!primary) {
      Refuse("no argument has both rows and columns");
      return "";
    }
    const Node& first = node(*primary);
    const bool fixed = exact_ || !writer_.sizes.free || !LeadsAgree(*primary);
    std::set<std::string> types;
    for (size_t i = 0; i < writer_.flat.inputs; ++i) types.insert(node(static_cast<int>(i)).type.dtype);
    std::map<int, std::string> extents;  // axis -> text
    for (size_t i = 0; i < writer_.flat.inputs; ++i) {
      const Node& input = node(static_cast<int>(i));
      const std::string& name = input.name;
      const std::string dtype = jnp_ + "." + input.type.dtype;
      if (input.type.dims.empty()) {
        tests.push_back(jnp_ + ".ndim(" + name + ") == 0 and getattr(" + name + ", \"dtype\", None) == " + dtype);
      } else if (fixed) {
        std::string shape;
        for (int64_t dim : input.type.dims) shape += (shape.empty() ? "" : ", ") + std::to_string(dim);
        tests.push_back(name + ".shape == (" + shape + (input.type.dims.size() == 1 ? ",)" : ")") + " and " + name +
                        ".dtype == " + dtype);
      } else {
        tests.push_back(name + ".ndim == " + std::to_string(input.type.dims.size()) + " and " + name +
                        ".dtype == " + dtype);
        ShapeTests(static_cast<int>(i), *primary, first, extents, tests);
      }
      if (types.size() > 1 && input.type.dtype == "float32") {
        tests.push_back("not getattr(" + name + ", \"weak_type\", False)");
      }
    }
    if (!fixed) tests.push_back(first.name + ".size > 0");
    for (const Fixed& each : fixed_) tests.push_back(each.test);
    std::string text =
        "def " + target_.takes + "(" + Join(GuardArguments(), ", ") + "):\n" +
        "    \"\"\"Whether the kernels were made for these arguments; the plain form takes all others.\"\"\"\n"
        "    return (\n";
    for (size_t i = 0; i < tests.size(); ++i) text += "        " + std::string(i > 0 ? "and " : "") + tests[i] + "\n";
    return text + "    )\n";
  }

  // Whether all arguments with rows have the leading axes of the first.
  bool LeadsAgree(int primary) const {
    std::vector<int64_t> lead = node(primary).type.dims;
    lead.pop_back();
    for (size_t i = 0; i < writer_.flat.inputs; ++i) {
      const int at = static_cast<int>(i);
      if (writer_.axes.weights.contains(at) || !writer_.axes.layout[i].rows) continue;
      std::vector<int64_t> dims = node(at).type.dims;
      if (dims == lead) continue;
      if (dims.empty()) return false;
      dims.pop_back();
      if (dims != lead) return false;
    }
    return true;
  }

  void ShapeTests(int at, int primary, const Node& first, std::map<int, std::string>& extents,
                  std::vector<std::string>& tests) const {
    const Node& input = node(at);
    const auto& dims = writer_.axes.dims[static_cast<size_t>(at)];
    const auto& layout = writer_.axes.layout[static_cast<size_t>(at)];
    const bool weight = writer_.axes.weights.contains(at);
    const bool rows = !weight && layout.rows;
    if (rows && at != primary) {
      const bool whole = input.type.dims.size() + 1 == first.type.dims.size();
      tests.push_back(input.name + (whole ? ".shape == " : ".shape[:-1] == ") + first.name + ".shape[:-1]");
      if (!whole && layout.column == kUnit) tests.push_back(input.name + ".shape[-1] == 1");
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      const bool last = d + 1 == dims.size();
      const std::string text = input.name + ".shape[" + (rows || (last && !weight) ? "-1" : std::to_string(d)) + "]";
      if (rows && !last) continue;
      if (dims[d] == kUnit) {
        if (!rows) tests.push_back(input.name + ".shape[" + std::to_string(d) + "] == 1");
        continue;
      }
      if (rows && writer_.axes.rows.contains(dims[d])) continue;
      const auto [known, is_new] = extents.emplace(dims[d], text);
      if (!is_new) tests.push_back(text + " == " + known->second);
    }
  }

  // ---- texts around the kernels

  std::string Lifted(const std::string& results) const {
    const std::string arguments = Join(arrays_, ", ");
    const bool reverse_only = writer_.flat.has_custom_vjp;
    std::string text = "@" + jax_ + (reverse_only ? ".custom_vjp" : ".custom_jvp") + "\ndef " + target_.lifted + "(" +
                       arguments + "):\n" + results + "\n\n";
    const std::string plain = PlainOfArrays();
    if (reverse_only) {
      text += "def " + target_.jvp + "(" + arguments + "):\n    return " + target_.lifted + "(" + arguments + "), (" +
              arguments + (arrays_.size() == 1 ? ",)" : ")") + "\n\n\ndef " + target_.backward +
              "(arguments, cotangent):\n" +
              "    \"\"\"The gradient is that of the plain form: there is no backward kernel.\"\"\"\n    return " +
              jax_ + ".vjp(" + plain + ", *arguments)[1](cotangent)\n\n\n" + target_.lifted + ".defvjp(" + target_.jvp +
              ", " + target_.backward + ")\n";
      return text;
    }
    text += "@" + target_.lifted + ".defjvp\ndef " + target_.jvp + "(primals, tangents):\n" +
            "    \"\"\"Derivatives are those of the plain form: there is no backward kernel.\"\"\"\n    return " +
            target_.lifted + "(*primals), " + jax_ + ".jvp(" + plain + ", primals, tangents)[1]\n";
    return text;
  }

  std::string Module(const std::string& kernels, bool functools) const {
    std::string text = "\"\"\"Pallas kernels of `" + target_.function.name + "`.\"\"\"\n\n";
    if (functools) text += "import functools\n\n";
    const bool needs_jax = kernels.find("jax.") != std::string::npos;
    if (needs_jax) text += "import jax\n";
    text +=
        "import jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
        "from jax.experimental.pallas import tpu as pltpu\n\n\n";
    return text + kernels + "\n";
  }

  void AddFunctools(const std::string& hash, Proposal& proposal) const {
    const Import* first = nullptr;
    for (const Import& import : target_.file->imports()) {
      if (import.top_level && import.module != "__future__" &&
          (first == nullptr || import.range.begin < first->range.begin)) {
        first = &import;
      }
    }
    const uint32_t at = first != nullptr ? first->range.begin : 0;
    const bool library = first != nullptr && (first->module.starts_with("jax") || first->module.starts_with("numpy"));
    proposal.edits.push_back(
        {target_.file->path(), {at, at}, library ? "import functools\n\n" : "import functools\n", hash});
  }

  void AddImports(const std::vector<std::string>& imports, const std::string& hash, Proposal& proposal) const {
    if (imports.empty()) return;
    const Import* last = nullptr;
    for (const Import& import : target_.file->imports()) {
      if (import.top_level && import.range.end < target_.function.range_with_decorators.begin) last = &import;
    }
    if (last != nullptr) {
      proposal.edits.push_back(
          {target_.file->path(), {last->range.end, last->range.end}, "\n" + Join(imports, "\n"), hash});
    } else {
      proposal.edits.push_back({target_.file->path(), {0, 0}, Join(imports, "\n") + "\n\n\n", hash});
    }
  }

  struct Fixed {
    std::string name;
    std::string test;  // that it has the value of the trace
    bool keyword_only = false;
    bool is_default = false;
    std::string value = {};
  };

  const LiftRequest& request_;
  const Target& target_;
  const WriterContext& writer_;
  const std::vector<WrittenStage>& stages_;
  const std::string jnp_;
  const std::string jax_;
  const std::string& text_;
  std::vector<std::string> arrays_;
  std::vector<Fixed> fixed_;
  bool exact_ = false;
  Obstacle obstacle_;
};

}  // namespace

std::variant<Target, Obstacle> FindTarget(const ProposalContext& context) {
  Target target;
  for (const auto& file : context.files) {
    if (file->path() == context.file) target.file = file.get();
  }
  if (target.file == nullptr) return Obstacle{"the function's file is not among the user's files", {}};
  auto function = target.file->FindFunction(context.function);
  if (!function) return Obstacle{function.error().message(), {}};
  target.function = *std::move(function);
  const FunctionInfo& info = target.function;
  if (!info.top_level || target.file->Position(info.range.begin).column != 1) {
    return Obstacle{"only functions of the module itself are lifted, no methods and no nested ones", {}};
  }
  for (const std::string& decorator : info.decorators) {
    if (!IsTransparentDecorator(decorator)) {
      return Obstacle{"the decorator `" + decorator + "` may see more of the function than its call", {}};
    }
  }
  std::set<std::string> taken;
  Walk(target.file->tree().root(), [&](const kernels::Node& node) {
    if (node.Is("identifier")) taken.insert(std::string(node.text()));
    return true;
  });
  NameSet names(taken);
  const size_t first = info.name.find_first_not_of('_');
  const std::string base = "_" + (first == std::string::npos ? info.name : info.name.substr(first));
  target.plain = names.Take(info.name + "_plain");
  target.lifted = names.Take(base + "_lifted");
  target.takes = names.Take(base + "_takes");
  target.jvp = names.Take(base + "_jvp");
  target.backward = names.Take(base + "_backward");
  target.modules.jax = AliasOf(*target.file, "jax").value_or("jax");
  target.modules.jnp = AliasOf(*target.file, "jax.numpy").value_or("jnp");
  target.modules.pl = AliasOf(*target.file, "jax.experimental.pallas").value_or("pl");
  target.modules.pltpu = AliasOf(*target.file, "jax.experimental.pallas.tpu").value_or("pltpu");
  return target;
}

std::variant<bool, Obstacle> EditSource(const LiftRequest& request, const Target& target, const WriterContext& writer,
                                        const std::vector<WrittenStage>& stages, Proposal& proposal) {
  return Editor(request, target, writer, stages).Edit(proposal);
}

}  // namespace kernelwright::kernels::lift
