// JSON without exceptions: parsing gives a value or a Status with the position, and typed reads name the path of what
// is missing or of the wrong type ("$.results[2].chip").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"
#include "nlohmann/json.hpp"

namespace kernelwright {

using Json = nlohmann::json;

// `where` names the source in errors. Nesting deeper than 200 is refused: it has no use and could exhaust the stack.
Expected<Json> ParseJson(std::string_view text, const std::string& where = {});

// Text of a value; malformed UTF-8 in strings becomes U+FFFD instead of an exception. indent < 0: on one line.
std::string DumpJson(const Json& value, int indent = -1);

// A view of one value and its path. The value must outlive the view.
class JsonReader {
 public:
  explicit JsonReader(const Json& value, std::string path = "$") : value_(&value), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  bool Has(const std::string& key) const;  // present and not null

  // The member of an object, or the element of an array.
  Expected<JsonReader> At(const std::string& key) const;
  Expected<JsonReader> At(size_t index) const;
  // All elements of an array.
  Expected<std::vector<JsonReader>> Elements() const;

  // This value as a type. Integers out of range and fractions are errors, never rounded.
  Expected<std::string> AsString() const;
  Expected<int64_t> AsInt() const;
  Expected<double> AsDouble() const;
  Expected<bool> AsBool() const;

  // A member as a type; missing is an error.
  Expected<std::string> String(const std::string& key) const;
  Expected<int64_t> Int(const std::string& key) const;
  Expected<double> Double(const std::string& key) const;
  Expected<bool> Bool(const std::string& key) const;
  Expected<std::vector<std::string>> Strings(const std::string& key) const;

  // A member as a type, or the default when it is missing or null. A wrong type is still an error.
  Expected<std::string> StringOr(const std::string& key, std::string fallback) const;
  Expected<int64_t> IntOr(const std::string& key, int64_t fallback) const;
  Expected<double> DoubleOr(const std::string& key, double fallback) const;
  Expected<bool> BoolOr(const std::string& key, bool fallback) const;

 private:
  tl::unexpected<Status> WrongType(const char* wanted) const;
  const Json* value_;
  std::string path_;
};

}  // namespace kernelwright
