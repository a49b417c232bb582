// Notebooks as modules and back.
#include "daemon/kernels/notebook.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace kernelwright::kernels {
namespace {

constexpr const char* kNotebook = R"({
 "cells": [
  {
   "cell_type": "markdown",
   "metadata": {},
   "source": ["# A kernel"]
  },
  {
   "cell_type": "code",
   "execution_count": 1,
   "metadata": {},
   "outputs": [],
   "source": ["%matplotlib inline\n", "import jax\n", "if True:\n", "    !ls\n", "    pass"]
  },
  {
   "cell_type": "code",
   "metadata": {},
   "outputs": [{"text": "é"}],
   "source": "def f(x):\n    return x\n"
  },
  {
   "cell_type": "code",
   "metadata": {},
   "outputs": [],
   "source": ["%%bash\n", "\n", "echo hi"]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
)";

Notebook Parsed(std::string_view json = kNotebook) {
  auto notebook = Notebook::Parse("n.ipynb", json);
  EXPECT_TRUE(notebook) << (notebook ? "" : notebook.error().ToString());
  return notebook ? *std::move(notebook) : *Notebook::Parse("n.ipynb", R"({"cells": []})");
}

TEST(Notebook, CodeCellsAreOneModule) {
  EXPECT_EQ(Parsed().module(),
            "#matplotlib inline\nimport jax\nif True:\n    #ls\n    pass\n# %%\n"
            "def f(x):\n    return x\n# %%\n#%bash\n\n#cho hi\n");
}

TEST(Notebook, LinesHaveTheirCells) {
  const Notebook notebook = Parsed();
  const auto at = [&](int line) {
    const CellLine place = notebook.Locate(line);
    return std::pair(place.cell, place.line);
  };
  EXPECT_EQ(at(1), std::pair(2, 1));
  EXPECT_EQ(at(5), std::pair(2, 5));
  EXPECT_EQ(at(7), std::pair(3, 1));
  EXPECT_EQ(at(8), std::pair(3, 2));
  EXPECT_EQ(at(12), std::pair(4, 3));
  EXPECT_EQ(notebook.ModuleLine({3, 2}), 8);
  EXPECT_EQ(notebook.ModuleLine({1, 1}), 0);
}

TEST(Notebook, AnEditChangesItsCellAlone) {
  const Notebook notebook = Parsed();
  std::string module = notebook.module();
  module.replace(module.find("return x"), 8, "return x + 1");
  auto changed = notebook.WithModule(module);
  ASSERT_TRUE(changed) << changed.error().ToString();
  auto before = nlohmann::ordered_json::parse(kNotebook);
  const auto after = nlohmann::ordered_json::parse(*changed);
  EXPECT_EQ(after["cells"][2]["source"], "def f(x):\n    return x + 1\n");
  before["cells"][2]["source"] = after["cells"][2]["source"];
  EXPECT_EQ(after, before);
}

TEST(Notebook, UnchangedTextGivesTheSameNotebook) {
  const Notebook notebook = Parsed();
  auto same = notebook.WithModule(notebook.module());
  ASSERT_TRUE(same);
  EXPECT_EQ(nlohmann::ordered_json::parse(*same), nlohmann::ordered_json::parse(kNotebook));
}

TEST(Notebook, VersionedEditOverABorderIsRefused) {
  const Notebook notebook = Parsed();
  EXPECT_EQ(notebook.WithModule("import jax\n").error().kind(), ErrorKind::kConflict);
  std::string module = notebook.module();
  module.replace(module.find("import jax"), 10, "import os");
  EXPECT_EQ(notebook.WithModule(module).error().kind(), ErrorKind::kConflict);  // the cell has a magic line
}

TEST(Notebook, WhatIsNoNotebookSaysSo) {
  EXPECT_NE(Notebook::Parse("n.ipynb", "{").error().ToString().find("not JSON"), std::string::npos);
  EXPECT_NE(Notebook::Parse("n.ipynb", "[]").error().ToString().find("no list of cells"), std::string::npos);
  EXPECT_NE(Notebook::Parse("n.ipynb", R"({"cells": [{"cell_type": "code"}]})").error().ToString().find("cell 1"),
            std::string::npos);
}

}  // namespace
}  // namespace kernelwright::kernels
