// The list of wire formats: a new one is one line here.
#include "daemon/models/wire.h"

namespace kernelwright::models {

std::vector<const WireFormat*> WireFormats() { return {&GeminiWire(), &AnthropicWire(), &OpenAiWire()}; }

const WireFormat* FindWireFormat(std::string_view name) {
  for (const WireFormat* wire : WireFormats()) {
    if (wire->name() == name) return wire;
  }
  return nullptr;
}

}  // namespace kernelwright::models
