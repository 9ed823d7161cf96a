# SPDX-License-Identifier: Apache-2.0
"""Becomes a daemon in the old way: two forks, a session of its own, and a last word on standard error."""
import os
import time

if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
time.sleep(0.3)
os.write(2, b"the daemon is up\n")
open("up", "w").close()
