# SPDX-License-Identifier: Apache-2.0
"""foreign_code.py LIBRARY: what is in foreign_code.cpp does what it says, in this program."""

import ctypes
import sys

failure = ctypes.CDLL(sys.argv[1]).foreign_code_failure()
if failure != 0:
    sys.exit(f"number {failure} of what foreign_code.cpp checks is not as it should be")
