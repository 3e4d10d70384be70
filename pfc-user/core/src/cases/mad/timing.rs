//! Times of answers (13.4.6.2).

use std::time::Duration;

use ib_mad::attr::PortInfo;

/// No answer is waited for longer than this.
pub const MOST_WAIT: Duration = Duration::from_secs(10);

/// Longest time from a request to its answer: the DUT's response time and the way there and back,
/// but at least `least`.
pub fn answer_time(port: &PortInfo, least: Duration) -> Duration {
    least.max(response_time(port) + 2 * way_time(port))
}

/// Longest time of a packet's way through the subnet, there or back.
pub fn way_time(port: &PortInfo) -> Duration {
    time(port.subnet_timeout())
}

/// Longest time that the DUT itself takes for an answer.
pub fn response_time(port: &PortInfo) -> Duration {
    time(port.response_time_value())
}

fn time(exponent: u8) -> Duration {
    Duration::from_nanos(4096 << exponent)
}

/// Time for which late answers are listened for: one more time-out. Where that
/// is more than is waited for any answer, listening would prove nothing, and `least` has to do.
pub fn listen_time(answer_time: Duration, least: Duration) -> Duration {
    if answer_time > MOST_WAIT {
        least
    } else {
        answer_time
    }
}
