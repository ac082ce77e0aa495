"""Checks of the zip files of models, before anything in them is used."""

from cafelearn.data.npy import read_header

# A file may unpack to at most UNPACKED bytes or RATIO times its size, whichever is larger. Each
# text member, such as the schema, is limited to DESCRIPTION bytes, because parsing it takes
# many times its size in memory.
UNPACKED, RATIO = 128 * 2**20, 64
DESCRIPTION = 24 * 2**20


class UnsoundModel(ValueError):
    """Error raised if a model is inconsistent or contains types that are not allowed."""


def check_archive(archive, size, descriptions):
    """Raise if a zip file of `size` bytes would unpack to too many bytes or has invalid arrays.

    `descriptions` are the names of the text members. Every other member must be an array of the
    size stated in its header.
    """
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    allowed = max(UNPACKED, RATIO * size)
    if total > allowed:
        raise UnsoundModel(f"it would unpack to {total:,} bytes, more than {allowed:,}")
    for member in members:
        if member.filename not in descriptions:
            _check_array(archive, member)
        elif member.file_size > DESCRIPTION:
            raise UnsoundModel(
                f"{member.filename} has {member.file_size:,} bytes, more than {DESCRIPTION:,}"
            )


def _check_array(archive, member):
    with archive.open(member) as file:
        try:
            read_header(file, member.file_size)
        except ValueError as error:
            raise UnsoundModel(f"the array {member.filename} is damaged: {error}") from None
