# SPDX-License-Identifier: Apache-2.0
"""Says each of two signals, and ends at the second."""
import signal
import sys


def told(number, _):
    print(signal.Signals(number).name, flush=True)
    open("log", "a").close()
    if number == signal.SIGTERM:
        sys.exit(11)


for each in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(each, told)
open("ready", "w").close()
while True:
    signal.pause()
