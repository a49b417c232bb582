// A Jupyter notebook as one Python module: its code cells in order, parted by lines `# %%`, so that everything that
// reads Python reads notebooks too, and the way back from a line of the module to a cell. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::kernels {

// A line of a code cell. `cell` counts the notebook's cells of all kinds from 1, as its editor shows them.
struct CellLine {
  int cell = 0;
  int line = 0;
};

class Notebook {
 public:
  // Whether a file is one by its name.
  static bool IsNotebook(std::string_view path) { return path.ends_with(".ipynb"); }

  // Reads the JSON of a notebook (format 4). Lines that only IPython understands (`%magic`, `!command`, `?help`, whole
  // cells that start with `%%`) become comments of the same length. kUserCode, with `path`, for anything else.
  static Expected<Notebook> Parse(std::string_view path, std::string_view json);

  const std::string& json() const { return json_; }
  const std::string& module() const { return module_; }

  // The cell of a line of the module, from 1; the nearest one for a line between cells, zeros without code cells.
  CellLine Locate(int line) const;

  // Back from a cell's line to the module's; 0 when there is no such code cell.
  int ModuleLine(CellLine place) const;

  // The notebook's JSON with the module's text replaced by `module`, which must have the same cells: outputs and
  // metadata stay as they are. kConflict when a parting line was lost.
  Expected<std::string> WithModule(std::string_view module) const;

 private:
  struct Cell {
    size_t index = 0;    // in the notebook's list, from 0
    int first_line = 0;  // in the module
    std::string source;  // as the notebook has it
    std::string shown;   // as the module has it
  };
  std::string path_;
  std::string json_;
  std::string module_;
  std::vector<Cell> cells_;
};

}  // namespace kernelwright::kernels
