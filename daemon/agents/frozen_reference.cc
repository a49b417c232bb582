// Canonical JSON of the frozen record. Inputs are written in the inputs text, which round-trips; seeds as decimal text,
// because JSON numbers lose bits above 2^53.
#include "daemon/agents/frozen_reference.h"

#include <nlohmann/json.hpp>

#include "daemon/base/hash.h"

namespace kernelwright::agents {
namespace {

using nlohmann::json;

// Texts need not be UTF-8 (an encoding cookie may say otherwise), so that they are kept as hexadecimal when they are
// not.
json TextToJson(const std::string& text) {
  try {
    json value = text;
    (void)value.dump();
    return value;
  } catch (const json::exception&) {
    return json{{"hex", HexEncode(text)}};
  }
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

json SourceToJson(const Source& source) {
  json files = json::array();
  for (const FileText& file : source.files) files.push_back({{"path", file.path}, {"text", TextToJson(file.text)}});
  return {{"file", source.file}, {"function", source.function}, {"files", files}};
}

Source SourceFromJson(const json& value) {
  Source source{value.at("file"), value.at("function"), {}};
  for (const json& file : value.at("files")) {
    const json& text = file.at("text");
    source.files.push_back(
        {file.at("path"), text.is_object() ? FromHex(text.at("hex").get<std::string>()) : text.get<std::string>()});
  }
  return source;
}

Expected<std::vector<kernels::InputSpec>> InputsFromJson(const json& value) {
  return kernels::ParseInputs(value.get<std::string>(), "stored inputs");
}

json ToJson(const FrozenReference& frozen) {
  json ladder = json::array();
  for (const CheckShape& shape : frozen.ladder) {
    ladder.push_back({{"name", shape.name}, {"inputs", kernels::FormatInputs(shape.inputs)}});
  }
  json seeds = json::array();
  for (uint64_t seed : frozen.seeds) seeds.push_back(std::to_string(seed));
  return {
      {"original", SourceToJson(frozen.original)},
      {"reference", SourceToJson(frozen.reference)},
      {"inputs", kernels::FormatInputs(frozen.inputs)},
      {"inputs_origin", frozen.inputs_origin},
      {"ladder", ladder},
      {"seeds", seeds},
      {"tolerance",
       {{"reference_factor", frozen.tolerance.reference_factor}, {"floor_relative", frozen.tolerance.floor_relative}}}};
}

}  // namespace

std::string FrozenToJson(const FrozenReference& frozen) { return ToJson(frozen).dump(); }

Expected<FrozenReference> FrozenFromJson(std::string_view text) {
  try {
    const json value = json::parse(text);
    FrozenReference frozen;
    frozen.original = SourceFromJson(value.at("original"));
    frozen.reference = SourceFromJson(value.at("reference"));
    auto inputs = InputsFromJson(value.at("inputs"));
    if (!inputs) return Fail(inputs.error());
    frozen.inputs = *std::move(inputs);
    frozen.inputs_origin = value.at("inputs_origin");
    for (const json& entry : value.at("ladder")) {
      auto shape = InputsFromJson(entry.at("inputs"));
      if (!shape) return Fail(shape.error());
      frozen.ladder.push_back({entry.at("name"), *std::move(shape)});
    }
    for (const json& seed : value.at("seeds")) frozen.seeds.push_back(std::stoull(seed.get<std::string>()));
    frozen.tolerance.reference_factor = value.at("tolerance").at("reference_factor");
    frozen.tolerance.floor_relative = value.at("tolerance").at("floor_relative");
    return frozen;
  } catch (const std::exception& error) {
    return Fail(ErrorKind::kInternal, std::string("the stored reference cannot be read: ") + error.what(), "store");
  }
}

std::string FrozenHash(const FrozenReference& frozen) { return Sha256Hex(FrozenToJson(frozen)); }

}  // namespace kernelwright::agents
