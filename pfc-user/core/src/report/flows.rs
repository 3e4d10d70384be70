//! Test traffic in words: a line for the flows of each role between two ports.

use pfc_ebpf::units::{LineRate, Priority};

use crate::plan::{FlowPlan, PortName, RepetitionPlan, Role};

/// The flows of each role between two ports, which differ in priority, DSCP and rate alone: their
/// purpose and a description. The ports are named where there are others than tx and rx.
pub fn by_role(plan: &RepetitionPlan, line_rate: LineRate) -> Vec<(&'static str, String)> {
    let mut described = Vec::new();
    let way = |flow: &FlowPlan| (flow.from.clone(), flow.to.clone());
    let usual = (PortName::TX, PortName::RX);
    let is_usual = plan.flows.iter().all(|flow| way(flow) == usual);
    let roles = [Role::Test, Role::Victim, Role::Isolation, Role::Background];
    let kinds = roles.into_iter().flat_map(|role| {
        let of_role = plan.flows.iter().filter(move |flow| flow.role == role);
        let ways = of_role.map(way).fold(Vec::new(), |mut ways, way| {
            if !ways.contains(&way) {
                ways.push(way);
            }
            ways
        });
        ways.into_iter().map(move |way| (role, way))
    });
    for (role, ports) in kinds {
        let of_kind = |flow: &&FlowPlan| flow.role == role && way(flow) == ports;
        let flows: Vec<&FlowPlan> = plan.flows.iter().filter(of_kind).collect();
        let Some(first) = flows.first() else { continue };
        let name = match role {
            Role::Test => "test traffic",
            Role::Victim => "stormed priorities between other ports",
            Role::Isolation => "lossless traffic that is not stormed",
            Role::Background => "background traffic",
        };
        let between = match is_usual {
            true => String::new(),
            false => format!(", from {} to {}", ports.0, ports.1),
        };
        let rate: u64 = flows.iter().map(|flow| flow.rate).sum();
        let share = 100.0 * rate as f64 / line_rate.bits_per_second() as f64;
        let (flows_word, in_all) = if flows.len() == 1 {
            ("flow", "")
        } else {
            ("flows", " in all")
        };
        let tagged = match first.pcp {
            Some(_) => {
                let pcps = flows.iter().filter_map(|flow| flow.pcp);
                format!(", tagged with PCP {}", ranges(pcps.map(Priority::get)))
            }
            None => String::new(),
        };
        let lengths = flows.iter().map(|flow| flow.length);
        let (shortest, longest) = (lengths.clone().min(), lengths.max());
        let lengths = match (shortest, longest) {
            (Some(shortest), Some(longest)) if shortest < longest => {
                format!("{shortest} to {longest}")
            }
            _ => first.length.to_string(),
        };
        let text = format!(
            "{}, DSCP {}{tagged}{between}; {} {flows_word} of frames of {lengths} octets, \
             {:.3} Mbit/s{in_all} ({share:.2} % of the line)",
            priorities(flows.iter().map(|flow| flow.priority)),
            ranges(flows.iter().map(|flow| flow.dscp.get())),
            flows.len(),
            rate as f64 / 1e6,
        );
        described.push((name, text));
    }
    described
}

/// Names priorities, such as `priority 3` or `priorities 0-2 and 4-7`.
pub fn priorities(priorities: impl Iterator<Item = Priority>) -> String {
    let text = ranges(priorities.map(Priority::get));
    if text.len() == 1 {
        format!("priority {text}")
    } else {
        format!("priorities {text}")
    }
}

/// Writes numbers as ranges, such as `0-2, 4 and 6-7`.
fn ranges(numbers: impl Iterator<Item = u8>) -> String {
    let mut numbers: Vec<u8> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    let runs: Vec<String> = numbers
        .chunk_by(|left, right| left + 1 == *right)
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run[0].to_string(),
        })
        .collect();
    match runs.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => runs.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_ranges() {
        for (numbers, text) in [
            (&[3u8][..], "3"),
            (&[4, 3], "3-4"),
            (&[0, 2], "0 and 2"),
            (&[0, 1, 2, 4, 5, 6, 7], "0-2 and 4-7"),
            (&[0, 2, 2, 63, 62], "0, 2 and 62-63"),
        ] {
            assert_eq!(ranges(numbers.iter().copied()), text);
        }
    }
}
