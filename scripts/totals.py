# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files and prints "N passed, N failed, N skipped"; a missing file or an empty one is a failure."""
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

which, folder = sys.argv[1], Path(sys.argv[2])
expected = {"all": ["unit.xml", "live.xml", "e2e.xml"], "unit": ["unit.xml", "live.xml"], "e2e": ["e2e.xml"]}[which]
passed = failed = skipped = 0
for name in expected:
    try:
        cases = list(ET.parse(folder / name).getroot().iter("testcase"))
    except (OSError, ET.ParseError) as error:
        print(f"totals: {name}: {error}")
        cases = []
    if not cases:
        print(f"totals: {name} holds no test")
        failed += 1
    for case in cases:
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"} or case.get("status") == "fail":
            failed += 1
            print(f"FAILED {case.get('classname', '')} {case.get('name')}")
        elif "skipped" in kinds or case.get("status") in ("notrun", "disabled"):
            skipped += 1
            print(f"skipped {case.get('classname', '')} {case.get('name')}")
        else:
            passed += 1
print(f"{passed} passed, {failed} failed, {skipped} skipped" if skipped else f"{passed} passed, {failed} failed")
sys.exit(1 if failed or not passed else 0)
