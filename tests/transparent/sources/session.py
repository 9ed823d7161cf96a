# SPDX-License-Identifier: Apache-2.0
"""How it stands to its group and session."""
import os

print(os.getpid() == os.getpgrp(), os.getpgrp() == os.getpgid(os.getppid()), os.getsid(0) == os.getsid(os.getppid()))
