"""What a new file or directory gets from the access list of the directory that it is made in (POSIX `setfacl -d`).

The system gives it when something is made in that directory. Ours is made in a workshop and moved there, so it is given
here, by the same rule: the list is taken over, less what the mode of making does not allow, and the umask has no say.
"""

import struct

DEFAULT_LIST = "system.posix_acl_default"
ACCESS_LIST = "system.posix_acl_access"

_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")  # tag, permissions, user or group

_OWNER, _OWNING_GROUP, _MASK, _OTHERS = 0x01, 0x04, 0x10, 0x20


def list_of_new(default: bytes, mode: int) -> bytes:
    """The access list of what is made with `mode` where `default` is the default list, both as the system stores them."""
    entries = list(_ENTRY.iter_unpack(default[_HEADER.size :]))
    has_mask = any(tag == _MASK for tag, _, _ in entries)
    shifts = {_OWNER: 6, _OTHERS: 0, _MASK if has_mask else _OWNING_GROUP: 3}
    return default[: _HEADER.size] + b"".join(
        _ENTRY.pack(tag, permissions & (mode >> shifts[tag]) if tag in shifts else permissions, who)
        for tag, permissions, who in entries
    )
