// Recursive-descent parser of the inputs text; see inputs.h.
#include "daemon/kernels/inputs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace kernelwright::kernels {
namespace {

struct Dtype {
  std::string_view short_name;
  std::string_view name;
  int bits;
};

constexpr std::array<Dtype, 18> kDtypes = {{{"bf16", "bfloat16", 16},
                                            {"f32", "float32", 32},
                                            {"f16", "float16", 16},
                                            {"f64", "float64", 64},
                                            {"c64", "complex64", 64},
                                            {"i8", "int8", 8},
                                            {"i16", "int16", 16},
                                            {"i32", "int32", 32},
                                            {"i64", "int64", 64},
                                            {"u8", "uint8", 8},
                                            {"u16", "uint16", 16},
                                            {"u32", "uint32", 32},
                                            {"u64", "uint64", 64},
                                            {"bool", "bool", 8},
                                            {"f8e4m3fn", "float8_e4m3fn", 8},
                                            {"f8e5m2", "float8_e5m2", 8},
                                            {"i4", "int4", 4},
                                            {"u4", "uint4", 4}}};

const Dtype* FindDtype(std::string_view name) {
  const auto it = std::find_if(kDtypes.begin(), kDtypes.end(),
                               [&](const Dtype& dtype) { return dtype.short_name == name || dtype.name == name; });
  return it == kDtypes.end() ? nullptr : &*it;
}

// Smallest and largest value of an integer type that fit int64.
std::optional<std::pair<int64_t, int64_t>> IntegerLimits(const Dtype& dtype) {
  if (dtype.name.starts_with("int")) {
    const int64_t high = std::numeric_limits<int64_t>::max() >> (64 - dtype.bits);
    return std::pair(-high - 1, high);
  }
  if (dtype.name.starts_with("uint")) {
    return std::pair(int64_t{0},
                     dtype.bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << dtype.bits) - 1);
  }
  return std::nullopt;
}

std::string SupportedDtypes() {
  std::string text = "Supported types: ";
  for (const Dtype& dtype : kDtypes) {
    if (&dtype != &kDtypes.front()) text += ", ";
    text += dtype.short_name;
  }
  return text + " (or their long names, such as bfloat16)";
}

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr std::string_view kForm =
    "Write items as name=dtype[dims], for instance x=bf16[4096,4096], ids=i32[64]{0..4095}, n=8, key=prng";

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  InputsResult Run() {
    std::vector<InputSpec> inputs;
    std::set<std::string> seen;
    for (;;) {
      while (!AtEnd() && (IsSpace(Peek()) || Peek() == ',')) ++at_;
      if (AtEnd()) break;
      const size_t start = at_;
      InputSpec input;
      if (!Item(input)) return error_;
      if (!seen.insert(input.PathText()).second) {
        at_ = start;
        Report("`" + input.PathText() + "` is given twice", "Keep one of the two");
        return error_;
      }
      inputs.push_back(std::move(input));
      if (!AtEnd() && !IsSpace(Peek()) && Peek() != ',') {
        Report("unexpected `" + std::string(1, Peek()) + "`", "Separate items by spaces or commas");
        return error_;
      }
    }
    return inputs;
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  bool Eat(char c) {
    if (Peek() != c || AtEnd()) return false;
    ++at_;
    return true;
  }
  void SkipSpace() {
    while (!AtEnd() && IsSpace(Peek())) ++at_;
  }
  bool Report(std::string message, std::string_view remedy) {
    error_ = {static_cast<uint32_t>(at_), std::move(message), std::string(remedy)};
    return false;
  }
  std::string Name() {
    const size_t start = at_;
    while (!AtEnd() && (IsNameStart(Peek()) || IsDigit(Peek()))) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  bool Integer(int64_t& value) {
    const size_t start = at_;
    std::string digits;
    if (Peek() == '-' || Peek() == '+') {
      if (Peek() == '-') digits = "-";
      ++at_;
    }
    while (!AtEnd() && (IsDigit(Peek()) || (Peek() == '_' && !digits.empty()))) {
      if (Peek() != '_') digits += Peek();
      ++at_;
    }
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size()) {
      at_ = start;
      return Report(
          code == std::errc::result_out_of_range ? "the number is too large" : "a whole number is expected here",
          "Write a decimal integer");
    }
    return true;
  }

  bool Quoted(std::string& value) {
    const size_t start = at_;
    const char quote = Peek();
    ++at_;
    while (!AtEnd() && Peek() != quote) {
      if (Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      value += Peek();
      ++at_;
    }
    if (!Eat(quote)) {
      at_ = start;
      return Report("the string is not closed", "End it with the same quote");
    }
    return true;
  }

  bool Path(std::vector<PathStep>& path) {
    if (!IsNameStart(Peek())) return Report("a name is expected here", kForm);
    path.push_back({PathStep::Kind::kName, Name(), 0});
    for (;;) {
      if (Peek() == '.') {
        ++at_;
        if (!IsNameStart(Peek())) return Report("an attribute name is expected after `.`", kForm);
        path.push_back({PathStep::Kind::kAttribute, Name(), 0});
      } else if (Peek() == '[') {
        ++at_;
        PathStep step;
        if (Peek() == '"' || Peek() == '\'') {
          step.kind = PathStep::Kind::kKey;
          if (!Quoted(step.name)) return false;
        } else {
          step.kind = PathStep::Kind::kIndex;
          if (!Integer(step.index)) {
            error_.remedy = "Index with a number or a quoted key: args[0]=…, p[\"w\"]=…";
            return false;
          }
          if (step.index < 0) {
            --at_;
            return Report("an index cannot be negative", "Count from 0");
          }
        }
        if (!Eat(']')) return Report("`]` is missing", "Index with a number or a quoted key: args[0]=…, p[\"w\"]=…");
        path.push_back(std::move(step));
      } else {
        return true;
      }
    }
  }

  bool Item(InputSpec& input) {
    if (!Path(input.path)) return false;
    SkipSpace();
    if (!Eat('=')) return Report("`=` is missing after `" + input.PathText() + "`", kForm);
    SkipSpace();
    const size_t start = at_;
    const char c = Peek();
    if (AtEnd() || c == ',') return Report("a value is missing after `" + input.PathText() + "=`", kForm);
    if (IsDigit(c) || c == '.' || c == '-' || c == '+' || c == '(' || c == '"' || c == '\'') {
      input.kind = InputSpec::Kind::kStatic;
      nlohmann::json value;
      if (!Static(value)) return false;
      input.static_json = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return true;
    }
    const std::string word = Name();
    if (word == "True" || word == "False" || word == "None") {
      input.kind = InputSpec::Kind::kStatic;
      input.static_json = word == "True" ? "true" : word == "False" ? "false" : "null";
      return true;
    }
    if (word == "prng") {
      input.kind = InputSpec::Kind::kPrngKey;
      return true;
    }
    const Dtype* dtype = FindDtype(word);
    if (dtype == nullptr) {
      at_ = start;
      if (word.empty()) return Report("a type or a value is expected here", kForm);
      return Report("unsupported dtype `" + word + "`", SupportedDtypes());
    }
    input.dtype = dtype->name;
    if (Peek() != '[') {
      return Report("the shape is missing after `" + word + "`",
                    "Write " + word + "[dims]; a scalar is " + word + "[]");
    }
    return Dims(input.dims) && Range(*dtype, input);
  }

  bool Dims(std::vector<int64_t>& dims) {
    ++at_;
    SkipSpace();
    if (Eat(']')) return true;
    for (;;) {
      SkipSpace();
      const size_t start = at_;
      int64_t dim = 0;
      if (!Integer(dim)) {
        error_.message = "a dimension is expected here";
        error_.remedy = "Dimensions are numbers between commas: [4096,128]";
        return false;
      }
      if (dim < 0) {
        at_ = start;
        return Report("a dimension cannot be negative", "Dimensions are numbers between commas: [4096,128]");
      }
      dims.push_back(dim);
      SkipSpace();
      if (Eat(']')) return true;
      if (!Eat(',')) return Report("`,` or `]` is expected here", "Dimensions are numbers between commas: [4096,128]");
    }
  }

  bool Range(const Dtype& dtype, InputSpec& input) {
    if (Peek() != '{') return true;
    const auto limits = IntegerLimits(dtype);
    if (!limits) {
      return Report("a range is only for integers, not for " + std::string(dtype.short_name), "Leave {…} out");
    }
    ++at_;
    const size_t start = at_;
    std::pair<int64_t, int64_t> range;
    SkipSpace();
    if (!Integer(range.first)) return false;
    SkipSpace();
    if (!Eat('.') || !Eat('.')) return Report("`..` is expected here", "A range is {low..high}, both included");
    SkipSpace();
    if (!Integer(range.second)) return false;
    SkipSpace();
    if (!Eat('}')) return Report("`}` is missing", "A range is {low..high}, both included");
    if (range.first > range.second || range.first < limits->first || range.second > limits->second) {
      at_ = start;
      return Report("the range is empty or does not fit " + std::string(dtype.short_name),
                    "Use values between " + std::to_string(limits->first) + " and " + std::to_string(limits->second));
    }
    input.range = range;
    return true;
  }

  bool Static(nlohmann::json& value) {
    const char c = Peek();
    if (c == '"' || c == '\'') {
      std::string text;
      if (!Quoted(text)) return false;
      value = std::move(text);
      return true;
    }
    if (c == '(') return Tuple(value);
    const size_t start = at_;
    if (c == '-' || c == '+') ++at_;
    while (!AtEnd() && (IsDigit(Peek()) || Peek() == '_' || Peek() == '.' || Peek() == 'e' || Peek() == 'E' ||
                        ((Peek() == '-' || Peek() == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))) {
      ++at_;
    }
    std::string number(text_.substr(start, at_ - start));
    if (number.find_first_of(".eE") == std::string::npos) {
      at_ = start;
      int64_t integer = 0;
      if (!Integer(integer)) return false;
      value = integer;
      return true;
    }
    std::erase(number, '_');
    if (number.starts_with('+')) number.erase(0, 1);
    double real = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), real);
    if (code != std::errc() || end != number.data() + number.size()) {
      at_ = start;
      return Report("`" + number + "` is not a number", "Write a Python number such as 0.5 or 1e-6");
    }
    value = real;
    return true;
  }

  bool Tuple(nlohmann::json& value) {
    ++at_;
    value = nlohmann::json::array();
    for (;;) {
      SkipSpace();
      if (Eat(')')) return true;
      int64_t element = 0;
      if (!Integer(element)) {
        error_.remedy = "A tuple holds whole numbers: (1,2)";
        return false;
      }
      value.push_back(element);
      SkipSpace();
      if (Eat(')')) return true;
      if (!Eat(',')) return Report("`,` or `)` is expected here", "A tuple holds whole numbers: (1,2)");
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  InputsError error_;
};

std::string QuotedText(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string InputSpec::PathText() const {
  std::string text;
  for (const PathStep& step : path) {
    switch (step.kind) {
      case PathStep::Kind::kName:
        text += step.name;
        break;
      case PathStep::Kind::kAttribute:
        text += "." + step.name;
        break;
      case PathStep::Kind::kKey:
        text += "[" + QuotedText(step.name) + "]";
        break;
      case PathStep::Kind::kIndex:
        text += "[" + std::to_string(step.index) + "]";
        break;
    }
  }
  return text;
}

InputsResult ParseInputsText(std::string_view text) { return Parser(text).Run(); }

Expected<std::vector<InputSpec>> ParseInputs(std::string_view text, std::string_view where) {
  InputsResult result = ParseInputsText(text);
  if (const auto* error = std::get_if<InputsError>(&result)) {
    return Fail(ErrorKind::kUsage, error->message, std::string(where) + ", column " + std::to_string(error->offset + 1),
                error->remedy);
  }
  return std::get<std::vector<InputSpec>>(std::move(result));
}

std::string FormatInput(const InputSpec& input) {
  std::string text = input.PathText() + "=";
  switch (input.kind) {
    case InputSpec::Kind::kPrngKey:
      return text + "prng";
    case InputSpec::Kind::kTensor:
      text += ShortDtype(input.dtype) + "[";
      for (size_t i = 0; i < input.dims.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(input.dims[i]);
      text += "]";
      if (input.range) {
        text += "{" + std::to_string(input.range->first) + ".." + std::to_string(input.range->second) + "}";
      }
      return text;
    case InputSpec::Kind::kStatic:
      break;
  }
  const auto value = nlohmann::json::parse(input.static_json, nullptr, /*allow_exceptions=*/false);
  if (value.is_null()) return text + "None";
  if (value.is_boolean()) return text + (value.get<bool>() ? "True" : "False");
  if (value.is_string()) return text + QuotedText(value.get<std::string>());
  if (value.is_array()) {
    text += "(";
    for (size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "" : ",") + value[i].dump();
    return text + (value.size() == 1 ? ",)" : ")");
  }
  return text + value.dump();
}

std::string FormatInputs(const std::vector<InputSpec>& inputs) {
  std::string text;
  for (const InputSpec& input : inputs) {
    if (!text.empty()) text += ' ';
    text += FormatInput(input);
  }
  return text;
}

std::optional<std::string> CanonicalDtype(std::string_view name) {
  const Dtype* dtype = FindDtype(name);
  if (dtype == nullptr) return std::nullopt;
  return std::string(dtype->name);
}

std::string ShortDtype(std::string_view name) {
  const Dtype* dtype = FindDtype(name);
  return std::string(dtype == nullptr ? name : dtype->short_name);
}

int DtypeBits(std::string_view name) {
  const Dtype* dtype = FindDtype(name);
  return dtype == nullptr ? 0 : dtype->bits;
}

}  // namespace kernelwright::kernels
