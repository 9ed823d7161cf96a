# SPDX-License-Identifier: Apache-2.0
"""The C ABI as ctypes sees it: which file, which types, which functions. Loaded once, at its first use."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib

SONAME = "libfirebreak.so.0"


class JoinOptions(ctypes.Structure):
    """fb_join_options."""

    _fields_ = [
        ("size_bytes", ctypes.c_size_t),
        ("socket_path", ctypes.c_char_p),
        ("tenant", ctypes.c_char_p),
        ("role", ctypes.c_int),
    ]


class Resume(ctypes.Structure):
    """fb_resume."""

    _fields_ = [
        ("epoch", ctypes.c_uint64),
        ("next_step", ctypes.c_uint64),
        ("state", ctypes.c_void_p),
        ("state_bytes", ctypes.c_size_t),
        ("promoted_at_ns", ctypes.c_int64),
    ]


class Change(ctypes.Structure):
    """fb_change; c_char_p so that the bytes object lives as long as the array that refers to it."""

    _fields_ = [("offset", ctypes.c_uint64), ("bytes", ctypes.c_char_p), ("size_bytes", ctypes.c_size_t)]


class Connection(ctypes.Structure):
    """fb_connection."""

    _fields_ = [("id", ctypes.c_uint64), ("descriptor", ctypes.c_int)]


_SESSION = ctypes.c_void_p
_ADDRESS = ctypes.POINTER(ctypes.c_uint64)

# Function: its result and its arguments, in the order of firebreak.h.
_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "fb_join": (ctypes.c_int, [ctypes.POINTER(JoinOptions), ctypes.POINTER(_SESSION)]),
    "fb_session_role": (ctypes.c_int, [_SESSION]),
    "fb_alloc_as": (
        ctypes.c_int,
        [_SESSION, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64, _ADDRESS],
    ),
    "fb_share": (ctypes.c_int, [_SESSION]),
    "fb_map_shared": (
        ctypes.c_int,
        [_SESSION, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64, _ADDRESS],
    ),
    "fb_ready": (ctypes.c_int, [_SESSION]),
    "fb_wait_promotion": (ctypes.c_int, [_SESSION, ctypes.c_int64, ctypes.POINTER(Resume)]),
    "fb_commit": (
        ctypes.c_int,
        [_SESSION, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t],
    ),
    "fb_commit_changes": (
        ctypes.c_int,
        [_SESSION, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(Change), ctypes.c_size_t],
    ),
    "fb_counter": (ctypes.c_int, [_SESSION, _ADDRESS]),
    "fb_prepare_changes": (
        ctypes.c_int,
        [_SESSION, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(Change), ctypes.c_size_t],
    ),
    "fb_committed": (ctypes.c_int, [_SESSION, _ADDRESS]),
    "fb_heartbeat": (ctypes.c_int, [_SESSION, ctypes.c_void_p]),
    "fb_resumed": (ctypes.c_int, [_SESSION]),
    "fb_stand_down": (ctypes.c_int, [_SESSION]),
    "fb_turn": (ctypes.c_int, [_SESSION, ctypes.c_int64]),
    "fb_turn_wanted": (ctypes.c_int, [_SESSION, ctypes.c_int64, ctypes.c_uint64]),
    "fb_listen": (ctypes.c_int, [_SESSION, ctypes.c_int]),
    "fb_listener": (ctypes.c_int, [_SESSION, ctypes.POINTER(ctypes.c_int)]),
    "fb_next_connection": (ctypes.c_int, [_SESSION, ctypes.c_uint64, ctypes.POINTER(Connection)]),
    "fb_send": (
        ctypes.c_int,
        [_SESSION, ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t, _ADDRESS],
    ),
    "fb_release_connection": (ctypes.c_int, [_SESSION, ctypes.c_uint64]),
    "fb_small_context": (
        ctypes.c_int,
        [ctypes.c_int, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int)],
    ),
    "fb_leave": (ctypes.c_int, [_SESSION]),
    "fb_last_error": (ctypes.c_char_p, [_SESSION]),
    "fb_status_name": (ctypes.c_char_p, [ctypes.c_int]),
}


def beside(name: str) -> str:
    """Where a library of ours is: FIREBREAK_LIBRARY_DIR; else in the installation that this file is in; else the
    system's loader knows it."""
    folder = os.environ.get("FIREBREAK_LIBRARY_DIR")
    if folder:
        return str(pathlib.Path(folder) / name)
    for parent in pathlib.Path(__file__).resolve().parents:
        if (parent / "lib" / name).exists():
            return str(parent / "lib" / name)
    return name


def library_path() -> str:
    """What is loaded as libfirebreak."""
    return beside(SONAME)


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """OSError where there is none. Its calls let other Python threads run."""
    loaded = ctypes.CDLL(library_path())
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded
