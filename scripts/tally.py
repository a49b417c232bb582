"""Adds up test cases from JUnit files below a folder; prints "N passed, N failed, N skipped" as the last
line.

usage: tally.py FOLDER FAILED_PARTS

A part can fail without a failing case: a linter, or a test binary that crashed before it wrote its file.
Then the number of failed parts is what counts as failed, so that the line never says 0 after a failure.
"""

from __future__ import annotations

import pathlib
import sys
import xml.etree.ElementTree


def count(folder: pathlib.Path) -> tuple[int, int, int]:
    """(passed, failed, skipped) over all test cases."""
    passed = failed = skipped = 0
    for report in sorted(folder.rglob("*.xml")):
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            if kinds & {"failure", "error"}:
                failed += 1
            elif "skipped" in kinds or case.get("status") == "notrun":
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped


def main() -> int:
    folder, failed_parts = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    passed, failed, skipped = count(folder)
    failed = max(failed, failed_parts)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
