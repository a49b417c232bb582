// See kernel_lint_refs.h.
#include "daemon/diagnose/kernel_lint_refs.h"

#include <algorithm>
#include <variant>

namespace kernelwright::diagnose {
namespace {

using Bindings = std::map<uint32_t, int>;

class Walker {
 public:
  Walker(std::vector<KernelRef>& refs, const std::function<void(const Visited&)>& visit) : refs_(refs), visit_(visit) {}

  void Walk(const Graph& graph, const Bindings& bound) {
    for (const Operation& operation : graph.operations) {
      std::vector<int> operands;
      operands.reserve(operation.inputs.size());
      for (const Operand& input : operation.inputs) {
        const auto it = input.value ? bound.find(*input.value) : bound.end();
        operands.push_back(it == bound.end() ? -1 : it->second);
      }
      visit_({operation, operands, path_});
      for (size_t r = 0; r < operation.regions.size(); ++r) {
        const Graph& region = operation.regions[r];
        Bindings inner;
        for (size_t i = 0; i < region.inputs.size(); ++i) {
          const int operand = OperandOfRegionInput(operation, r, i);
          if (operand >= 0 && operands[static_cast<size_t>(operand)] >= 0) {
            inner[region.inputs[i].id] = operands[static_cast<size_t>(operand)];
          } else if (region.inputs[i].type.is_ref) {
            KernelRef local;
            local.kind = KernelRef::Kind::kLocal;
            local.type = region.inputs[i].type;
            inner[region.inputs[i].id] = static_cast<int>(refs_.size());
            refs_.push_back(std::move(local));
          }
        }
        path_.push_back({&operation, r});
        Walk(region, inner);
        path_.pop_back();
      }
    }
  }

 private:
  std::vector<KernelRef>& refs_;
  const std::function<void(const Visited&)>& visit_;
  std::vector<Enclosing> path_;
};

}  // namespace

std::vector<KernelRef> KernelRefs(const PallasCall& call) {
  std::vector<KernelRef> refs;
  const auto prefetch = static_cast<size_t>(call.num_scalar_prefetch);
  if (call.kernel.inputs.size() != prefetch + call.blocks.size() + call.scratch.size()) return refs;
  int outputs = 0;
  int inputs = 0;
  for (size_t p = 0; p < call.kernel.inputs.size(); ++p) {
    KernelRef ref;
    ref.position = p;
    ref.type = call.kernel.inputs[p].type;
    if (p < prefetch) {
      ref.kind = KernelRef::Kind::kPrefetch;
    } else if (p < prefetch + call.blocks.size()) {
      ref.block = static_cast<int>(p - prefetch);
      const bool output = call.blocks[p - prefetch].is_output;
      ref.kind = output ? KernelRef::Kind::kOutput : KernelRef::Kind::kInput;
      const int number = output ? outputs++ : inputs++;
      ref.aliased = std::any_of(call.aliases.begin(), call.aliases.end(), [&](const std::pair<int, int>& alias) {
        // Operands of an alias are counted with the scalar-prefetch ones or without, depending on the version.
        return output ? alias.second == number
                      : alias.first == number || alias.first == number + call.num_scalar_prefetch;
      });
    }
    refs.push_back(std::move(ref));
  }
  return refs;
}

int OperandOfRegionInput(const Operation& operation, size_t region, size_t input) {
  size_t operand = input;
  if (operation.name == "cond") {
    operand = input + 1;
  } else if (operation.name == "while") {
    const auto cond_consts = static_cast<size_t>(IntAttribute(operation, "cond_nconsts", 0));
    const auto body_consts = static_cast<size_t>(IntAttribute(operation, "body_nconsts", 0));
    const std::string name = region < operation.region_names.size() ? operation.region_names[region] : "";
    if (name == "cond_jaxpr") {
      operand = input < cond_consts ? input : input + body_consts;
    } else {
      operand = input + cond_consts;
    }
  }
  return operand < operation.inputs.size() ? static_cast<int>(operand) : -1;
}

std::string TextAttribute(const Operation& operation, std::string_view name) {
  const auto it = operation.attributes.find(std::string(name));
  if (it == operation.attributes.end()) return "";
  const auto* text = std::get_if<std::string>(&it->second);
  return text != nullptr ? *text : "";
}

int64_t IntAttribute(const Operation& operation, std::string_view name, int64_t otherwise) {
  const auto it = operation.attributes.find(std::string(name));
  if (it == operation.attributes.end()) return otherwise;
  const auto* number = std::get_if<int64_t>(&it->second);
  return number != nullptr ? *number : otherwise;
}

std::vector<int64_t> IntsAttribute(const Operation& operation, std::string_view name) {
  const auto it = operation.attributes.find(std::string(name));
  if (it == operation.attributes.end()) return {};
  const auto* numbers = std::get_if<std::vector<int64_t>>(&it->second);
  return numbers != nullptr ? *numbers : std::vector<int64_t>();
}

bool WritesOperand(const Operation& operation, size_t operand) {
  const std::string effect = "write(" + std::to_string(operand) + ")";
  return std::find(operation.effects.begin(), operation.effects.end(), effect) != operation.effects.end();
}

void WalkKernel(const PallasCall& call, std::vector<KernelRef>& refs,
                const std::function<void(const Visited&)>& visit) {
  Bindings bound;
  for (size_t i = 0; i < call.kernel.inputs.size(); ++i) bound[call.kernel.inputs[i].id] = static_cast<int>(i);
  Walker(refs, visit).Walk(call.kernel, bound);
}

}  // namespace kernelwright::diagnose
