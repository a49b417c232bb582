// See json_schema.h.
#include "daemon/models/json_schema.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "daemon/base/text.h"

namespace kernelwright::models {
namespace {

std::string Show(const Json& value) { return Truncate(DumpJson(value), 60); }

std::string Child(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }
std::string Shown(const std::string& path) { return path.empty() ? "the value" : "`" + path + "`"; }

bool HasType(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") {
    // 3.0 is an integer in JSON schema.
    return value.is_number_integer() ||
           (value.is_number_float() &&
            value.get<double>() == static_cast<double>(static_cast<int64_t>(value.get<double>())));
  }
  return type == "number" && value.is_number();
}

std::vector<std::string> Types(const Json& schema) {
  const auto found = schema.find("type");
  if (found == schema.end()) return {};
  if (found->is_string()) return {found->get<std::string>()};
  std::vector<std::string> types;
  if (found->is_array()) {
    for (const Json& type : *found) {
      if (type.is_string()) types.push_back(type.get<std::string>());
    }
  }
  return types;
}

std::string Article(const std::string& type) {
  const bool vowel = !type.empty() && std::string_view("aeiou").find(type.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + type;
}

class Checker {
 public:
  explicit Checker(size_t most) : most_(most) {}

  void Check(const Json& schema, const Json& value, const std::string& path) {
    if (!schema.is_object() || problems_.size() >= most_) return;
    if (!CheckType(schema, value, path)) return;
    CheckChoice(schema, value, path);
    if (value.is_object()) CheckObject(schema, value, path);
    if (value.is_array()) CheckArray(schema, value, path);
    if (value.is_string()) {
      CheckSize(schema, "minLength", "maxLength", value.get_ref<const std::string&>().size(), "bytes long", path);
    }
    if (value.is_number()) CheckRange(schema, value, path);
  }

  std::vector<std::string> Take() { return std::move(problems_); }

 private:
  void Add(std::string problem) {
    if (problems_.size() < most_) problems_.push_back(std::move(problem));
  }

  bool CheckType(const Json& schema, const Json& value, const std::string& path) {
    const std::vector<std::string> types = Types(schema);
    if (types.empty()) return true;
    for (const std::string& type : types) {
      if (HasType(value, type)) return true;
    }
    std::vector<std::string> wanted;
    for (const std::string& type : types) wanted.push_back(Article(type));
    Add(Shown(path) + " must be " + Join(wanted, " or ") + ", got " + Show(value));
    return false;
  }

  void CheckChoice(const Json& schema, const Json& value, const std::string& path) {
    if (const auto found = schema.find("const"); found != schema.end() && *found != value) {
      Add(Shown(path) + " must be " + Show(*found) + ", got " + Show(value));
    }
    if (const auto found = schema.find("enum"); found != schema.end() && found->is_array()) {
      if (std::find(found->begin(), found->end(), value) == found->end()) {
        std::vector<std::string> choices;
        std::vector<std::string> names;
        for (const Json& choice : *found) {
          choices.push_back(Show(choice));
          if (choice.is_string()) names.push_back(choice.get<std::string>());
        }
        const std::optional<std::string> meant =
            value.is_string() ? ClosestMatch(value.get<std::string>(), names) : std::nullopt;
        Add(Shown(path) + " must be one of " + Join(choices, ", ") + ", got " + Show(value) +
            (meant ? "; did you mean \"" + *meant + "\"?" : ""));
      }
    }
    if (const auto found = schema.find("anyOf"); found != schema.end() && found->is_array()) {
      for (const Json& option : *found) {
        Checker inner(1);
        inner.Check(option, value, path);
        if (inner.problems_.empty()) return;
      }
      Add(Shown(path) + " fits none of the allowed forms, got " + Show(value));
    }
  }

  void CheckObject(const Json& schema, const Json& value, const std::string& path) {
    const auto properties = schema.find("properties");
    std::vector<std::string> known;
    if (properties != schema.end() && properties->is_object()) {
      for (const auto& [name, property] : properties->items()) known.push_back(name);
    }
    const auto required = schema.find("required");
    if (required != schema.end() && required->is_array()) {
      for (const Json& name : *required) {
        if (name.is_string() && !value.contains(name.get<std::string>())) {
          Add("`" + Child(path, name.get<std::string>()) + "` is missing");
        }
      }
    }
    const auto additional = schema.find("additionalProperties");
    const bool closed = additional != schema.end() && *additional == Json(false);
    for (const auto& [name, member] : value.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) {
        Check((*properties)[name], member, Child(path, name));
      } else if (closed) {
        const std::optional<std::string> meant = ClosestMatch(name, known);
        Add("there is no field `" + Child(path, name) + "`" +
            (meant           ? "; did you mean `" + *meant + "`?"
             : known.empty() ? "; no fields are allowed here"
                             : "; the fields are " + Join(known, ", ")));
      }
    }
  }

  void CheckArray(const Json& schema, const Json& value, const std::string& path) {
    CheckSize(schema, "minItems", "maxItems", value.size(), "elements long", path);
    const auto items = schema.find("items");
    if (items == schema.end()) return;
    for (size_t i = 0; i < value.size(); ++i) Check(*items, value[i], path + "[" + std::to_string(i) + "]");
  }

  void CheckSize(const Json& schema, const char* least, const char* most, size_t size, const char* unit,
                 const std::string& path) {
    if (const auto found = schema.find(least); found != schema.end() && found->is_number_integer()) {
      if (static_cast<int64_t>(size) < found->get<int64_t>()) {
        Add(Shown(path) + " must be at least " + Show(*found) + " " + unit + ", got " + std::to_string(size));
      }
    }
    if (const auto found = schema.find(most); found != schema.end() && found->is_number_integer()) {
      if (static_cast<int64_t>(size) > found->get<int64_t>()) {
        Add(Shown(path) + " must be at most " + Show(*found) + " " + unit + ", got " + std::to_string(size));
      }
    }
  }

  void CheckRange(const Json& schema, const Json& value, const std::string& path) {
    if (const auto found = schema.find("minimum"); found != schema.end() && found->is_number()) {
      if (value.get<double>() < found->get<double>())
        Add(Shown(path) + " must be at least " + Show(*found) + ", got " + Show(value));
    }
    if (const auto found = schema.find("maximum"); found != schema.end() && found->is_number()) {
      if (value.get<double>() > found->get<double>())
        Add(Shown(path) + " must be at most " + Show(*found) + ", got " + Show(value));
    }
  }

  const size_t most_;
  std::vector<std::string> problems_;
};

constexpr std::array<std::string_view, 17> kKeywords = {"type",     "properties", "required",    "additionalProperties",
                                                        "items",    "enum",       "const",       "minimum",
                                                        "maximum",  "minLength",  "maxLength",   "minItems",
                                                        "maxItems", "anyOf",      "description", "title",
                                                        "$schema"};
constexpr std::array<std::string_view, 7> kTypes = {"object",  "array",   "string", "number",
                                                    "integer", "boolean", "null"};

Status CheckSchemaAt(const Json& schema, const std::string& path) {
  const auto wrong = [&path](const std::string& what) {
    return Status(ErrorKind::kUsage, what, path.empty() ? "$" : path);
  };
  if (!schema.is_object()) return wrong("a schema is an object");
  for (const auto& [key, value] : schema.items()) {
    if (std::find(kKeywords.begin(), kKeywords.end(), key) == kKeywords.end()) {
      return wrong("the keyword `" + key + "` is not supported");
    }
  }
  for (const std::string& type : Types(schema)) {
    if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) return wrong("there is no type `" + type + "`");
  }
  std::set<std::string> names;
  if (const auto found = schema.find("properties"); found != schema.end()) {
    if (!found->is_object()) return wrong("`properties` is an object");
    for (const auto& [name, property] : found->items()) {
      names.insert(name);
      if (Status status = CheckSchemaAt(property, path + "." + name); !status.ok()) return status;
    }
  }
  if (const auto found = schema.find("required"); found != schema.end()) {
    for (const Json& name : *found) {
      if (!name.is_string() || !names.contains(name.get<std::string>())) {
        return wrong("`required` names " + Show(name) + ", which is no property");
      }
    }
  }
  if (const auto found = schema.find("items"); found != schema.end()) {
    if (Status status = CheckSchemaAt(*found, path + "[]"); !status.ok()) return status;
  }
  if (const auto found = schema.find("anyOf"); found != schema.end()) {
    for (const Json& option : *found) {
      if (Status status = CheckSchemaAt(option, path + "|"); !status.ok()) return status;
    }
  }
  return {};
}

// The text inside the first code fence, or the text itself.
std::string_view InsideFence(std::string_view text) {
  text = Trim(text);
  const size_t open = text.find("```");
  if (open == std::string_view::npos || text.starts_with('{') || text.starts_with('[')) return text;
  const size_t line_end = text.find('\n', open);
  if (line_end == std::string_view::npos) return text;
  const size_t close = text.find("```", line_end);
  return Trim(text.substr(line_end + 1, close == std::string_view::npos ? close : close - line_end - 1));
}

}  // namespace

std::vector<std::string> CheckAgainstSchema(const Json& schema, const Json& value, size_t most) {
  Checker checker(most);
  checker.Check(schema, value, "");
  return checker.Take();
}

Status CheckSchema(const Json& schema) { return CheckSchemaAt(schema, ""); }

Expected<Json> ReadStructured(std::string_view text, const Json& schema) {
  Expected<Json> value = ParseJson(InsideFence(text), "the answer");
  if (!value) {
    return Fail(ErrorKind::kUserCode, "the answer is not JSON: " + value.error().message(), {},
                "Answer with one JSON value that matches the schema, and nothing else.");
  }
  const std::vector<std::string> problems = CheckAgainstSchema(schema, *value);
  if (!problems.empty()) {
    return Fail(ErrorKind::kUserCode, "the answer does not match the schema: " + Join(problems, "; "), {},
                "Answer again with the whole JSON value, corrected.");
  }
  return value;
}

}  // namespace kernelwright::models
