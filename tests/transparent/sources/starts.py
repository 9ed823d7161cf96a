# SPDX-License-Identifier: Apache-2.0
"""Starts programs in each way that Python has, and says how they ended."""
import os
import subprocess

print(subprocess.run(["ls", "/dev/null"], check=False, capture_output=True))
print(subprocess.run(["ls", "/dev/null"], check=False, capture_output=True, close_fds=False))
print(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/ls", ["ls", "/dev/null"], os.environ), 0)[1]))
print(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawnp("ls", ["ls", "/dev/null"], os.environ), 0)[1]), flush=True)
os.execvp("ls", ["ls", "/dev/null"])
