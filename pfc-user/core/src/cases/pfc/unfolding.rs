//! The repetitions of a case on a testbed: those that a plan lists or, where the DUT's lossless set
//! cannot be changed, those that this set allows.

use pfc_ebpf::units::Priority;

use super::PfcCase;
use super::feasibility::impossible;
use super::parameters::{PfcParameters, PlannedRepetition};
use super::planning::{RepetitionRequest, name};
use super::port::PortContext;
use crate::evidence::{FixedSet, Omitted};
use crate::plan::RepetitionPlan;

/// The repetitions of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repetitions {
    /// Repetitions that can be done.
    pub plans: Vec<RepetitionPlan>,
    /// Repetitions that cannot be done.
    pub omitted: Vec<Omitted>,
    /// Why one of these can never be done at this speed, with the remedy.
    pub impossible: Option<String>,
    /// The DUT's set, where it stands in the place of the plan's.
    pub fixed: Option<FixedSet>,
}

/// The repetitions of a case on a DUT that has these lossless priorities and no others, the most
/// telling first.
pub(super) type Unfold = fn(&[Priority]) -> Vec<PlannedRepetition>;

/// The set as it is.
pub(super) fn as_it_is(set: &[Priority]) -> Vec<PlannedRepetition> {
    vec![stormed(set, set)]
}

/// The set as it is, where it has several priorities.
pub(super) fn as_it_is_if_several(set: &[Priority]) -> Vec<PlannedRepetition> {
    let several = set.len() > 1;
    several.then(|| stormed(set, set)).into_iter().collect()
}

/// Each priority of the set in turn.
pub(super) fn each(set: &[Priority]) -> Vec<PlannedRepetition> {
    set.iter()
        .map(|priority| stormed(set, &[*priority]))
        .collect()
}

/// None of the set, and each priority of it in turn.
pub(super) fn none_and_each(set: &[Priority]) -> Vec<PlannedRepetition> {
    let none = stormed(set, &[]);
    [vec![none], each(set)].concat()
}

/// The set as it is, with a storm on each of the eight classes.
pub(super) fn each_class(set: &[Priority]) -> Vec<PlannedRepetition> {
    Priority::all()
        .map(|class| stormed(set, &[class]))
        .collect()
}

/// The set as it is, stormed itself; and with a storm on all other priorities.
pub(super) fn lossless_and_lossy(set: &[Priority]) -> Vec<PlannedRepetition> {
    let lossy: Vec<_> = Priority::all()
        .filter(|priority| !set.contains(priority))
        .collect();
    vec![stormed(set, set), stormed(set, &lossy)]
}

/// The whole set, one of it, and each pair of it. None where it has no two priorities.
pub(super) fn several(set: &[Priority]) -> Vec<PlannedRepetition> {
    let [first, _, ..] = set else {
        return Vec::new();
    };
    let mut found = vec![stormed(set, set), stormed(set, &[*first])];
    if set.len() > 2 {
        let pairs = (0..set.len()).flat_map(|low| (low + 1..set.len()).map(move |up| (low, up)));
        found.extend(pairs.map(|(low, up)| stormed(set, &[set[low], set[up]])));
    }
    found
}

fn stormed(set: &[Priority], storm: &[Priority]) -> PlannedRepetition {
    PlannedRepetition {
        lossless: set.to_vec(),
        storm: (storm != set).then(|| storm.to_vec()),
    }
}

impl PfcCase {
    /// The repetitions that `parameters` ask for, and those that cannot be done.
    pub fn repetitions(&self, port: &PortContext, parameters: &PfcParameters) -> Repetitions {
        let Some(set) = &port.fixed_lossless else {
            return self.planned(port, parameters, &parameters.repetitions);
        };
        let unfolded = self.unfolded(set, parameters);
        let mut found = self.planned(port, parameters, &unfolded);
        if unfolded.is_empty() {
            found.omitted.push(Omitted {
                name: "all".into(),
                reason: format!(
                    "the DUT's lossless set is fixed at {}: {}",
                    super::planning::join(set),
                    self.sets.why
                ),
                not_applicable: true,
            });
        }
        let asked = parameters.repetitions.iter();
        let not_done = asked.filter(|asked| !unfolded.contains(asked));
        found.fixed = Some(FixedSet {
            lossless: set.clone(),
            not_done: not_done
                .map(|asked| name(&asked.lossless, asked.storm.as_deref()))
                .collect(),
        });
        found
    }

    /// The repetitions that the fixed `set` allows. One that the plan asks for and the set allows
    /// is always among them.
    fn unfolded(&self, set: &[Priority], parameters: &PfcParameters) -> Vec<PlannedRepetition> {
        let asked = &parameters.repetitions;
        let fit = asked.iter().filter(|asked| asked.lossless == set);
        let mut all = [(self.unfold)(set), fit.cloned().collect()];
        if parameters.short {
            all.reverse();
        }
        let mut found = Vec::new();
        for repetition in all.concat() {
            if !found.contains(&repetition) {
                found.push(repetition);
            }
        }
        if parameters.short {
            found.truncate(asked.len());
        }
        found
    }

    fn planned(
        &self,
        port: &PortContext,
        parameters: &PfcParameters,
        repetitions: &[PlannedRepetition],
    ) -> Repetitions {
        let interval = parameters.storm.interval_at(port.line_rate);
        // A phase that the case does not have is not too short for its flows.
        let parameters = &self.used(parameters, true);
        let mut found = Repetitions::default();
        for (turn, PlannedRepetition { lossless, storm }) in repetitions.iter().enumerate() {
            let request = RepetitionRequest {
                lossless,
                storm: storm.as_deref(),
                turn,
                durations: parameters.durations,
                frame: parameters.frame,
                quanta: parameters.storm.quanta,
                interval: interval.as_ref().map_or(1, |interval| *interval),
            };
            let planned = (self.plan)(port, &request);
            let not_applicable = planned.is_err();
            let reason = match (planned, &interval) {
                (Err(reason), _) => reason,
                (Ok(plan), Err(error)) if plan.storm.is_some() => {
                    format!("storm.interval: {error}")
                }
                (Ok(plan), _) => match impossible(&plan) {
                    Some(reason) => reason,
                    None => {
                        found.plans.push(plan);
                        continue;
                    }
                },
            };
            if !not_applicable {
                found.impossible.get_or_insert_with(|| reason.clone());
            }
            found.omitted.push(Omitted {
                name: name(lossless, storm.as_deref()),
                reason,
                not_applicable,
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::units::SECOND;

    use super::*;
    use crate::cases::pfc::CASES;

    fn priorities(list: &[u8]) -> Vec<Priority> {
        list.iter().copied().map(Priority::from_low_bits).collect()
    }

    /// Returns, by case, the names of these sets' repetitions that are done on a DUT with `fixed`,
    /// and of those that are not.
    fn names(
        fixed: &[u8],
        short: bool,
        asked: &[(&[u8], Option<&[u8]>)],
    ) -> Vec<(Vec<String>, Vec<String>)> {
        let port = PortContext {
            fixed_lossless: Some(priorities(fixed)),
            ..PortContext::at(1_000_000_000)
        };
        let asked = asked.iter().map(|(lossless, storm)| PlannedRepetition {
            lossless: priorities(lossless),
            storm: storm.map(priorities),
        });
        let parameters = PfcParameters {
            short,
            ..PfcParameters::of(SECOND, 1024, None, asked.collect())
        };
        let of_case = |case: &PfcCase| {
            let found = case.repetitions(&port, &parameters);
            let mut done: Vec<String> = found.plans.into_iter().map(|plan| plan.name).collect();
            done.extend(found.omitted.into_iter().map(|left| left.reason));
            (done, found.fixed.unwrap().not_done)
        };
        CASES.iter().map(of_case).collect()
    }

    #[test]
    fn each_case_follows_the_set() {
        let found = names(&[3, 4], false, &[(&[0], None), (&[3, 4], None)]);
        let on_3 = "lossless 3+4, storm on 3";
        // Repetitions that the plan asks for and the set allows are done as well.
        let single = [on_3, "lossless 3+4, storm on 4", "lossless 3+4"];
        for ((done, not_done), expected) in found.iter().zip([
            &single[..],
            &["lossless 3+4", on_3],
            &["lossless 3+4"],
            &["lossless 3+4"],
        ]) {
            assert_eq!(done, expected);
            assert_eq!(not_done, &["lossless 0"]);
        }
    }

    #[test]
    fn a_larger_set_has_each_pair() {
        let (done, _) = &names(&[2, 3, 4], false, &[(&[0, 1], None)])[1];
        let on = |storm: &str| format!("lossless 2+3+4, storm on {storm}");
        let expected = [
            "lossless 2+3+4".into(),
            on("2"),
            on("2+3"),
            on("2+4"),
            on("3+4"),
        ];
        assert_eq!(done, &expected);
    }

    #[test]
    fn a_short_plan_stays_short() {
        let found = names(&[2, 3, 4], true, &[(&[3], None), (&[2, 3, 4], Some(&[4]))]);
        let on = |storm: &str| format!("lossless 2+3+4, storm on {storm}");
        // The one that fits first, then the most telling.
        assert_eq!(found[1].0, [on("4"), "lossless 2+3+4".into()]);
    }

    #[test]
    fn one_lossless_priority_leaves_nothing_of_a_case_about_several() {
        let of_cases = names(&[3], false, &[(&[3, 4], None)]);
        let independent = CASES
            .iter()
            .position(|case| case.case.id == "pfc.independent-times");
        for (done, not_done) in [&of_cases[1], &of_cases[independent.unwrap()]] {
            assert_eq!(
                done,
                &[
                    "the DUT's lossless set is fixed at 3: the case is about several lossless \
                     priorities beside at least one lossy"
                ]
            );
            assert_eq!(not_done, &["lossless 3+4"]);
        }
    }
}
