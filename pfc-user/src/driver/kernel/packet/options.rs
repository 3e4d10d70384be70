//! Options of packet sockets that nix does not name (packet(7)).

use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

sockopt_impl!(
    QdiscBypass,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_QDISC_BYPASS,
    bool
);
sockopt_impl!(
    IgnoreOutgoing,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_IGNORE_OUTGOING,
    bool
);
sockopt_impl!(
    AuxiliaryData,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_AUXDATA,
    bool
);
sockopt_impl!(
    AddMembership,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_ADD_MEMBERSHIP,
    libc::packet_mreq
);
sockopt_impl!(
    Statistics,
    GetOnly,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats
);
