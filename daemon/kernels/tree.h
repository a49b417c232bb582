// RAII handles on tree-sitter's concrete syntax tree of a Python file, for the other files of this folder only.
// A Node is a small value that stays valid as long as its Tree; a null Node answers every question with "nothing",
// so that callers can chain look-ups without tests in between.
#pragma once

#include <tree_sitter/api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernelwright::kernels {

class Node {
 public:
  Node() = default;
  Node(TSNode node, const std::string* text) : node_(node), text_(text) {}

  explicit operator bool() const { return text_ != nullptr && !ts_node_is_null(node_); }
  bool operator==(const Node& other) const { return ts_node_eq(node_, other.node_); }

  std::string_view type() const { return *this ? std::string_view(ts_node_type(node_)) : std::string_view(); }
  bool Is(std::string_view type_name) const { return type() == type_name; }
  bool named() const { return *this && ts_node_is_named(node_); }
  bool missing() const { return *this && ts_node_is_missing(node_); }
  bool has_error() const { return *this && ts_node_has_error(node_); }
  uint32_t begin() const { return *this ? ts_node_start_byte(node_) : 0; }
  uint32_t end() const { return *this ? ts_node_end_byte(node_) : 0; }
  int row() const { return *this ? static_cast<int>(ts_node_start_point(node_).row) : 0; }  // from 0
  int end_row() const { return *this ? static_cast<int>(ts_node_end_point(node_).row) : 0; }
  std::string_view text() const { return *this ? std::string_view(*text_).substr(begin(), end() - begin()) : ""; }

  Node parent() const { return *this ? Node(ts_node_parent(node_), text_) : Node(); }
  Node Field(std::string_view name) const {
    if (!*this) return {};
    return {ts_node_child_by_field_name(node_, name.data(), static_cast<uint32_t>(name.size())), text_};
  }
  // Children, punctuation included.
  std::vector<Node> Children() const;
  // Children without punctuation and comments.
  std::vector<Node> NamedChildren() const;

 private:
  TSNode node_ = {};
  const std::string* text_ = nullptr;
};

// Owns a text and its tree. Any text parses; errors are nodes in the tree.
class Tree {
 public:
  explicit Tree(std::string text);
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const std::string& text() const { return text_; }
  Node root() const { return {ts_tree_root_node(tree_.get()), &text_}; }

 private:
  struct Deleter {
    void operator()(TSTree* tree) const { ts_tree_delete(tree); }
  };
  std::string text_;
  std::unique_ptr<TSTree, Deleter> tree_;
};

// Calls visit(node) for `node` and what is below it, parents first; a visit that returns false skips the children.
template <typename Visit>
void Walk(const Node& node, const Visit& visit) {
  if (!node || !visit(node)) return;
  for (const Node& child : node.Children()) Walk(child, visit);
}

}  // namespace kernelwright::kernels
