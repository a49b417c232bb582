// The scanner is written by hand around three questions per character class: does an operation end here, does a comment
// start here, does a bracket open here. Everything else is skipped through a table, which is what makes it fast.
#include "daemon/compiler/bundles.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace kernelwright::compiler {
namespace {

constexpr std::string_view kLegendEnd = "= control target key end";
constexpr size_t kMaxText = size_t{1} << 31;

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};

constexpr std::array<bool, 256> MakeStopTable() {
  std::array<bool, 256> table{};
  for (const char c : {';', '}', '/', '[', ']', '\n'}) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kStop = MakeStopTable();

bool IsOpcodeChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

BundleLabel LabelOf(std::string_view two) {
  if (two == "LH") return BundleLabel::kLoopHeader;
  if (two == "LB") return BundleLabel::kLoopBody;
  if (two == "LE") return BundleLabel::kLoopExit;
  if (two == "PB") return BundleLabel::kPredicatedBody;
  if (two == "PF") return BundleLabel::kFallThrough;
  if (two == "CT") return BundleLabel::kTarget;
  return BundleLabel::kNone;
}

}  // namespace

class BundleParser {
 public:
  explicit BundleParser(std::string text) { program_.text_ = std::move(text); }

  Expected<BundleProgram> Run() {
    const std::string& text = program_.text_;
    if (text.size() >= kMaxText) {
      return Fail(ErrorKind::kLimit, "the schedule dump is larger than 2 GiB", "final_bundles");
    }
    const size_t legend = text.find(kLegendEnd);
    if (legend == std::string::npos) {
      return Fail(ErrorKind::kEnvironment,
                  "no control target legend: the text is not a final_bundles dump, or is cut off", "final_bundles",
                  "Compile again; if it stays, this libtpu version writes another format");
    }
    begin_ = text.data();
    end_ = begin_ + text.size();
    p_ = begin_ + legend + kLegendEnd.size();
    program_.ops_.reserve(text.size() / 96);
    program_.op_locations_.reserve(text.size() / 160);
    program_.bundles_.reserve(text.size() / 256 + 16);
    if (Status status = ParseAll(); !status.ok()) return Fail(std::move(status));
    if (program_.bundles_.empty()) {
      return Fail(Error("the schedule dump has no bundle after its legend"));
    }
    std::stable_sort(program_.regions_.begin(), program_.regions_.end(),
                     [](const RegionStart& a, const RegionStart& b) { return a.region < b.region; });
    std::sort(program_.ended_regions_.begin(), program_.ended_regions_.end());
    // Giving back what was reserved too much costs a copy: only where it is much.
    const auto shrink = [](auto* values) {
      if (values->capacity() > values->size() * 2) values->shrink_to_fit();
    };
    shrink(&program_.ops_);
    shrink(&program_.op_locations_);
    shrink(&program_.bundles_);
    return std::move(program_);
  }

 private:
  Status Error(std::string what) const {
    const auto line = 1 + std::count(begin_, std::min(p_, end_), '\n');
    return {ErrorKind::kEnvironment, std::move(what), "final_bundles line " + std::to_string(line),
            "Compile again; if it stays, this libtpu version writes another format"};
  }

  void SkipSpace() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) ++p_;
  }

  Status ParseAll() {
    while (true) {
      SkipSpace();
      if (p_ >= end_) return {};
      if (Status status = ParseBundle(); !status.ok()) return status;
    }
  }

  // address label? ":" depth "{" ops "}" note?
  Status ParseBundle() {
    uint64_t address = 0;
    if (*p_ != '0') return Error("expected the address of a bundle");
    ++p_;
    if (p_ < end_ && *p_ == 'x') {
      ++p_;
      const char* digits = p_;
      for (; p_ < end_; ++p_) {
        int digit = 0;
        if (IsDigit(*p_)) {
          digit = *p_ - '0';
        } else if (*p_ >= 'a' && *p_ <= 'f') {
          digit = *p_ - 'a' + 10;
        } else {
          break;
        }
        address = address * 16 + static_cast<uint64_t>(digit);
        if (address > kMaxText) return Error("the address of a bundle is too large");
      }
      if (p_ == digits) return Error("expected the address of a bundle");
    }
    if (address != program_.bundles_.size()) {
      return Error("bundle addresses are not consecutive: the dump is mixed or has lost lines");
    }
    while (p_ < end_ && *p_ == ' ') ++p_;
    Bundle bundle;
    bundle.op_begin = static_cast<uint32_t>(program_.ops_.size());
    if (end_ - p_ >= 2 && *p_ >= 'A' && *p_ <= 'Z') {
      bundle.label = LabelOf(std::string_view(p_, 2));
      p_ += 2;
      while (p_ < end_ && *p_ == ' ') ++p_;
    }
    if (p_ >= end_ || *p_ != ':') return Error("expected ':' after the address of a bundle");
    ++p_;
    for (; p_ < end_ && (*p_ == ' ' || *p_ == '>'); ++p_) {
      if (*p_ == '>' && bundle.depth < 255) ++bundle.depth;
    }
    if (p_ >= end_ || *p_ != '{') return Error("expected '{' at the start of a bundle");
    ++p_;
    // An empty bundle is printed without its depth marks; it lies where the bundle before it lies.
    if (p_ < end_ && *p_ == '}' && !program_.bundles_.empty()) bundle.depth = program_.bundles_.back().depth;
    program_.bundles_.push_back(bundle);
    program_.complete_ = program_.has_exit_ = false;
    if (Status status = ParseOps(); !status.ok()) return status;
    return ParseNotes();
  }

  Status ParseOps() {
    while (true) {
      SkipSpace();
      if (p_ >= end_) return Error("the dump ends inside a bundle");
      if (*p_ == '}') {
        ++p_;
        return {};
      }
      if (Status status = ParseOp(); !status.ok()) return status;
    }
  }

  Status ParseOp() {
    const char* start = p_;
    const char* q = p_;
    if (*q == '%') {
      while (q < end_ && *q != ' ' && *q != '\n') ++q;
      if (end_ - q < 3 || q[0] != ' ' || q[1] != '=' || q[2] != ' ') return Error("expected ' = ' after a result name");
      q += 3;
    }
    const char* name = q;
    while (q < end_ && IsOpcodeChar(*q)) ++q;
    if (q == name) return Error("expected an opcode");
    const uint16_t opcode = InternOpcode(std::string_view(name, static_cast<size_t>(q - name)));
    BundleOp op;
    op.opcode = opcode;
    op.location_begin = static_cast<uint32_t>(program_.op_locations_.size());
    op.text_begin = static_cast<uint32_t>(start - begin_);
    int depth = 0;
    while (true) {
      while (q < end_ && !kStop[static_cast<unsigned char>(*q)]) ++q;
      p_ = q;
      if (q >= end_) return Error("the dump ends inside an operation");
      const char c = *q;
      if (c == '/') {
        if (q + 1 < end_ && q[1] == '*') {
          const char* close = FindCommentEnd(q + 2);
          if (close == nullptr) return Error("the dump ends inside a comment");
          if (q[2] == ' ') ParseLocations(q + 3, close);
          q = close + 2;
        } else {
          ++q;
        }
      } else if (c == '[') {
        ++depth;
        ++q;
      } else if (c == ']') {
        --depth;
        ++q;
      } else if (c == ';') {
        if (depth == 0 && q + 1 < end_ && q[1] == ';') {
          FinishOp(op, start, q);
          p_ = q + 2;
          return {};
        }
        ++q;
      } else if (c == '}') {
        if (depth <= 0) {
          FinishOp(op, start, q);
          p_ = q;
          return {};
        }
        ++q;
      } else {  // a line break outside of a comment ends nothing, but a bundle never spans lines without one
        return Error("an operation is cut off at the end of a line");
      }
    }
  }

  void FinishOp(BundleOp& op, const char* start, const char* stop) {
    while (stop > start && stop[-1] == ' ') --stop;
    op.text_size = static_cast<uint32_t>(stop - start);
    const size_t count = program_.op_locations_.size() - op.location_begin;
    op.location_count = static_cast<uint16_t>(std::min<size_t>(count, 0xffff));
    const Opcode& opcode = program_.opcodes_[op.opcode];
    if ((opcode.unit == Unit::kStore || opcode.unit == Unit::kLoad) &&
        IsVectorSpill(std::string_view(start, op.text_size))) {
      ++program_.vector_spill_ops_;
    }
    program_.ops_.push_back(op);
  }

  // Position of the "*/" that closes a comment, or null. The comment of a copy quotes operations with comments of their
  // own, so comments nest.
  const char* FindCommentEnd(const char* q) const {
    int depth = 1;
    const char* const first = q;
    while (q < end_) {
      const auto* star = static_cast<const char*>(std::memchr(q, '*', static_cast<size_t>(end_ - q)));
      if (star == nullptr || star + 1 >= end_) return nullptr;
      q = star + 1;
      if (star > first && star[-1] == '/') {
        ++depth;
      } else if (star[1] == '/') {
        if (--depth == 0) return star;
        ++q;
      }
    }
    return nullptr;
  }

  // All loc("file":l:c to …) of one comment.
  void ParseLocations(const char* q, const char* stop) {
    while (stop - q > 8) {
      if (q[0] == 'l' && std::memcmp(q, "loc(\"", 5) == 0) {
        q = ParseLocation(q + 5, stop);
        if (q == nullptr) return;
      }
      const auto* next = static_cast<const char*>(std::memchr(q, 'l', static_cast<size_t>(stop - q)));
      if (next == nullptr) return;
      q = next == q ? q + 1 : next;
    }
  }

  static bool ParseInt(const char*& q, const char* stop, int32_t* out) {
    int64_t value = 0;
    const char* start = q;
    while (q < stop && IsDigit(*q) && value < 1000000000) value = value * 10 + (*q++ - '0');
    *out = static_cast<int32_t>(std::min<int64_t>(value, 0x7fffffff));
    return q != start;
  }

  // After `loc("`.
  const char* ParseLocation(const char* q, const char* stop) {
    for (const SeenLocation& seen : seen_locations_) {
      if (seen.size == 0 || static_cast<size_t>(stop - q) <= seen.size || q[seen.size] != ')') continue;
      if (std::memcmp(q, seen.text, seen.size) != 0) continue;
      program_.op_locations_.push_back(seen.location);
      return q + seen.size;
    }
    const size_t before = program_.op_locations_.size();
    const char* end = ReadLocation(q, stop);
    if (end != nullptr && end < stop && *end == ')' && program_.op_locations_.size() > before) {
      seen_locations_[next_seen_] = {q, static_cast<size_t>(end - q), program_.op_locations_.back()};
      next_seen_ = (next_seen_ + 1) % seen_locations_.size();
    }
    return end;
  }

  // A shape that this version does not know is skipped: the operation then has no line.
  const char* ReadLocation(const char* q, const char* stop) {
    const auto* quote = static_cast<const char*>(std::memchr(q, '"', static_cast<size_t>(stop - q)));
    if (quote == nullptr) return nullptr;
    const std::string_view file(q, static_cast<size_t>(quote - q));
    q = quote + 1;
    SourceLocation loc;
    if (q >= stop || *q != ':') return q;
    ++q;
    if (!ParseInt(q, stop, &loc.line) || q >= stop || *q != ':') return q;
    ++q;
    if (!ParseInt(q, stop, &loc.column)) return q;
    loc.end_line = loc.line;
    loc.end_column = loc.column;
    if (stop - q > 4 && std::memcmp(q, " to ", 4) == 0) {
      q += 4;
      const bool same_line = *q == ':';
      if ((same_line || ParseInt(q, stop, &loc.end_line)) && q < stop && *q == ':') {
        ++q;
        ParseInt(q, stop, &loc.end_column);
      }
    }
    loc.file = InternFile(file);
    program_.op_locations_.push_back(InternLocation(loc));
    return q;
  }

  // Notes behind a bundle: "/* Start region 0 :: Start/End empty region 7 */".
  Status ParseNotes() {
    while (true) {
      while (p_ < end_ && *p_ == ' ') ++p_;
      if (p_ >= end_ || *p_ == '\n' || *p_ == '\r') return {};
      if (end_ - p_ < 2 || p_[0] != '/' || p_[1] != '*') return Error("unexpected text after a bundle");
      const char* close = FindCommentEnd(p_ + 2);
      if (close == nullptr) return Error("the dump ends inside a comment");
      ParseRegions(std::string_view(p_ + 2, static_cast<size_t>(close - p_ - 2)));
      p_ = close + 2;
    }
  }

  void ParseRegions(std::string_view note) {
    if (note.starts_with(" exit bundle:")) program_.has_exit_ = program_.complete_ = true;
    // "Start region 7", "End region 7", "Start/End empty region 7"
    constexpr std::string_view kRegion = " region ";
    size_t at = 0;
    while ((at = note.find(kRegion, at)) != std::string_view::npos) {
      const std::string_view before = note.substr(0, at);
      at += kRegion.size();
      int32_t region = 0;
      const char* q = note.data() + at;
      if (!ParseInt(q, note.data() + note.size(), &region)) continue;
      const bool ends = before.ends_with("End");
      if (ends || before.ends_with("empty")) program_.ended_regions_.push_back(region);
      if (!ends) program_.regions_.push_back({region, static_cast<uint32_t>(program_.bundles_.size() - 1)});
      if (ends) program_.bundles_.back().ends_region = true;
      if (ends && region == 0) program_.complete_ = true;
    }
  }

  // Opcodes and locations repeat so often that a glance at those seen last saves most look-ups.
  uint16_t InternOpcode(std::string_view name) {
    uint64_t head = 0;
    uint64_t tail = 0;
    const size_t part = std::min<size_t>(name.size(), sizeof(head));
    std::memcpy(&head, name.data(), part);
    std::memcpy(&tail, name.data() + name.size() - part, part);
    const uint64_t hash = (head ^ (tail * 31) ^ name.size()) * 0x9e3779b97f4a7c15ULL;
    uint16_t& seen = seen_opcodes_[hash >> 56];
    if (seen < program_.opcodes_.size() && program_.opcodes_[seen].name == name) {
      ++program_.opcodes_[seen].count;
      return seen;
    }
    return seen = LookUpOpcode(name);
  }

  uint16_t LookUpOpcode(std::string_view name) {
    if (auto it = opcode_index_.find(name); it != opcode_index_.end()) {
      ++program_.opcodes_[it->second].count;
      return it->second;
    }
    if (program_.opcodes_.size() == 0xffff) return 0xfffe;  // hostile text; real dumps have about a hundred opcodes
    const auto index = static_cast<uint16_t>(program_.opcodes_.size());
    program_.opcodes_.push_back({std::string(name), UnitOfOpcode(name), 1});
    opcode_index_.emplace(std::string(name), index);
    return index;
  }

  uint32_t InternFile(std::string_view name) {
    if (!program_.files_.empty() && program_.files_[last_file_] == name) return last_file_;
    if (auto it = file_index_.find(name); it != file_index_.end()) return last_file_ = it->second;
    last_file_ = static_cast<uint32_t>(program_.files_.size());
    program_.files_.emplace_back(name);
    file_index_.emplace(std::string(name), last_file_);
    return last_file_;
  }

  struct LocationHash {
    size_t operator()(const SourceLocation& l) const {
      uint64_t h = l.file;
      for (const int32_t v : {l.line, l.column, l.end_line, l.end_column}) {
        h = (h ^ static_cast<uint32_t>(v)) * 0x9e3779b97f4a7c15ULL;
      }
      return static_cast<size_t>(h ^ (h >> 29));
    }
  };

  uint32_t InternLocation(const SourceLocation& loc) {
    if (!program_.locations_.empty() && program_.locations_[last_location_] == loc) return last_location_;
    auto [it, inserted] = location_index_.emplace(loc, static_cast<uint32_t>(program_.locations_.size()));
    if (inserted) program_.locations_.push_back(loc);
    return last_location_ = it->second;
  }

  BundleProgram program_;
  const char* begin_ = nullptr;
  const char* end_ = nullptr;
  const char* p_ = nullptr;
  std::unordered_map<std::string, uint16_t, StringHash, std::equal_to<>> opcode_index_;
  std::unordered_map<std::string, uint32_t, StringHash, std::equal_to<>> file_index_;
  std::unordered_map<SourceLocation, uint32_t, LocationHash> location_index_;
  struct SeenLocation {
    const char* text = nullptr;  // from behind the quote to before the parenthesis
    size_t size = 0;
    uint32_t location = 0;
  };
  std::array<uint16_t, 256> seen_opcodes_{};
  std::array<SeenLocation, 4> seen_locations_{};
  size_t next_seen_ = 0;
  uint32_t last_file_ = 0;
  uint32_t last_location_ = 0;
};

Expected<BundleProgram> ParseBundles(std::string text) { return BundleParser(std::move(text)).Run(); }

int64_t BundleProgram::FindRegion(int64_t region) const {
  const auto it = std::lower_bound(regions_.begin(), regions_.end(), region,
                                   [](const RegionStart& a, int64_t b) { return a.region < b; });
  if (it != regions_.end() && it->region == region) return static_cast<int64_t>(it->bundle);
  const bool ends_before = std::binary_search(ended_regions_.begin(), ended_regions_.end(), region);
  return has_exit_ && !ends_before ? static_cast<int64_t>(bundles_.size()) - 1 : -1;
}

std::vector<Opcode> BundleProgram::UnknownOpcodes() const {
  std::vector<Opcode> out;
  for (const Opcode& opcode : opcodes_) {
    if (opcode.unit == Unit::kUnknown) out.push_back(opcode);
  }
  return out;
}

size_t BundleProgram::MemoryBytes() const {
  return text_.capacity() + bundles_.capacity() * sizeof(Bundle) + ops_.capacity() * sizeof(BundleOp) +
         locations_.capacity() * sizeof(SourceLocation) + op_locations_.capacity() * sizeof(uint32_t) +
         regions_.capacity() * sizeof(RegionStart);
}

bool IsVectorSpill(std::string_view op_text) {
  const size_t at = op_text.find("[vmem:[#allocation");
  if (at == std::string_view::npos) return false;
  const size_t close = op_text.find(']', at);
  return op_text.substr(at, close - at).find("_spill") != std::string_view::npos;
}

}  // namespace kernelwright::compiler
