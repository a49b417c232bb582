// Reads fields of objects that may lack them or have null there, as results of older and newer builds do.
#pragma once

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace kernelwright::cli {

inline const nlohmann::json& Member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

inline std::string Text(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// 64-bit integers may come as strings, as protobuf's JSON has them.
inline double Number(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = Member(object, key);
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (end == text.c_str() + text.size() && !text.empty()) return number;
  }
  return 0;
}

inline bool Flag(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = Member(object, key);
  return value.is_boolean() && value.get<bool>();
}

// An array, or an empty one.
inline const nlohmann::json& List(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  const nlohmann::json& value = Member(object, key);
  return value.is_array() ? value : kEmpty;
}

}  // namespace kernelwright::cli
