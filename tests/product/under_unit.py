#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program within the limits of a systemd unit that a process can lay on itself, without systemd: its
capabilities, its system calls, no new privileges, read-only folders, a network of its own. under_unit.py UNIT
PROGRAM...; 77: this machine cannot do it. Namespaces and set-user-ID bits are refused to it by seccomp; what systemd
does in cgroups is not played, nor folders of its own for temporary files.
"""

import ctypes
import ctypes.util
import os
import subprocess
import sys

SKIPPED = 77
CLONE_NEW = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
MASKED_EQUAL = 7
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
MS_REMOUNT, MS_BIND, MS_RDONLY, MS_REC, MS_PRIVATE, CLONE_NEWNS = 32, 4096, 1, 16384, 1 << 18, 0x20000
CLONE_NEWNET = 0x40000000
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
HIGHEST_FAMILY = 45


class Argument(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint), ("operation", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def settings_of(path):
    settings = {}
    with open(path, encoding="utf-8") as unit:
        for line in unit:
            name, separator, value = line.strip().partition("=")
            if separator and not name.startswith("#"):
                settings[name] = (settings.get(name, "") + " " + value).strip()
    return settings


def calls_of(group):
    command = ["systemd-analyze", "syscall-filter", group]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for word in (line.strip() for line in listed.splitlines()[1:]):
        if word.startswith("@"):
            yield from calls_of(word)
        elif word and not word.startswith("#"):
            yield word


class Filter:
    def __init__(self):
        path = ctypes.util.find_library("seccomp")
        if not path:
            skip("there is no libseccomp")
        self.library = ctypes.CDLL(path)
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(ctypes.c_uint32(ALLOW)))

    def refuse(self, call, *arguments, action=EPERM):
        number = self.library.seccomp_syscall_resolve_name(call.encode())
        if number < 0:
            return 0  # none of this machine's
        array = (Argument * max(len(arguments), 1))(*arguments)
        added = self.library.seccomp_rule_add_array(
            self.context, ctypes.c_uint32(action), number, ctypes.c_uint(len(arguments)), array
        )
        assert added == 0, (call, added)
        return 1

    def load(self):
        assert self.library.seccomp_load(self.context) == 0


def is_in(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def read_only(settings, written):
    """Of what the unit may not write to: folders, or all that is mounted."""
    paths = ["/sys/fs/cgroup"] if settings["ProtectControlGroups"] == "yes" else []
    if settings["ProtectSystem"] == "full":
        paths += ["/usr", "/boot", "/etc", *{"read-only": ["/home", "/root"]}[settings["ProtectHome"]]]
        return filter(os.path.isdir, paths)
    assert settings["ProtectSystem"] == "strict"
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        mounted = [line.split()[4] for line in mounts]
    writable = ["/dev", "/proc", "/sys", *written]
    return [path for path in mounted if not is_in(path, writable)] + paths


def lay_on(settings):
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNS) != 0:
        skip("root's rights are needed")
    libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
    if settings.get("PrivateNetwork") == "yes" and libc.unshare(CLONE_NEWNET) != 0:
        skip("a network of its own cannot be made")
    written = settings.get("ReadWritePaths", "").split()
    if settings.get("PrivateTmp") == "yes":
        written += ["/tmp", "/var/tmp"]
    for path in written:  # mounts of their own, which stay as they are
        assert libc.mount(path.encode(), path.encode(), None, MS_BIND | MS_REC, None) == 0
    for path in read_only(settings, written):
        assert os.path.ismount(path) or libc.mount(path.encode(), path.encode(), None, MS_BIND | MS_REC, None) == 0
        assert libc.mount(None, path.encode(), None, MS_BIND | MS_REMOUNT | MS_RDONLY, None) == 0, path
    filters = Filter()
    assert settings["SystemCallFilter"].startswith("~")
    groups = settings["SystemCallFilter"][1:].split()
    refused = sum(filters.refuse(call) for group in groups for call in calls_of(group))
    assert refused > 10, refused
    if settings["RestrictNamespaces"] == "yes":
        filters.refuse("setns")
        filters.refuse("clone3", action=ENOSYS)
        for flag in CLONE_NEW:
            for call in ("unshare", "clone"):
                filters.refuse(call, Argument(0, MASKED_EQUAL, flag, flag))
    if settings["RestrictSUIDSGID"] == "yes":
        for bit in (0o4000, 0o2000):
            filters.refuse("chmod", Argument(1, MASKED_EQUAL, bit, bit))
            filters.refuse("fchmod", Argument(1, MASKED_EQUAL, bit, bit))
            filters.refuse("fchmodat", Argument(2, MASKED_EQUAL, bit, bit))
    if settings["LockPersonality"] == "yes":
        filters.refuse("personality", Argument(0, MASKED_EQUAL, 0x40000, 0x40000))
    allowed = {FAMILIES[name] for name in settings["RestrictAddressFamilies"].split()}
    for family in set(range(HIGHEST_FAMILY)) - allowed:
        filters.refuse("socket", Argument(0, MASKED_EQUAL, 0xFFFFFFFF, family))
    kept = capabilities(settings["CapabilityBoundingSet"])
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as last:
        for number in set(range(int(last.read()) + 1)) - kept:
            libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    filters.load()


def capabilities(names):
    listed = subprocess.run(["systemd-analyze", "capability"], capture_output=True, text=True, check=True).stdout
    numbers = {row.split()[0].upper(): int(row.split()[1]) for row in listed.splitlines()[1:] if row.strip()}
    return {numbers[name] for name in names.split()}


def main():
    try:
        subprocess.run(["systemd-analyze", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        skip("there is no systemd-analyze")
    lay_on(settings_of(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])


main()
