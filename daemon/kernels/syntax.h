// A Python file as the tuner sees it: its functions, their inputs comments, what they call, the module's constants and
// imports, and its syntax errors. Works on a concrete syntax tree, so every range is a byte range of the user's text.
// Pure: text in, values out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::kernels {

class Tree;

// Half-open range of bytes in a text.
struct ByteRange {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

// Line and column from 1. `column` counts characters (code points), as people and the JSON contract do; `byte_column`
// counts bytes, as Python tracebacks and the compiler's locations do.
struct SourcePosition {
  int line = 0;
  int column = 0;
  int byte_column = 0;
  bool operator==(const SourcePosition&) const = default;
};

struct SyntaxError {
  SourcePosition position;
  std::string message;  // "'(' was never closed", "invalid syntax near `def f(:`"
};

struct FunctionParameter {
  std::string name;          // without stars
  std::string default_text;  // empty when there is none
  ByteRange default_range;
  bool keyword_only = false;
  bool variadic = false;  // *args, **kwargs
};

// The text after `# kernelwright:` above a function, continuation lines joined with spaces.
struct InputsComment {
  std::string text;
  // Where each piece of `text` came from, so that an error in it can be shown in the file.
  struct Piece {
    uint32_t text_offset = 0;
    uint32_t file_offset = 0;
  };
  std::vector<Piece> pieces;

  // Byte offset in the file of a byte offset in `text`.
  uint32_t FileOffset(uint32_t text_offset) const;
};

struct FunctionInfo {
  std::string name;            // "f"
  std::string qualified_name;  // "f", "Class.method", "outer.inner"
  ByteRange range;             // `def` to the end of the body
  ByteRange range_with_decorators;
  ByteRange body;
  SourcePosition position;  // of the name
  std::vector<FunctionParameter> parameters;
  std::vector<std::string> decorators;  // texts after the "@"
  bool top_level = false;  // defined by the module itself, not by a class or a function (under `if` counts)
  bool in_class = false;
  std::optional<InputsComment> inputs;
};

struct Import {
  std::string module;  // "jax.experimental.pallas"; leading dots for relative imports
  std::string name;    // imported name for `from m import name`, empty for `import m`, "*" for all
  std::string alias;   // the name that it binds here
  ByteRange range;     // of the whole statement
  bool top_level = false;
};

// One name bound at module level to an expression: `BLOCK = 128`; for `BM, BN = 128, 256` one entry per name. Names
// bound by a class body are here too, as "Class.name" (dataclass fields, for instance).
struct ModuleConstant {
  std::string name;
  std::string value_text;
  ByteRange value_range;
};

// Names that a function (decorators and defaults included) refers to.
struct ReferencedNames {
  std::set<std::string> names;       // plain identifiers
  std::set<std::string> attributes;  // dotted texts: "pl.pallas_call", "self.block"
};

class SourceFile {
 public:
  // Never fails; see errors(). `path` is only used in messages.
  SourceFile(std::string path, std::string text);
  ~SourceFile();
  SourceFile(SourceFile&&) noexcept;
  SourceFile& operator=(SourceFile&&) noexcept;

  const std::string& path() const { return path_; }
  const std::string& text() const;
  const Tree& tree() const { return *tree_; }
  const std::vector<SyntaxError>& errors() const { return errors_; }
  // All functions and methods in source order, nested ones included.
  const std::vector<FunctionInfo>& functions() const { return functions_; }
  const std::vector<Import>& imports() const { return imports_; }
  const std::vector<ModuleConstant>& constants() const { return constants_; }

  // First error as a status (kUserCode, "FILE:LINE:COLUMN: …"), or ok.
  Status CheckSyntax() const;

  // By qualified name; "outer.<locals>.inner" is accepted too. When the name is defined more than once the last wins,
  // as in Python. kNotFound with the functions that are here and the nearest name.
  Expected<FunctionInfo> FindFunction(std::string_view qualified_name) const;

  // The function to take when the user named only the file: the only public top-level function that reaches a
  // `pallas_call`; among several the only one with a `# kernelwright:` comment, then the only one that no other calls;
  // with none that reaches one, the only public function. Else kUsage with the list.
  Expected<FunctionInfo> DefaultFunction() const;

  // The innermost function around a byte offset, or null.
  const FunctionInfo* EnclosingFunction(uint32_t offset) const;

  ReferencedNames References(const FunctionInfo& function) const;
  ReferencedNames References(ByteRange range) const;

  // Whether the function reaches a call named pallas_call through functions of this file.
  bool ReachesPallasCall(const FunctionInfo& function) const;

  SourcePosition Position(uint32_t byte_offset) const;
  // Byte offset of line and byte column (both from 1), clamped to the line.
  uint32_t Offset(int line, int byte_column) const;

 private:
  std::string path_;
  std::unique_ptr<Tree> tree_;
  std::vector<uint32_t> line_starts_;
  std::vector<SyntaxError> errors_;
  std::vector<FunctionInfo> functions_;
  std::vector<Import> imports_;
  std::vector<ModuleConstant> constants_;
};

// The candidate nearest to `name` by edit distance, if it is near enough to be a typing error.
std::optional<std::string> ClosestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace kernelwright::kernels
