//! Frame octets -> class; pure, used by the XDP program and by host tests alike.
