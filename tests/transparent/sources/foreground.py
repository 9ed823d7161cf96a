# SPDX-License-Identifier: Apache-2.0
"""Whether its group has the terminal."""
import os

print(os.tcgetpgrp(0) == os.getpgrp())
