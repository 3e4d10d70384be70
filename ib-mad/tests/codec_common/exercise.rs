//! Exercises the whole codec with octets from outside.

use ib_mad::attr::{Attribute, NodeInfo, Notice, PortInfo, SwitchInfo};
use ib_mad::mad::{LENGTH, Status};
use ib_mad::smp::{MAX_HOPS, Route, Smp};

/// Parses `octets` as a packet and asserts what holds for any. Returns the packet, if it is one.
pub fn exercise(octets: &[u8]) -> Option<Smp> {
    let smp = match Smp::parse(octets) {
        Ok(smp) => smp,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let is_smp =
                octets.len() == LENGTH && octets[0] == 1 && matches!(octets[1], 0x01 | 0x81);
            assert!(!is_smp, "refused: {error}");
            return None;
        }
    };
    assert_eq!(smp.octets()[..], *octets, "what was read is not what came");
    assert!(!format!("{smp:?}").is_empty());

    assert_eq!(
        smp.path().is_some(),
        smp.is_directed() && usize::from(smp.hops().1) <= MAX_HOPS
    );
    if let Some(path) = smp.path() {
        assert_eq!(
            path.to_string().parse().ok(),
            path.ports()
                .iter()
                .all(|port| !matches!(port, 0 | 255))
                .then(|| path.clone())
        );
        let request = Smp::request(
            smp.method(),
            smp.attribute(),
            smp.modifier(),
            &Route::Directed(path.clone()),
        );
        assert_eq!(request.path(), Some(path));
    }

    let response = smp.response(Status::INVALID_FIELD);
    assert_eq!(response.status(), Status::INVALID_FIELD);
    assert_eq!(response.is_returning(), smp.is_directed());
    assert_eq!(
        response.octets()[6..],
        smp.octets()[6..],
        "a response changes method and status only"
    );

    fn attribute<A: Attribute + std::fmt::Debug>(smp: &Smp) {
        assert_eq!(smp.decode::<A>().is_ok(), smp.attribute() == A::ID);
        let attribute = A::from_data(*smp.data());
        assert_eq!(attribute.data(), smp.data());
        assert!(!format!("{attribute:?}").is_empty());
        let mut copy = smp.clone();
        copy.data_mut().fill(0);
        copy.encode(&attribute);
        assert_eq!(copy, *smp);
    }
    attribute::<NodeInfo>(&smp);
    attribute::<SwitchInfo>(&smp);
    attribute::<PortInfo>(&smp);
    attribute::<Notice>(&smp);

    let notice = Notice::from_data(*smp.data());
    if let Some(details) = notice.bad_m_key() {
        let mut copy = notice;
        copy.set_bad_m_key(&details)
            .expect("details that were read can be written");
        assert_eq!(copy.data_details(), notice.data_details());
        assert!(!format!("{details:?}").is_empty());
    }
    Some(smp)
}
