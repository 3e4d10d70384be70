//! InfiniBand management datagrams (MAD): codec, attributes, transports and a subnet management agent.
