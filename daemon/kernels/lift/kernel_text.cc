// See kernel_text.h. Three forms: whole rows; a product that accumulates over k in scratch; a product whose left side
// is computed from whole rows once per row block and kept in scratch.
#include "daemon/kernels/lift/kernel_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "daemon/kernels/inputs.h"

namespace kernelwright::kernels::lift {
namespace {

constexpr int64_t kRowBudget = int64_t{8} << 20;      // windows and float32 values of a kernel over rows, bytes
constexpr int64_t kDefaultLimit = int64_t{11} << 20;  // beyond it a kernel asks for more VMEM
constexpr int64_t kLargestLimit = int64_t{50} << 20;  // what every chip has
constexpr int64_t kPrologueRoom = int64_t{32} << 20;
constexpr int64_t kWidestRow = int64_t{1} << 18;
constexpr int kLineLength = 100;

int64_t PowerOfTwoAtMost(int64_t value) {
  int64_t power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

int64_t Bytes(const std::string& dtype) { return std::max(1, DtypeBits(dtype) / 8); }

std::string Join(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) text += (i > 0 ? between : "") + parts[i];
  return text;
}

std::string Tuple(const std::vector<std::string>& parts) {
  return "(" + Join(parts, ", ") + (parts.size() == 1 ? ",)" : ")");
}

// Puts the arguments of a line's last call on a line of their own when it is too long.
std::string Wrapped(const std::string& line) {
  if (line.size() <= kLineLength) return line;
  const size_t last = line.rfind(')');
  if (last == std::string::npos || last + 2 < line.size()) return line;
  int depth = 0;
  size_t open = last;
  for (size_t i = last + 1; i-- > 0;) {
    if (line[i] == ')') ++depth;
    if (line[i] == '(' && --depth == 0) {
      open = i;
      break;
    }
  }
  const std::string indent(line.find_first_not_of(' '), ' ');
  return line.substr(0, open + 1) + "\n" + indent + "    " + line.substr(open + 1, last - open - 1) + "\n" + indent +
         line.substr(last);
}

// Breaks `head(a, b, …)tail` over lines when it is too long for one.
std::string Signature(const std::string& indent, const std::string& head, const std::vector<std::string>& parts,
                      const std::string& tail) {
  std::string line = indent + head + Join(parts, ", ") + tail;
  if (line.size() <= kLineLength) return line + "\n";
  return indent + head + "\n" + indent + "    " + Join(parts, ", ") + "\n" + indent + tail + "\n";
}

class StageWriter {
 public:
  StageWriter(const WriterContext& context, const Stage& stage, const StageNames& names)
      : context_(context), stage_(stage), names_(names), jnp_(context.modules.jnp), pl_(context.modules.pl) {
    for (const char* word : {"k", "n", "m", "d", "rows", "step", "left", "block_m", "block_n", "block_k", "block_rows",
                             "row_block", "column_block", "out", "i", "j", "s"}) {
      taken_.Reserve(word);
    }
    for (const std::string& module : {context.modules.jax, jnp_, pl_, context.modules.pltpu}) taken_.Reserve(module);
    taken_.Reserve("functools");
  }

  std::variant<StageText, Obstacle> Write() {
    if (!Collect()) return obstacle_;
    const bool done = stage_.products.empty() ? Rows() : stage_.has_prologue ? Computed() : Accumulated();
    if (!done) return obstacle_;
    result_.text = kernel_ + "\n\n" + call_;
    return std::move(result_);
  }

 private:
  // Something that the kernel reads or writes.
  struct Place {
    int node = 0;
    std::string name;
    std::string dtype;
    Axes::Layout layout;
    bool in_epilogue = false;
    const Product* weight = nullptr;
  };

  const Node& node(int at) const { return context_.flat.nodes[static_cast<size_t>(at)]; }
  bool Refuse(std::string reason) {
    obstacle_ = {std::move(reason), stage_.outputs.empty() ? std::vector<SourceSpan>() : node(stage_.outputs[0]).spans};
    return false;
  }
  int64_t Extent(int axis) const {
    const auto found = context_.axes.size.find(axis);
    return found == context_.axes.size.end() ? 1 : found->second;
  }

  bool Collect() {
    for (const Source& source : stage_.sources) {
      Place place{source.node,
                  "",
                  node(source.node).op == "input" ? node(source.node).type.dtype : KeptType(context_.flat, source.node),
                  context_.axes.layout[static_cast<size_t>(source.node)],
                  source.in_epilogue,
                  nullptr};
      if (place.dtype != "float32" && place.dtype != "bfloat16" && place.dtype != "int32") {
        return Refuse("an argument of type " + place.dtype);
      }
      place.name = taken_.Take(context_.names.at(source.node));
      inputs_.push_back(std::move(place));
    }
    for (const Product& product : stage_.products) {
      const auto known = std::find_if(inputs_.begin(), inputs_.end(), [&](const Place& each) {
        return each.weight != nullptr && each.node == product.weight && each.weight->transposed == product.transposed;
      });
      if (known != inputs_.end()) continue;
      inputs_.push_back({product.weight,
                         taken_.Take(context_.names.at(product.weight)),
                         node(product.weight).type.dtype,
                         {},
                         false,
                         &product});
    }
    for (int output : stage_.outputs) {
      Place place{output, "",     KeptType(context_.flat, output), context_.axes.layout[static_cast<size_t>(output)],
                  true,   nullptr};
      if (place.dtype != "float32" && place.dtype != "bfloat16" && place.dtype != "int32") {
        return Refuse("a result of type " + place.dtype);
      }
      if (!place.layout.rows) return Refuse("a result that has no rows");
      place.name = stage_.outputs.size() == 1 ? "o" : context_.names.at(output);
      outputs_.push_back(std::move(place));
    }
    for (Place& output : outputs_) {
      output.name = taken_.Take(output.name == "o" ? "o" : output.name + "_out");
    }
    const auto full = std::find_if(inputs_.begin(), inputs_.end(), [&](const Place& each) {
      return each.weight == nullptr && each.layout.rows && each.layout.column != kUnit;
    });
    if (full == inputs_.end()) return Refuse("no argument has both rows and columns");
    primary_ = *full;
    // One name per value that the call takes, however often the kernel reads it.
    for (const Place& input : inputs_) {
      const auto known = std::find(result_.argument_nodes.begin(), result_.argument_nodes.end(), input.node);
      if (known != result_.argument_nodes.end()) continue;
      result_.argument_nodes.push_back(input.node);
      result_.arguments.push_back(input.name);
    }
    return true;
  }

  std::string ArgumentOf(const Place& input) const {
    const auto known = std::find(result_.argument_nodes.begin(), result_.argument_nodes.end(), input.node);
    return result_.arguments[static_cast<size_t>(known - result_.argument_nodes.begin())];
  }

  std::string Load(const Place& input) const {
    return input.name + "_ref[...]" + (input.dtype == "bfloat16" ? ".astype(" + jnp_ + ".float32)" : "");
  }

  // Where values are bound: loads of the inputs of one side.
  void LoadAll(Body& body, std::vector<std::string>& lines, bool epilogue) {
    for (const Place& input : inputs_) {
      if (input.weight != nullptr || input.in_epilogue != epilogue) continue;
      body.Bind(input.node, input.name);
      lines.push_back(input.name + " = " + Load(input));
    }
  }

  void StoreAll(Body& body, std::vector<std::string>& lines) {
    std::vector<std::string> stores;
    for (const Place& output : outputs_) {
      const std::string ref = output.name + "_ref";
      const std::string cast = output.dtype == "bfloat16" ? ref + ".dtype" : "";
      std::string value = body.Cast(output.node, cast);
      stores.push_back(ref + "[...] = " + value);
    }
    lines.insert(lines.end(), body.lines().begin(), body.lines().end());
    lines.insert(lines.end(), stores.begin(), stores.end());
  }

  static std::string Indented(const std::vector<std::string>& lines, int depth) {
    std::string text;
    for (const std::string& line : lines) {
      text += line.empty() ? "\n" : Wrapped(std::string(static_cast<size_t>(4 * depth), ' ') + line) + "\n";
    }
    return text;
  }

  std::vector<std::string> References(const std::vector<std::string>& scratch) const {
    std::vector<std::string> references;
    for (const Place& input : inputs_) references.push_back(input.name + "_ref");
    for (const Place& output : outputs_) references.push_back(output.name + "_ref");
    references.insert(references.end(), scratch.begin(), scratch.end());
    return references;
  }

  // "x (…, k)": shapes as the docstring of the call says them.
  std::string ShapeWords(const Place& place, const std::string& column) const {
    if (place.weight != nullptr) return place.weight->transposed ? "(n, k)" : "(k, n)";
    const std::string width = place.layout.column != kUnit ? column : "1";
    if (place.layout.rows) return "(…, " + width + ")";
    return place.layout.column != kUnit ? "(" + column + ",)" : "()";
  }

  std::string BlockWords(const Place& place, const std::string& rows, const std::string& column) const {
    return "(" + (place.layout.rows ? rows : "1") + ", " + (place.layout.column != kUnit ? column : "1") + ")";
  }

  static std::string OneOrMoreLines(const std::string& indent, const std::string& text) {
    // Words are wrapped; a docstring of several lines ends on a line of its own.
    std::vector<std::string> lines;
    std::string line;
    size_t begin = 0;
    while (begin <= text.size()) {
      size_t end = text.find(' ', begin);
      if (end == std::string::npos) end = text.size();
      const std::string word = text.substr(begin, end - begin);
      if (!line.empty() && indent.size() + line.size() + 1 + word.size() + (lines.empty() ? 3 : 0) > 96) {
        lines.push_back(line);
        line.clear();
      }
      line += (line.empty() ? "" : " ") + word;
      begin = end + 1;
    }
    lines.push_back(line);
    std::string doc = indent + "\"\"\"" + Join(lines, "\n" + indent);
    if (lines.size() > 1) doc += "\n" + indent;
    return doc + "\"\"\"\n";
  }

  std::string DtypeText(const std::string& dtype) const {
    return primary_.dtype == dtype ? ArgumentOf(primary_) + ".dtype" : jnp_ + "." + dtype;
  }

  // How an argument is given to the kernel: as a matrix.
  std::string AsMatrix(const Place& input, const std::string& rows, const std::string& column) const {
    std::string name = ArgumentOf(input);
    if (input.weight != nullptr) return name;
    return name + ".reshape(" + (input.layout.rows ? rows : "1") + ", " +
           (input.layout.column != kUnit ? column : "1") + ")";
  }

  std::string LeadOf() const { return "*" + ArgumentOf(primary_) + ".shape[:-1]"; }

  // The result in the caller's shape.
  std::string Results(const std::string& width) const {
    const auto shaped = [&](const std::string& value, const Place& output) {
      const bool own = !outputs_.empty() && output.layout.column == primary_.layout.column && width != "n";
      if (output.layout.column != kUnit && own) return value + ".reshape(" + ArgumentOf(primary_) + ".shape)";
      return value + ".reshape(" + LeadOf() + ", " + (output.layout.column != kUnit ? width : "1") + ")";
    };
    if (outputs_.size() == 1) return "    return " + shaped("out", outputs_[0]) + "\n";
    std::vector<std::string> values;
    for (const Place& output : outputs_) values.push_back(shaped(output.name, output));
    return "    return " + Join(values, ", ") + "\n";
  }

  std::string Receiver() const {
    if (outputs_.size() == 1) return "out";
    std::vector<std::string> names;
    for (const Place& output : outputs_) names.push_back(output.name);
    return Join(names, ", ");
  }

  // The pallas_call itself, with everything on lines of its own.
  std::string PallasCall(const std::string& kernel, const std::string& grid,
                         const std::vector<std::pair<std::string, std::string>>& in_specs,
                         const std::vector<std::string>& out_specs, const std::vector<std::string>& out_shapes,
                         const std::vector<std::string>& scratch, const std::vector<std::string>& semantics,
                         int64_t vmem, const std::vector<std::string>& operands) const {
    std::string text = "    " + Receiver() + " = " + pl_ + ".pallas_call(\n        " + kernel +
                       ",\n        grid=" + grid + ",\n        in_specs=[\n";
    for (const auto& [spec, what] : in_specs) text += "            " + spec + ",  # " + what + "\n";
    text +=
        "        ],\n        out_specs=" + (out_specs.size() == 1 ? out_specs[0] : "[" + Join(out_specs, ", ") + "]") +
        ",\n        out_shape=" + (out_shapes.size() == 1 ? out_shapes[0] : "[" + Join(out_shapes, ", ") + "]") + ",\n";
    if (!scratch.empty()) text += "        scratch_shapes=[" + Join(scratch, ", ") + "],\n";
    std::vector<std::string> quoted;
    for (const std::string& word : semantics) quoted.push_back("\"" + word + "\"");
    std::string limit;
    if (vmem > kDefaultLimit) {
      const int64_t mib = std::min(kLargestLimit, vmem * 3 / 2) >> 20;
      limit = ", vmem_limit_bytes=" + std::to_string(std::max<int64_t>(mib, 20)) + " << 20";
    }
    const std::string parameters = "dimension_semantics=" + Tuple(quoted) + limit;
    text += Wrapped("        compiler_params=" + context_.modules.pltpu + ".CompilerParams(" + parameters + "),") +
            "\n        name=\"" + names_.title + "\",\n    )(" + Join(operands, ", ") + ")\n";
    return text;
  }

  bool CheckWidth(int64_t bytes_per_row) {
    if (bytes_per_row * 8 <= kLargestLimit) return true;
    return Refuse("a block of 8 whole rows takes " + std::to_string((bytes_per_row * 8) >> 20) +
                  " MiB of VMEM, more than the chips have");
  }

  // ---- whole rows

  bool Rows() {
    std::vector<std::string> lines;
    Body body(context_, taken_);
    for (const Place& input : inputs_) body.Bind(input.node, input.name);
    body.Expect(stage_.outputs);
    LoadAll(body, lines, false);
    StoreAll(body, lines);
    std::vector<std::string> words;
    for (const Place& input : inputs_) words.push_back(input.name + " " + BlockWords(input, "block_rows", "d"));
    std::vector<std::string> results;
    for (const Place& output : outputs_) results.push_back(output.name + " " + BlockWords(output, "block_rows", "d"));
    kernel_ = Signature("", "def " + names_.kernel + "(", References({}), "):");
    kernel_ +=
        OneOrMoreLines("    ", "A block of whole rows: " + Join(words, ", ") + " -> " + Join(results, ", ") + ".");
    kernel_ += Indented(lines, 1);

    int64_t per_row = 0;
    int64_t widest = 1;
    for (const auto* side : {&inputs_, &outputs_}) {
      for (const Place& place : *side) {
        const int64_t width = std::max<int64_t>(128, Extent(place.layout.column));
        if (place.layout.rows) per_row += 2 * width * Bytes(place.dtype);
        widest = std::max(widest, width);
      }
    }
    per_row += 8 * widest;  // two values in float32
    if (widest > kWidestRow) return Refuse("rows of " + std::to_string(widest) + " columns");
    if (!CheckWidth(per_row)) return false;
    int64_t block = PowerOfTwoAtMost(std::max<int64_t>(16, kRowBudget / per_row));
    block = std::clamp<int64_t>(block, 8, 512);
    if (per_row * block > kLargestLimit) block = 8;
    while (block > 16 && block * 8 > context_.axes.row_count) block /= 2;  // a pipeline wants some steps

    const std::string x = ArgumentOf(primary_);
    std::vector<std::string> parameters = result_.arguments;
    parameters.push_back("block_rows=" + std::to_string(block));
    call_ = Signature("", "def " + names_.call + "(", parameters, "):");
    call_ += CallDoc("d", "Rows do not depend on each other, so that the last block may be partial.");
    call_ += "    d = " + x + ".shape[-1]\n    rows = " + x + ".size // d\n    block_rows = min(block_rows, rows)\n";
    std::vector<std::pair<std::string, std::string>> in_specs;
    std::vector<std::string> operands;
    for (const Place& input : inputs_) {
      in_specs.emplace_back(RowSpec(input.layout), input.name);
      operands.push_back(AsMatrix(input, "rows", "d"));
    }
    std::vector<std::string> out_specs;
    std::vector<std::string> out_shapes;
    for (const Place& output : outputs_) {
      out_specs.push_back(RowSpec(output.layout));
      out_shapes.push_back(OutShape("rows", output.layout.column != kUnit ? "d" : "1", output.dtype));
    }
    call_ += PallasCall(names_.kernel, "(" + pl_ + ".cdiv(rows, block_rows),)", in_specs, out_specs, out_shapes, {},
                        {"parallel"}, per_row * block, operands);
    call_ += Results("d");
    std::set<int> columns;
    for (const auto* side : {&inputs_, &outputs_}) {
      for (const Place& place : *side) {
        if (place.layout.column != kUnit) columns.insert(place.layout.column);
      }
    }
    if (columns.size() != 1) return Refuse("rows of different lengths in one kernel");
    return true;
  }

  std::string RowSpec(const Axes::Layout& layout) const {
    const std::string width = layout.column != kUnit ? "d" : "1";
    if (layout.rows) return pl_ + ".BlockSpec((block_rows, " + width + "), lambda i: (i, 0))";
    return pl_ + ".BlockSpec((1, " + width + "), lambda i: (0, 0))";
  }

  std::string OutShape(const std::string& rows, const std::string& column, const std::string& dtype) const {
    return context_.modules.jax + ".ShapeDtypeStruct((" + rows + ", " + column + "), " + DtypeText(dtype) + ")";
  }

  std::string CallDoc(const std::string& width, const std::string& note) const {
    std::vector<std::string> words;
    for (size_t i = 0; i < result_.arguments.size(); ++i) {
      const auto input = std::find_if(inputs_.begin(), inputs_.end(),
                                      [&](const Place& each) { return each.node == result_.argument_nodes[i]; });
      const std::string column = stage_.products.empty() ? width : input->in_epilogue ? "n" : "k";
      words.push_back(result_.arguments[i] + " " + ShapeWords(*input, column));
    }
    std::vector<std::string> results;
    for (const Place& output : outputs_) results.push_back(ShapeWords(output, stage_.products.empty() ? "d" : "n"));
    return OneOrMoreLines("    ", Join(words, ", ") + " -> " + Join(results, ", ") + ". " + note);
  }

  // ---- products

  std::string Multiply(const Product& product, const std::string& left, const std::string& right) const {
    std::string options = ", preferred_element_type=" + jnp_ + ".float32";
    if (Text(node(product.node), "precision").find("HIGHEST") != std::string::npos) {
      options += ", precision=" + context_.modules.jax + ".lax.Precision.HIGHEST";
    }
    if (!product.transposed) return jnp_ + ".dot(" + left + ", " + right + options + ")";
    return context_.modules.jax + ".lax.dot_general(" + left + ", " + right + ", (((1,), (1,)), ((), ()))" + options +
           ")";
  }

  const Place& WeightOf(const Product& product) const {
    return *std::find_if(inputs_.begin(), inputs_.end(), [&](const Place& each) {
      return each.weight != nullptr && each.node == product.weight && each.weight->transposed == product.transposed;
    });
  }

  std::string LoadWeight(const Product& product) const {
    const Place& weight = WeightOf(product);
    const std::string cast =
        weight.dtype != product.right_dtype ? ".astype(" + jnp_ + "." + product.right_dtype + ")" : "";
    return weight.name + "_ref[...]" + cast;
  }

  // Sizes that a call works out first: k and n from a weight, m from the left side.
  std::string SizeLines() const {
    const Product& first = stage_.products.front();
    const std::string weight = ArgumentOf(WeightOf(first));
    return "    " + std::string(first.transposed ? "n, k" : "k, n") + " = " + weight +
           ".shape\n    m = " + ArgumentOf(primary_) + ".size // " + ArgumentOf(primary_) + ".shape[-1]\n";
  }

  // Name of a product's result inside the kernel.
  void BindProducts(Body& body, std::vector<std::string>& lines, const std::vector<std::string>& texts) {
    for (size_t i = 0; i < stage_.products.size(); ++i) {
      const std::string name = taken_.Take(context_.names.at(stage_.products[i].node));
      lines.push_back(name + " = " + texts[i]);
      body.Bind(stage_.products[i].node, name);
    }
  }

  // Roots of the epilogue, with what is loaded for it.
  void Epilogue(std::vector<std::string>& lines, const std::vector<std::string>& product_texts) {
    Body body(context_, taken_);
    BindProducts(body, lines, product_texts);
    LoadAll(body, lines, true);
    body.Expect(stage_.outputs);
    StoreAll(body, lines);
  }

  struct Index {
    std::string variables;  // "i, j, s"
    std::string row, column, step;
  };

  std::string Spec(const std::string& rows, const std::string& columns, const Index& index, const std::string& row,
                   const std::string& column) const {
    return pl_ + ".BlockSpec((" + rows + ", " + columns + "), lambda " + index.variables + ": (" + row + ", " + column +
           "))";
  }

  // Specs and operands of everything that is cut like the result.
  std::string ResultSpec(const Axes::Layout& layout, const Index& index) const {
    const bool wide = layout.column != kUnit;
    return Spec(layout.rows ? "block_m" : "1",
                !wide                  ? "1"
                : stage_.whole_columns ? "n"
                                       : "block_n",
                index, layout.rows ? index.row : "0", !wide || stage_.whole_columns ? "0" : index.column);
  }

  std::string MinLine(const std::vector<std::pair<std::string, std::string>>& blocks) const {
    std::vector<std::string> names;
    std::vector<std::string> values;
    for (const auto& [block, size] : blocks) {
      names.push_back(block);
      values.push_back("min(" + block + ", " + size + ")");
    }
    return "    " + Join(names, ", ") + " = " + Join(values, ", ") + "\n";
  }

  int64_t ResultBytes(int64_t bm, int64_t bn) const {
    int64_t bytes = 0;
    for (const auto* side : {&inputs_, &outputs_}) {
      for (const Place& place : *side) {
        if (place.weight == nullptr && place.in_epilogue && place.layout.rows) {
          bytes += 2 * bm * (place.layout.column != kUnit ? bn : 128) * Bytes(place.dtype);
        }
      }
    }
    return bytes;
  }

  int64_t WeightBytes(int64_t bk, int64_t bn) const {
    int64_t bytes = 0;
    for (const Place& place : inputs_) {
      if (place.weight != nullptr) bytes += 2 * bk * bn * Bytes(place.dtype);
    }
    return bytes;
  }

  // The left side is read as it is: blocks of k are added up in scratch.
  bool Accumulated() {
    const auto count = static_cast<int64_t>(stage_.products.size());
    const Product& first = stage_.products.front();
    const int64_t n = Extent(first.n);
    const Place left = inputs_.front();
    std::vector<std::string> accumulators;
    for (const Product& product : stage_.products) {
      accumulators.push_back(taken_.Take(count == 1 ? "acc" : context_.names.at(product.node) + "_acc"));
    }
    std::vector<std::string> scratch = accumulators;
    for (std::string& name : scratch) name += "_ref";

    const std::string step_axis = stage_.whole_columns ? "1" : "2";
    std::vector<std::string> weights;
    for (const Place& input : inputs_) {
      if (input.weight != nullptr) weights.push_back(input.name);
    }
    std::vector<std::string> parameters = References(scratch);
    parameters.push_back("*");
    parameters.push_back("k");
    const std::string columns = stage_.whole_columns ? "n" : "block_n";
    std::string doc = Join(scratch, ", ") + " (block_m, " + columns + ") += " + left.name + " (block_m, block_k) @ " +
                      Join(weights, ", ") + "; the last step finishes the block.";
    kernel_ = Signature("", "def " + names_.kernel + "(", parameters, "):");
    kernel_ += OneOrMoreLines("    ", doc);
    kernel_ +=
        "    step = " + pl_ + ".program_id(" + step_axis + ")\n\n    @" + pl_ + ".when(step == 0)\n    def _():\n";
    for (const std::string& name : scratch)
      kernel_ += "        " + name + "[...] = " + jnp_ + ".zeros_like(" + name + ")\n";
    const std::string cast = left.dtype != first.left_dtype ? ".astype(" + jnp_ + "." + first.left_dtype + ")" : "";
    kernel_ += "\n    " + left.name + " = " + left.name + "_ref[...]" + cast + "\n";
    for (const Product& product : stage_.products) {
      const std::string line = "    " + WeightOf(product).name + " = " + LoadWeight(product) + "\n";
      if (kernel_.find(line) == std::string::npos) kernel_ += line;
    }
    kernel_ += "    block_k = " + left.name + ".shape[1]\n";
    kernel_ += "    if k % block_k:  # the last block of k is partial: what lies beyond it must not be added\n";
    kernel_ += "        left = k - step * block_k\n";
    const std::string iota = context_.modules.jax + ".lax.broadcasted_iota(" + jnp_ + ".int32, ";
    const auto mask = [&](const std::string& name, const char* axis) {
      return Wrapped("        " + name + " = " + jnp_ + ".where(" + iota + name + ".shape, " + axis + ") < left, " +
                     name + ", 0)") +
             "\n";
    };
    kernel_ += mask(left.name, "1");
    for (const Place& input : inputs_) {
      if (input.weight != nullptr) kernel_ += mask(input.name, input.weight->transposed ? "1" : "0");
    }
    std::vector<std::string> finished;
    for (size_t i = 0; i < stage_.products.size(); ++i) {
      kernel_ += "    " + scratch[i] +
                 "[...] += " + Multiply(stage_.products[i], left.name, WeightOf(stage_.products[i]).name) + "\n";
      finished.push_back(scratch[i] + "[...]");
    }
    std::vector<std::string> lines;
    Epilogue(lines, finished);
    kernel_ += "\n    @" + pl_ + ".when(step == " + pl_ + ".num_programs(" + step_axis + ") - 1)\n    def _():\n";
    kernel_ += Indented(lines, 2);

    int64_t bm = 512;
    int64_t bn = stage_.whole_columns ? n : 512;
    int64_t bk = 512;
    const auto need = [&] {
      return 2 * bm * bk * Bytes(left.dtype) + WeightBytes(bk, bn) + count * bm * bn * 4 + ResultBytes(bm, bn) +
             bm * bn * 4;
    };
    if (stage_.whole_columns) {
      bm = 256;
      while (need() > kDefaultLimit && bk > 128) bk /= 2;
      while (need() > kDefaultLimit && bm > 64) bm /= 2;
      if (need() > kLargestLimit)
        return Refuse("rows of " + std::to_string(n) + " columns do not fit beside the product");
    }
    const Index index = stage_.whole_columns ? Index{"i, s", "i", "0", "s"} : Index{"i, j, s", "i", "j", "s"};
    const std::vector<std::string> scratch_shapes(
        static_cast<size_t>(count), context_.modules.pltpu + ".VMEM((block_m, " + Wide() + "), " + jnp_ + ".float32)");
    std::vector<std::string> semantics = {"parallel", "parallel", "arbitrary"};
    if (stage_.whole_columns) semantics.erase(semantics.begin());
    result_.needs_functools = true;
    ProductCall("Partial blocks are masked along k; those of rows and columns store only what exists.",
                "functools.partial(" + names_.kernel + ", k=k)", index, {bm, bn, bk}, scratch_shapes, semantics,
                need());
    return true;
  }

  struct BlockSizes {
    int64_t m = 0;
    int64_t n = 0;
    std::optional<int64_t> k;  // nothing: a block has all of k
  };

  // Columns of a block of the result.
  std::string Wide() const { return stage_.whole_columns ? "n" : "block_n"; }

  // The function that calls a kernel with products.
  void ProductCall(const std::string& note, const std::string& kernel, const Index& index, const BlockSizes& sizes,
                   const std::vector<std::string>& scratch, const std::vector<std::string>& semantics, int64_t need) {
    std::vector<std::string> parameters = result_.arguments;
    std::vector<std::pair<std::string, std::string>> blocks;
    std::vector<std::string> grid;
    const auto add = [&](const std::string& block, const std::string& size, int64_t value) {
      parameters.push_back(block + "=" + std::to_string(value));
      blocks.emplace_back(block, size);
      grid.push_back(pl_ + ".cdiv(" + size + ", " + block + ")");
    };
    add("block_m", "m", sizes.m);
    if (!stage_.whole_columns) add("block_n", "n", sizes.n);
    if (sizes.k) add("block_k", "k", *sizes.k);
    call_ = Signature("", "def " + names_.call + "(", parameters, "):");
    call_ += CallDoc("k", note) + SizeLines() + MinLine(blocks);

    const std::string deep = sizes.k ? "block_k" : "k";
    std::vector<std::pair<std::string, std::string>> in_specs;
    std::vector<std::string> operands;
    for (const Place& input : inputs_) {
      if (input.weight != nullptr) {
        in_specs.emplace_back(input.weight->transposed ? Spec(Wide(), deep, index, index.column, index.step)
                                                       : Spec(deep, Wide(), index, index.step, index.column),
                              input.name);
      } else if (input.in_epilogue) {
        in_specs.emplace_back(ResultSpec(input.layout, index), input.name);
      } else {
        // Where k is cut the left side is the argument itself; else a prologue may take parts of other forms.
        const bool rows = sizes.k || input.layout.rows;
        const bool columns = sizes.k || input.layout.column != kUnit;
        in_specs.emplace_back(
            Spec(rows ? "block_m" : "1", columns ? deep : "1", index, rows ? index.row : "0", index.step), input.name);
      }
      operands.push_back(AsMatrix(input, "m", input.in_epilogue ? "n" : "k"));
    }
    std::vector<std::string> out_specs;
    std::vector<std::string> out_shapes;
    for (const Place& output : outputs_) {
      out_specs.push_back(ResultSpec(output.layout, index));
      out_shapes.push_back(OutShape("m", output.layout.column != kUnit ? "n" : "1", output.dtype));
    }
    call_ += PallasCall(kernel, Tuple(grid), in_specs, out_specs, out_shapes, scratch, semantics, need, operands);
    call_ += Results("n");
  }

  // The left side is computed from whole rows, once for each block of them.
  bool Computed() {
    const Product& first = stage_.products.front();
    const int64_t k = Extent(first.k);
    const int64_t n = Extent(first.n);
    const Arg left = Behind(context_.flat, {first.left});
    const std::string kept = taken_.Take(context_.names.at(left.node));
    const bool inline_left = stage_.whole_columns;
    std::vector<std::string> scratch;
    if (!inline_left) scratch.push_back(kept + "_ref");

    Body prologue(context_, taken_);
    std::vector<std::string> lines;
    LoadAll(prologue, lines, false);
    prologue.Expect({left.node});
    const std::string narrow =
        first.left_dtype == "bfloat16" ? (inline_left ? jnp_ + ".bfloat16" : kept + "_ref.dtype") : "";
    const std::string value = prologue.Cast(left.node, narrow);
    lines.insert(lines.end(), prologue.lines().begin(), prologue.lines().end());
    lines.push_back((inline_left ? kept : kept + "_ref[...]") + " = " + value);

    kernel_ = Signature("", "def " + names_.kernel + "(", References(scratch), "):");
    if (inline_left) {
      kernel_ +=
          OneOrMoreLines("    ", "A block of whole rows: " + kept + " (block_m, k), then its product (block_m, n).");
      kernel_ += Indented(lines, 1);
    } else {
      kernel_ += OneOrMoreLines("    ", kept +
                                            " (block_m, k) is computed at the first block of columns and kept for the "
                                            "others; each gives (block_m, block_n).");
      kernel_ += "\n    @" + pl_ + ".when(" + pl_ + ".program_id(1) == 0)\n    def _():\n" + Indented(lines, 2) + "\n";
    }
    lines.clear();
    if (!inline_left) lines.push_back(kept + " = " + kept + "_ref[...]");
    std::vector<std::string> products;
    for (const Product& product : stage_.products) products.push_back(Multiply(product, kept, LoadWeight(product)));
    Epilogue(lines, products);
    kernel_ += Indented(lines, 1);

    // Weights are read once for each block of rows, so that rows are what VMEM is for.
    int64_t bm = stage_.whole_columns ? 256 : 512;
    int64_t bn = stage_.whole_columns ? n : 512;
    const auto need = [&] {
      int64_t bytes = bm * k * Bytes(first.left_dtype) + 8 * bm * k;
      for (const Place& input : inputs_) {
        if (input.weight == nullptr && !input.in_epilogue && input.layout.rows)
          bytes += 2 * bm * k * Bytes(input.dtype);
      }
      return bytes + WeightBytes(k, bn) + ResultBytes(bm, bn) +
             static_cast<int64_t>(stage_.products.size()) * bm * bn * 4;
    };
    while (!stage_.whole_columns && need() > kLargestLimit && bn > 256) bn /= 2;
    while (need() > kLargestLimit && bm > 128) bm /= 2;
    while (!stage_.whole_columns && need() > kLargestLimit && bn > 128) bn /= 2;
    while (need() > kLargestLimit && bm > 16) bm /= 2;
    if (need() > kLargestLimit) {
      return Refuse("whole rows of " + std::to_string(k) + " columns and the weights for them do not fit in VMEM");
    }
    const Index index = stage_.whole_columns ? Index{"i", "i", "0", "0"} : Index{"i, j", "i", "j", "0"};
    std::vector<std::string> scratch_shapes;
    if (!inline_left) {
      scratch_shapes.push_back(context_.modules.pltpu + ".VMEM((block_m, k), " + jnp_ + "." + first.left_dtype + ")");
    }
    std::vector<std::string> semantics = {"parallel"};
    if (!stage_.whole_columns) semantics.emplace_back("arbitrary");
    // Values of the prologue in float32 are nobody's window: the limit leaves room for them when blocks grow.
    ProductCall("A block of rows has all of k; partial blocks of rows and columns store only what exists.",
                names_.kernel, index, {bm, bn, std::nullopt}, scratch_shapes, semantics,
                std::max(need(), kPrologueRoom));
    return true;
  }

  const WriterContext& context_;
  const Stage& stage_;
  const StageNames& names_;
  const std::string jnp_;
  const std::string pl_;
  NameSet taken_;
  std::vector<Place> inputs_;
  std::vector<Place> outputs_;
  Place primary_;
  std::string kernel_;
  std::string call_;
  StageText result_;
  Obstacle obstacle_;
};

}  // namespace

std::variant<StageText, Obstacle> WriteStage(const WriterContext& context, const Stage& stage,
                                             const StageNames& names) {
  return StageWriter(context, stage, names).Write();
}

}  // namespace kernelwright::kernels::lift
