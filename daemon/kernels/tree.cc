// Parsing with tree-sitter; see tree.h.
#include "daemon/kernels/tree.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace kernelwright::kernels {
namespace {

struct ParserDeleter {
  void operator()(TSParser* parser) const { ts_parser_delete(parser); }
};

}  // namespace

std::vector<Node> Node::Children() const {
  std::vector<Node> children;
  if (!*this) return children;
  const uint32_t count = ts_node_child_count(node_);
  children.reserve(count);
  for (uint32_t i = 0; i < count; ++i) children.emplace_back(ts_node_child(node_, i), text_);
  return children;
}

std::vector<Node> Node::NamedChildren() const {
  std::vector<Node> children;
  for (const Node& child : Children()) {
    if (child.named() && !child.Is("comment")) children.push_back(child);
  }
  return children;
}

Tree::Tree(std::string text) : text_(std::move(text)) {
  const std::unique_ptr<TSParser, ParserDeleter> parser(ts_parser_new());
  // The grammar and the library are built together (ABI 14), so this cannot fail at run time.
  ts_parser_set_language(parser.get(), tree_sitter_python());
  tree_.reset(ts_parser_parse_string(parser.get(), nullptr, text_.data(), static_cast<uint32_t>(text_.size())));
}

}  // namespace kernelwright::kernels
