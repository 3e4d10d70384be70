//! The requester's handling of packets, with a transport that follows a script and has a clock of
//! its own.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use ib_mad::mad::{AttributeId, CLASS_SUBN_LID, Lid, MadError, Method, Status, Tid};
use ib_mad::requester::{Exchange, LeftOut, Outcome, Requester, StrayKind};
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::{ReceiveError, Received, SendError, Time, Transport};

const WAIT: Duration = Duration::from_millis(100);

/// Defect of a response.
type Change = fn(&mut Smp);

/// Consequence of one request: packets, with their times after it.
type Reaction = Box<dyn FnOnce(&Smp) -> Result<Vec<(u64, Vec<u8>)>, SendError>>;

struct Scripted {
    now: Time,
    reactions: VecDeque<Reaction>,
    coming: Vec<Received>,
    sent: Vec<(Smp, Lid, Duration)>,
    end: Option<ReceiveError>,
}

impl Transport for Scripted {
    fn name(&self) -> String {
        "script".into()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn send(&mut self, smp: &Smp, to: Lid, wait: Duration) -> Result<(), SendError> {
        self.sent.push((smp.clone(), to, wait));
        let packets = (self
            .reactions
            .pop_front()
            .expect("a reaction to every request"))(smp)?;
        self.coming
            .extend(packets.into_iter().map(|(after, octets)| Received {
                at: self.now + Duration::from_millis(after),
                octets,
            }));
        self.coming.sort_by_key(|packet| packet.at);
        Ok(())
    }

    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        if self
            .coming
            .first()
            .is_some_and(|packet| packet.at <= deadline)
        {
            let packet = self.coming.remove(0);
            self.now = self.now.max(packet.at);
            return Ok(Some(Received {
                at: self.now,
                ..packet
            }));
        }
        if let Some(error) = self.end.take() {
            return Err(error);
        }
        self.now = self.now.max(deadline);
        Ok(None)
    }

    fn shows_unmatched(&self) -> bool {
        true
    }

    fn set_wake(&mut self, _wake: Option<OwnedFd>) {}
}

fn requester(reactions: Vec<Reaction>) -> Requester<Scripted> {
    requester_from(7, reactions)
}

fn requester_from(first: u64, reactions: Vec<Reaction>) -> Requester<Scripted> {
    let script = Scripted {
        now: Time::ZERO,
        reactions: reactions.into(),
        coming: Vec::new(),
        sent: Vec::new(),
        end: None,
    };
    Requester::new(Box::new(script), first)
}

fn route() -> Route {
    Route::Directed("0,1".parse().unwrap())
}

fn get(requester: &mut Requester<Scripted>) -> Exchange {
    requester
        .exchange(
            Smp::request(Method::GET, AttributeId::PORT_INFO, 1, &route()),
            &route(),
            WAIT,
        )
        .unwrap()
}

/// Makes a GetResp to `request` and applies `change`.
fn answer(request: &Smp, change: impl FnOnce(&mut Smp)) -> Vec<u8> {
    let mut answer = request.clone();
    answer.set_method(Method::GET_RESP);
    answer.set_returning(true);
    change(&mut answer);
    answer.octets().to_vec()
}

fn answers(after: &'static [u64]) -> Reaction {
    Box::new(|request| {
        Ok(after
            .iter()
            .map(|after| (*after, answer(request, |_| {})))
            .collect())
    })
}

/// Answers with one response, altered by `change`.
fn changed(change: Change) -> Reaction {
    Box::new(move |request| Ok(vec![(1, answer(request, change))]))
}

fn strays(requester: &mut Requester<Scripted>) -> Vec<(u64, StrayKind)> {
    requester
        .take_strays()
        .into_iter()
        .map(|stray| (stray.at.as_millis() as u64, stray.kind))
        .collect()
}

#[track_caller]
fn answered_at(exchange: &Exchange, milliseconds: u64) -> &Smp {
    match &exchange.outcome {
        Outcome::Answered { at, smp } if *at == Duration::from_millis(milliseconds) => smp,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_have_ascending_tids_and_are_sent_once() {
    let mut requester = requester(vec![answers(&[3]), answers(&[3]), answers(&[])]);
    assert_eq!(answered_at(&get(&mut requester), 3).tid(), Tid(7));
    let second = get(&mut requester);
    assert_eq!(
        (answered_at(&second, 6).tid(), second.sent, second.deadline),
        (Tid(8), Duration::from_millis(3), Duration::from_millis(103))
    );
    let by_lid = Route::Lid(Lid(5));
    let third = requester
        .exchange(
            Smp::request(Method::SET, AttributeId::PORT_INFO, 1, &by_lid),
            &by_lid,
            WAIT,
        )
        .unwrap();
    assert!(matches!(third.outcome, Outcome::TimedOut));
    let sent: Vec<_> = requester
        .transport()
        .sent
        .iter()
        .map(|(smp, to, wait)| (smp.tid(), *to, *wait))
        .collect();
    assert_eq!(
        sent,
        [
            (Tid(7), Lid::PERMISSIVE, WAIT),
            (Tid(8), Lid::PERMISSIVE, WAIT),
            (Tid(9), Lid(5), WAIT)
        ]
    );
    assert_eq!(requester.transport().now, Duration::from_millis(106));
    assert_eq!(strays(&mut requester), []);
}

#[test]
fn an_answer_at_the_deadline_is_in_time_and_one_after_it_is_late() {
    let mut requester = requester(vec![answers(&[100]), answers(&[101])]);
    answered_at(&get(&mut requester), 100);
    assert!(matches!(get(&mut requester).outcome, Outcome::TimedOut));
    requester.listen(Duration::from_millis(300)).unwrap();
    assert_eq!(strays(&mut requester), [(201, StrayKind::Late(Tid(8)))]);
}

#[test]
fn a_late_answer_during_the_next_exchange_is_not_its_answer() {
    let mut requester = requester(vec![answers(&[110, 111]), answers(&[20])]);
    assert!(matches!(get(&mut requester).outcome, Outcome::TimedOut));
    assert_eq!(answered_at(&get(&mut requester), 120).tid(), Tid(8));
    assert_eq!(
        strays(&mut requester),
        [
            (110, StrayKind::Late(Tid(7))),
            (111, StrayKind::Duplicate(Tid(7)))
        ]
    );
}

#[test]
fn a_second_response_to_an_answered_request_is_a_duplicate() {
    let mut requester = requester(vec![answers(&[1, 2, 150])]);
    answered_at(&get(&mut requester), 1);
    requester.listen(Duration::from_millis(200)).unwrap();
    assert_eq!(
        strays(&mut requester),
        [
            (2, StrayKind::Duplicate(Tid(7))),
            (150, StrayKind::Duplicate(Tid(7)))
        ]
    );
}

#[test]
fn a_request_long_ago_is_no_longer_remembered_and_its_response_is_still_ours() {
    let mut reactions = vec![answers(&[900_000]), answers(&[900_001])];
    reactions.extend((0..8191).map(|_| answers(&[1])));
    let mut requester = requester(reactions);
    for _ in 0..8193 {
        get(&mut requester);
    }
    requester.listen(Duration::from_secs(1000)).unwrap();
    assert_eq!(
        strays(&mut requester),
        [
            (900_000, StrayKind::Forgotten(Tid(7))),
            (900_101, StrayKind::Late(Tid(8)))
        ]
    );
}

#[test]
fn a_flood_of_strays_is_counted_and_not_kept() {
    // Traps take no answer's place.
    for method in [Method::GET_RESP, Method::TRAP] {
        let flood: Reaction = Box::new(move |request| {
            let one = |after, method| {
                let other = |answer: &mut Smp| {
                    answer.set_tid(Tid(1 << 20));
                    answer.set_method(method);
                };
                (after, answer(request, other))
            };
            let last = [one(2, Method::TRAP), one(2, Method::GET_RESP)];
            Ok((0..5000).map(|_| one(1, method)).chain(last).collect())
        });
        let mut requester = requester(vec![flood]);
        get(&mut requester);
        assert_eq!(strays(&mut requester).len(), 4096 + 1);
        let left_out = [(); 2].map(|()| requester.take_left_out());
        let [of_traps, others] = match method {
            Method::TRAP => [905, 0],
            _ => [0, 905],
        };
        let expected = LeftOut {
            unsolicited: of_traps,
            others,
        };
        assert_eq!(left_out, [expected, LeftOut::default()]);
    }
}

#[test]
fn the_upper_half_of_a_tid_is_another_each_time_where_it_is_left_alone() {
    let tids = |keeps: bool, first: u64| {
        let transport = Keeps(Time::ZERO, keeps);
        let mut requester = Requester::new(Box::new(transport), first);
        let request = Smp::request(Method::GET, AttributeId::PORT_INFO, 1, &route());
        [(); 3].map(|()| {
            let exchange = requester.exchange(request.clone(), &route(), WAIT).unwrap();
            exchange.request.tid().0
        })
    };
    let halves = |tids: [u64; 3]| (tids.map(|tid| tid >> 32), tids.map(|tid| tid as u32));
    let (upper, lower) = halves(tids(true, 0xabcd_0000_ffff_ffff));
    assert_eq!(lower, [u32::MAX, 0, 1]);
    assert!(upper[0] != upper[1] && upper[1] != upper[2] && !upper.contains(&0));
    assert_ne!(halves(tids(true, 0xabce_0000_ffff_ffff)).0, upper);
    for (keeps, first) in [(false, 0xabcd_0000_ffff_ffff), (true, 0xffff_ffff)] {
        assert_eq!(halves(tids(keeps, first)), ([0; 3], lower));
    }
}

/// A transport that nothing comes by, and whether it leaves all of a TID alone.
struct Keeps(Time, bool);

impl Transport for Keeps {
    fn name(&self) -> String {
        "silent".into()
    }
    fn now(&self) -> Time {
        self.0
    }
    fn send(&mut self, _smp: &Smp, _to: Lid, _wait: Duration) -> Result<(), SendError> {
        Ok(())
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        self.0 = deadline;
        Ok(None)
    }
    fn shows_unmatched(&self) -> bool {
        true
    }
    fn keeps_tids(&self) -> bool {
        self.1
    }
    fn set_wake(&mut self, _wake: Option<OwnedFd>) {}
}

#[test]
fn the_upper_half_of_the_tid_is_not_ours() {
    let mut requester = requester(vec![changed(|answer| {
        answer.set_tid(Tid(0x0012_3456_0000_0007))
    })]);
    assert_eq!(
        answered_at(&get(&mut requester), 1).tid(),
        Tid(0x0012_3456_0000_0007)
    );
}

#[test]
fn what_a_case_judges_is_an_answer() {
    let wrong: [Change; 3] = [
        |answer| answer.set_attribute(AttributeId::NODE_INFO, 1),
        |answer| answer.set_attribute(AttributeId::PORT_INFO, 2),
        |answer| answer.set_status(Status::INVALID_FIELD),
    ];
    for change in wrong {
        let mut requester = requester(vec![changed(change)]);
        let exchange = get(&mut requester);
        assert_ne!(
            answered_at(&exchange, 1).octets(),
            exchange.request.octets()
        );
        assert_eq!(strays(&mut requester), []);
    }
}

#[test]
fn a_response_to_something_else_is_foreign() {
    let wrong: [(Change, u64); 3] = [
        (|answer| answer.set_tid(Tid(6)), 6),
        (|answer| answer.octets_mut()[1] = CLASS_SUBN_LID, 7),
        (|answer| answer.set_method(Method(0x86)), 7),
    ];
    for (change, tid) in wrong {
        let mut requester = requester(vec![changed(change)]);
        assert!(matches!(get(&mut requester).outcome, Outcome::TimedOut));
        assert_eq!(strays(&mut requester), [(1, StrayKind::Foreign(Tid(tid)))]);
    }
}

#[test]
fn an_answer_after_a_foreign_one_with_its_tid_is_the_first() {
    let mut requester = requester(vec![Box::new(|request| {
        Ok(vec![
            (
                1,
                answer(request, |answer| answer.octets_mut()[1] = CLASS_SUBN_LID),
            ),
            (2, answer(request, |_| {})),
        ])
    })]);
    answered_at(&get(&mut requester), 2);
    assert_eq!(strays(&mut requester), [(1, StrayKind::Foreign(Tid(7)))]);
}

#[test]
fn traps_and_requests_are_unsolicited() {
    let mut requester = requester(vec![Box::new(|request| {
        let trap = Smp::request(Method::TRAP, AttributeId::NOTICE, 0, &Route::Lid(Lid(1)));
        Ok(vec![
            (1, trap.octets().to_vec()),
            (2, request.octets().to_vec()),
            (3, answer(request, |_| {})),
        ])
    })]);
    answered_at(&get(&mut requester), 3);
    assert_eq!(
        strays(&mut requester),
        [
            (1, StrayKind::Unsolicited(Method::TRAP)),
            (2, StrayKind::Unsolicited(Method::GET))
        ]
    );
}

#[test]
fn an_answer_that_is_cut_off_or_of_another_version_is_none() {
    let mut requester = requester(vec![Box::new(|request| {
        let whole = answer(request, |_| {});
        let version = answer(request, |answer| answer.octets_mut()[0] = 2);
        let class = answer(request, |answer| answer.octets_mut()[1] = 4);
        Ok(vec![
            (1, whole[..200].to_vec()),
            (2, Vec::new()),
            (3, [&whole[..], &[0]].concat()),
            (4, version),
            (5, class),
        ])
    })]);
    assert!(matches!(get(&mut requester).outcome, Outcome::TimedOut));
    let malformed = |at, error| (at, StrayKind::Malformed(error));
    assert_eq!(
        strays(&mut requester),
        [
            malformed(1, MadError::Length(200)),
            malformed(2, MadError::Length(0)),
            malformed(3, MadError::Length(257)),
            malformed(4, MadError::BaseVersion(2)),
            malformed(5, MadError::Class(4)),
        ]
    );
}

#[test]
fn strays_keep_their_octets_and_are_taken_once() {
    let mut requester = requester(vec![changed(|answer| answer.set_tid(Tid(99)))]);
    let exchange = get(&mut requester);
    let taken = requester.take_strays();
    assert_eq!(
        taken[0].octets,
        answer(&exchange.request, |answer| answer.set_tid(Tid(99)))
    );
    assert_eq!(requester.take_strays(), []);
}

#[test]
fn tids_go_on_after_the_last() {
    let mut requester = requester_from(u32::MAX.into(), vec![answers(&[1]), answers(&[1])]);
    assert_eq!(answered_at(&get(&mut requester), 1).tid(), Tid(0xffff_ffff));
    assert_eq!(answered_at(&get(&mut requester), 2).tid(), Tid(0));
}

#[test]
fn what_was_not_sent_is_told_apart_from_a_time_out() {
    let refused = |source| {
        Err(SendError::System {
            transport: "script".into(),
            source,
        })
    };
    let mut requester = requester(vec![
        Box::new(move |_| refused(io::ErrorKind::InvalidInput.into())),
        Box::new(|_| Ok(Vec::new())),
        Box::new(|_| Ok(Vec::new())),
    ]);
    assert!(matches!(
        get(&mut requester).outcome,
        Outcome::NotSent(SendError::System { .. })
    ));
    requester.transport().end = Some(
        SendError::Status {
            transport: "script".into(),
            status: 5,
        }
        .into(),
    );
    assert!(matches!(
        get(&mut requester).outcome,
        Outcome::NotSent(SendError::Status { status: 5, .. })
    ));
    requester.transport().end = Some(ReceiveError::Interrupted);
    let request = Smp::request(Method::GET, AttributeId::PORT_INFO, 1, &route());
    assert!(matches!(
        requester.exchange(request, &route(), WAIT),
        Err(ReceiveError::Interrupted)
    ));
}

#[test]
fn a_flood_of_packets_prolongs_no_wait() {
    /// Always has another, later packet.
    struct Flood(Time);
    impl Transport for Flood {
        fn name(&self) -> String {
            "flood".into()
        }
        fn now(&self) -> Time {
            self.0
        }
        fn send(&mut self, _smp: &Smp, _to: Lid, _wait: Duration) -> Result<(), SendError> {
            Ok(())
        }
        fn receive(&mut self, _deadline: Time) -> Result<Option<Received>, ReceiveError> {
            self.0 += Duration::from_millis(1);
            Ok(Some(Received {
                at: self.0,
                octets: Vec::new(),
            }))
        }
        fn shows_unmatched(&self) -> bool {
            true
        }
        fn set_wake(&mut self, _wake: Option<OwnedFd>) {}
    }
    let mut requester = Requester::new(Box::new(Flood(Time::ZERO)), 0);
    let request = Smp::request(Method::GET, AttributeId::PORT_INFO, 1, &route());
    let exchange = requester.exchange(request, &route(), WAIT).unwrap();
    assert!(matches!(exchange.outcome, Outcome::TimedOut));
    assert_eq!(requester.take_strays().len(), 100 + 64);
}
