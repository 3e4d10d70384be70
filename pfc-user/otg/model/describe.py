"""Writes otg.binpb: the descriptor of the OTG model, as the Python package snappi carries it.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install snappi==1.62.0
    /tmp/venv/bin/python pfc-user/otg/model/describe.py pfc-user/otg/model/otg.binpb
"""

import sys

from google.protobuf import descriptor_pb2, empty_pb2
from snappi import otg_pb2

# Imported by the model but not used: it has no options of its own.
UNUSED = "google/protobuf/descriptor.proto"


def described(module):
    """The descriptor of a generated module, without comments and places in the source."""
    file = descriptor_pb2.FileDescriptorProto()
    file.ParseFromString(module.DESCRIPTOR.serialized_pb)
    file.ClearField("source_code_info")
    kept = [name for name in file.dependency if name != UNUSED]
    del file.dependency[:]
    file.dependency.extend(kept)
    return file


def main():
    files = descriptor_pb2.FileDescriptorSet()
    files.file.append(described(empty_pb2))
    files.file.append(described(otg_pb2))
    with open(sys.argv[1], "wb") as out:
        out.write(files.SerializeToString(deterministic=True))


main()
