# SPDX-License-Identifier: Apache-2.0
"""What a measurement says of where it ran."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import time


def of_gpu(field: str) -> str:
    """Of the first one; empty where nobody says it."""
    try:
        told = subprocess.run(
            ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, check=False,
        )
    except FileNotFoundError:
        return ""
    return told.stdout.splitlines()[0].strip() if told.returncode == 0 and told.stdout else ""


def machine(programs: str) -> dict[str, str]:
    """Where and with what this ran."""
    version = subprocess.run([f"{programs}/firebreak", "--version"], capture_output=True, text=True, check=True).stdout
    commit = re.search("[0-9a-f]{12}(-dirty)?", version)
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = ""
    return {
        "gpu": of_gpu("name"), "driver": of_gpu("driver_version"), "linux": os.uname().release,
        "torch": torch, "commit": commit.group() if commit else "",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
