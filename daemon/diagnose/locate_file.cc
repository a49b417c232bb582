// See locate_file.h.
#include "daemon/diagnose/locate_file.h"

#include <algorithm>
#include <string_view>

namespace kernelwright::diagnose {

using kernels::Node;

LocatedFile::LocatedFile(const std::string& path, const std::string& text)
    : source_(path, text), sites_(FindPallasCallSites(source_.tree())) {}

Place LocatedFile::PlaceOf(const Node& node) const {
  const kernels::SourcePosition begin = source_.Position(node.begin());
  const kernels::SourcePosition end = source_.Position(node.end());
  return {source_.path(), begin.line, begin.column, end.line, end.column};
}

Place LocatedFile::PlaceOfHead(const Node& node) const {
  return PlaceOf(node.Is("function_definition") ? node.Field("name") : node);
}

Place LocatedFile::PlaceOfBytes(int line, int byte_column, int end_line, int end_byte_column) const {
  const uint32_t begin = source_.Offset(line, byte_column);
  const uint32_t end = source_.Offset(end_line, end_byte_column);
  if (end_byte_column <= 0 || end <= begin) return PlaceOfLine(line);
  const kernels::SourcePosition from = source_.Position(begin);
  const kernels::SourcePosition to = source_.Position(end);
  return {source_.path(), from.line, from.column, to.line, to.column};
}

Place LocatedFile::PlaceOfLine(int line) const {
  Node found;
  Walk(source_.tree().root(), [&](const Node& node) {
    if (found || !Covers(node, line)) return false;
    const bool container = node.Is("module") || node.Is("block");
    if (!container && node.row() + 1 == line && !node.Is("comment") && node.named()) {
      found = node;
      return false;
    }
    return true;
  });
  if (!found) return {source_.path(), line, 1, line, 1};
  Place place = PlaceOf(found);
  Node body = found.Field("body");
  if (!body) body = found.Field("consequence");
  if (body && !found.Is("lambda")) {  // the header, without its colon
    std::string_view header = std::string_view(source_.text()).substr(found.begin(), body.begin() - found.begin());
    header = header.substr(0, header.rfind(':'));
    const kernels::SourcePosition end = source_.Position(found.begin() + static_cast<uint32_t>(header.size()));
    place.end_line = end.line;
    place.end_column = end.column;
  }
  return place;
}

Node LocatedFile::FunctionAround(int line) const {
  Node found;
  Walk(source_.tree().root(), [&](const Node& node) {
    if (!Covers(node, line)) return false;
    if (node.Is("function_definition")) found = node;
    return true;
  });
  return found;
}

Node LocatedFile::FunctionFrom(int line) const {
  Node found;
  Walk(source_.tree().root(), [&](const Node& node) {
    if (found || !Covers(node, line)) return false;
    if (node.row() + 1 != line) return true;
    if (node.Is("function_definition")) found = node;
    if (node.Is("decorated_definition")) found = node.Field("definition");
    return !found;
  });
  return found.Is("function_definition") ? found : Node();
}

bool LocatedFile::Holds(const Node& node) const {
  Node root = node;
  for (Node up = node.parent(); up; up = up.parent()) root = up;
  return root && root == source_.tree().root();
}

const PallasCallSite* LocatedFile::SiteWithin(const Node& node) const {
  const PallasCallSite* only = nullptr;
  for (const PallasCallSite& site : sites_) {
    if (site.call().begin() < node.begin() || site.call().end() > node.end()) continue;
    if (only != nullptr) return nullptr;
    only = &site;
  }
  return only;
}

const PallasCallSite* LocatedFile::SiteAt(int line, int end_line) const {
  const PallasCallSite* best = nullptr;
  int best_rows = 0;
  for (const PallasCallSite& site : sites_) {
    const Node outer = site.Invocation() ? site.Invocation() : site.call();
    if (outer.row() + 1 > std::max(line, end_line) || outer.end_row() + 1 < line) continue;
    const int rows = outer.end_row() - outer.row();
    if (best != nullptr && rows >= best_rows) continue;
    best = &site;
    best_rows = rows;
  }
  return best;
}

const PallasCallSite* LocatedFile::SiteThrough(int line) const {
  const PallasCallSite* best = nullptr;
  Walk(source_.tree().root(), [&](const Node& node) {
    if (best != nullptr || !Covers(node, line)) return false;
    if (!node.Is("call") || node.row() + 1 != line) return true;
    const Node made = Resolve(node.Field("function"));
    if (made.Is("function_definition")) {
      const Node whole = made.parent().Is("decorated_definition") ? made.parent() : made;
      best = SiteWithin(whole);
    } else if (made.Is("call") && !(made == node)) {
      best = SiteWithin(made);
    }
    return true;
  });
  return best;
}

}  // namespace kernelwright::diagnose
