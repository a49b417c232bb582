// See json.h.
#include "daemon/base/json.h"

#include <cmath>
#include <limits>

namespace kernelwright {
namespace {

constexpr int kMaxDepth = 200;

// Depth of brackets outside strings; looked at before parsing, because the parser itself has no limit.
bool TooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Expected<Json> ParseJson(std::string_view text, const std::string& where) {
  if (TooDeep(text)) return Fail(ErrorKind::kUsage, "the JSON is nested too deeply", where);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …": the number helps nobody.
    std::string message = error.what();
    if (const size_t end = message.find("] "); end != std::string::npos) message.erase(0, end + 2);
    return Fail(ErrorKind::kUsage, "not valid JSON: " + message, where);
  }
}

std::string DumpJson(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

tl::unexpected<Status> JsonReader::WrongType(const char* wanted) const {
  return Fail(ErrorKind::kUsage, path_ + " must be " + wanted + ", not " + value_->type_name());
}

bool JsonReader::Has(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

Expected<JsonReader> JsonReader::At(const std::string& key) const {
  if (!value_->is_object()) return WrongType("an object");
  const auto found = value_->find(key);
  if (found == value_->end()) return Fail(ErrorKind::kUsage, path_ + "." + key + " is missing");
  return JsonReader(*found, path_ + "." + key);
}

Expected<JsonReader> JsonReader::At(size_t index) const {
  if (!value_->is_array()) return WrongType("an array");
  const std::string path = path_ + "[" + std::to_string(index) + "]";
  if (index >= value_->size()) return Fail(ErrorKind::kUsage, path + " is missing");
  return JsonReader((*value_)[index], path);
}

Expected<std::vector<JsonReader>> JsonReader::Elements() const {
  if (!value_->is_array()) return WrongType("an array");
  std::vector<JsonReader> elements;
  elements.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    elements.emplace_back((*value_)[i], path_ + "[" + std::to_string(i) + "]");
  }
  return elements;
}

Expected<std::string> JsonReader::AsString() const {
  if (!value_->is_string()) return WrongType("a string");
  return value_->get_ref<const std::string&>();
}

Expected<int64_t> JsonReader::AsInt() const {
  if (value_->is_number_unsigned()) {
    const auto number = value_->get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return WrongType("a 64-bit integer");
    return static_cast<int64_t>(number);
  }
  if (value_->is_number_integer()) return value_->get<int64_t>();
  // Other writers print whole numbers as 3.0.
  if (value_->is_number_float()) {
    const auto number = value_->get<double>();
    if (std::trunc(number) == number && std::abs(number) <= 9007199254740992.0) return static_cast<int64_t>(number);
  }
  return WrongType("an integer");
}

Expected<double> JsonReader::AsDouble() const {
  if (!value_->is_number()) return WrongType("a number");
  return value_->get<double>();
}

Expected<bool> JsonReader::AsBool() const {
  if (!value_->is_boolean()) return WrongType("true or false");
  return value_->get<bool>();
}

Expected<std::string> JsonReader::String(const std::string& key) const {
  return At(key).and_then([](const JsonReader& reader) { return reader.AsString(); });
}
Expected<int64_t> JsonReader::Int(const std::string& key) const {
  return At(key).and_then([](const JsonReader& reader) { return reader.AsInt(); });
}
Expected<double> JsonReader::Double(const std::string& key) const {
  return At(key).and_then([](const JsonReader& reader) { return reader.AsDouble(); });
}
Expected<bool> JsonReader::Bool(const std::string& key) const {
  return At(key).and_then([](const JsonReader& reader) { return reader.AsBool(); });
}

Expected<std::vector<std::string>> JsonReader::Strings(const std::string& key) const {
  Expected<JsonReader> member = At(key);
  if (!member) return Fail(member.error());
  Expected<std::vector<JsonReader>> elements = member->Elements();
  if (!elements) return Fail(elements.error());
  std::vector<std::string> strings;
  for (const JsonReader& element : *elements) {
    Expected<std::string> text = element.AsString();
    if (!text) return Fail(text.error());
    strings.push_back(*std::move(text));
  }
  return strings;
}

Expected<std::string> JsonReader::StringOr(const std::string& key, std::string fallback) const {
  return Has(key) ? String(key) : Expected<std::string>(std::move(fallback));
}
Expected<int64_t> JsonReader::IntOr(const std::string& key, int64_t fallback) const {
  return Has(key) ? Int(key) : Expected<int64_t>(fallback);
}
Expected<double> JsonReader::DoubleOr(const std::string& key, double fallback) const {
  return Has(key) ? Double(key) : Expected<double>(fallback);
}
Expected<bool> JsonReader::BoolOr(const std::string& key, bool fallback) const {
  return Has(key) ? Bool(key) : Expected<bool>(fallback);
}

}  // namespace kernelwright
