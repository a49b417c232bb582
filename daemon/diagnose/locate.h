// Finds the place in the user's file for an error that names it only by frame, by MLIR location, by primitive or by
// operand number.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/diagnose/catalogue.h"
#include "daemon/diagnose/diagnostic.h"
#include "daemon/diagnose/locate_call.h"
#include "daemon/diagnose/locate_file.h"
#include "daemon/kernels/code_error.h"
#include "daemon/kernels/program.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::diagnose {

// Frames named by MLIR locations in a compiler's text, innermost first: `loc("get:"("get/get"(callsite("kernel"(
// "k.py":30:23 to :29) at …))))`. Columns come out from 1, in bytes, the end exclusive; those of libraries too.
std::vector<SourceSpan> FramesOfLocations(std::string_view text);

class Locator {
 public:
  // path -> text of the user's files. Files that are not in it are libraries and are never named.
  explicit Locator(const std::map<std::string, std::string>& texts);
  ~Locator();
  Locator(const Locator&) = delete;
  Locator& operator=(const Locator&) = delete;

  struct Found {
    Place place;
    std::vector<Related> related;  // the pallas_call, the kernel
  };
  // The place of an error. `entry` is null for an unknown error. `captures` gains "operand_name", "kernel" and the
  // like, for the message. A place with only a file, or an empty one, when nothing more is known.
  Found Locate(const CodeError& error, const Entry* entry, const std::vector<PallasCall>& calls,
               Captures& captures) const;

  // Text of the function (or the module) around the pallas_call of an error; empty when it is not known.
  std::string_view SourceAround(const CodeError& error, const std::vector<PallasCall>& calls) const;

  // Places for stages that know the call from the jaxpr, not from an error: the pallas_call, and the BlockSpec of block
  // number `block` of `call.blocks`. Nothing when the file is not the user's.
  std::optional<Place> PlaceOfCall(const PallasCall& call) const;
  std::optional<Place> PlaceOfBlock(const PallasCall& call, size_t block) const;
  std::optional<Place> PlaceOfArgument(const PallasCall& call, std::string_view argument) const;

 private:
  struct Site {
    const LocatedFile* file = nullptr;
    const PallasCallSite* site = nullptr;
    PallasCallSite written;  // with what tracing knows about it
    Site(const LocatedFile* f, const PallasCallSite* s) : file(f), site(s), written(*s) {}
  };
  const LocatedFile* FileOf(const std::string& path) const;
  std::optional<Site> SiteOfSpans(const std::vector<SourceSpan>& spans) const;
  // The call that an error is about, as traced (may be null) and as written.
  std::optional<Site> SiteOf(const CodeError& error, const std::vector<PallasCall>& calls,
                             const PallasCall*& call) const;
  void AddTraced(Site& site, const CodeError& error, const PallasCall* call) const;
  std::optional<Place> PlaceOfKernel(const Site& site) const;
  std::optional<Place> PlaceOfSpan(const SourceSpan& span) const;
  std::optional<Place> FramePlace(const CodeError& error, const std::vector<PallasCall>& calls,
                                  const std::optional<Site>& site) const;
  std::optional<Place> PrimitivePlace(const CodeError& error, const std::vector<PallasCall>& calls) const;
  std::optional<Place> Anchored(const Entry& entry, const Site& site, const PallasCall* call,
                                const Captures& captures) const;
  std::optional<Place> IndexMapPlace(const Site& site, const Captures& captures) const;
  std::vector<std::unique_ptr<LocatedFile>> files_;
};

}  // namespace kernelwright::diagnose
