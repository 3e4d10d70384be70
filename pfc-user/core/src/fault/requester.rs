//! The faults of the simulated requester, by name.

use ib_mad::catalogue::Kind;

const STATUS: Kind<u32> = Kind::number("N", "a number of ibv_wc_status");

ib_mad::faults! {
    /// A way in which the simulated requester departs from the specification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Fault of "requester" under "Faults, each with the check that it makes fail, if any:" {
        OneRetryLess
            "one-retry-less": "gives up one retry early" => "requests";
        OneRetryMore
            "one-retry-more": "gives up one retry late" => "requests";
        NoRetry
            "no-retry": "gives up at the first time-out" => "requests";
        ChangesPsn
            "changes-psn": "takes a new PSN for each retry" => "same-request";
        ChangesReth
            "changes-reth": "asks for the octets at another address in each retry"
                => "same-request";
        ShortTimeout
            "short-timeout": "waits for half of T_tr" => "interval";
        LongTimeout
            "long-timeout": "waits for five times T_tr" => "interval";
        ChangesPKey
            "changes-p-key": "has another P_Key in each retry" => "same-request";
        ChangesSource
            "changes-source": "sends each retry from another address" => "same-request";
        WrongVersion
            "wrong-version": "sends requests with transport version 1" => "same-request";
        Adaptive
            "adaptive": "retries after 1/20, 1/10, 1/5 and then 1/4 of T_tr" => "interval";
        SendsTwice
            "sends-twice": "sends each request twice at once" => "requests";
        BadIcrc
            "bad-icrc": "sends requests with a wrong ICRC" => "same-request";
        WrongOpcode
            "wrong-opcode": "sends requests with the opcode of RDMA WRITE Only" => "single-packet";
        TwoPackets
            "two-packets": "sends a READ as two, each of half the length" => "single-packet";
        WrongRKey
            "wrong-r-key": "sends another R_Key" => "single-packet";
        WrongLength
            "wrong-length": "asks for four octets fewer" => "single-packet";
        KeepsCount
            "keeps-count": "shows the full retry count whatever it has used" => "retry-count";
        TwoCompletions
            "two-completions": "completes a READ without an answer twice" => "one-completion";
        WrongStatus(status: u32, STATUS, "10")
            "wrong-status": "completes a READ without an answer with status N (10)" => "status";
        ReportsSuccess
            "reports-success": "completes a READ without an answer with status 0" => "status";
        NeverCompletes
            "never-completes": "does not complete a READ without an answer" => "one-completion";
        LateCompletion
            "late-completion": "completes a READ without an answer 6 T_tr after the last request"
                => "one-completion";
        StaysInRts
            "stays-in-rts": "leaves the queue pair in RTS after a READ without an answer"
                => "qp-error";
        NoFlush
            "no-flush": "does not flush what is posted to a queue pair in error" => "flush";
        IgnoresAnswer
            "ignores-answer": "takes no READ response" => "path-alive";
        NoNeighbour
            "no-neighbour": "cannot resolve the tester's address"
                => "none: inconclusive";
        RefusesState
            "refuses-state": "cannot bring a queue pair to RTR" => "none: error";
        Apm
            "apm": "says that it supports Automatic Path Migration"
                => "none: not applicable";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read() {
        assert_eq!("wrong-status".parse(), Ok(Fault::WrongStatus(10)));
        assert_eq!("wrong-status=22".parse(), Ok(Fault::WrongStatus(22)));
    }

    #[test]
    fn wrong_values_are_refused_with_what_was_expected() {
        for (text, message) in [
            (
                "no-retries",
                "no fault is called \"no-retries\": see `validator dut requester --help` for all \
                 of them",
            ),
            ("no-retry=1", "no-retry takes no value, found \"1\""),
            (
                "wrong-status=-1",
                "wrong-status takes a number of ibv_wc_status, found \"-1\"",
            ),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), message);
        }
    }
}
