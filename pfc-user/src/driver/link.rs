//! Links: veth pairs, state, counters, offloads.
