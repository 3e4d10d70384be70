//! The registry: every case that there is, found by its id.

use std::fmt;

use super::mad::{self, MadCase};
use super::parameters::{CaseTable, Misfit, PlanTables};
use super::pfc::{self, PfcCase, parameters::PfcParameters, stimulate};
use super::rc::{self, RcCase};
use crate::evidence::Planned;
use crate::plan::mad::MadPlan;
use crate::plan::rc::{RcParameters, RcPlan};
use crate::plan::{Limits, Nanos, RepetitionPlan};
use crate::verdict::Case;

/// A case, by family, with what belongs to it: nothing where it is [`Known`], its parameters where
/// it is a [`PlannedCase`], the plan of one repetition where it is a [`Task`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfFamily<P, M, R> {
    /// A case of the PFC test plan.
    Pfc(&'static PfcCase, P),
    /// A case with management datagrams.
    Mad(&'static MadCase, M),
    /// A case with reliable connections.
    Rc(&'static RcCase, R),
}

/// A case that there is.
pub type Known = OfFamily<(), (), ()>;

/// A case that is to run, with its parameters. Of a MAD case: true for wrong keys for all bits of
/// an M_Key; all other parameters are in the testbed. Of an RC case: its repetitions, at least one.
pub type PlannedCase = OfFamily<PfcParameters, bool, Vec<RcParameters>>;

/// One repetition that is to run.
pub type Task = OfFamily<PfcTask, MadPlan, RcPlan>;

/// A repetition of a PFC case, with the limits for its judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct PfcTask {
    /// Its plan.
    pub plan: Box<RepetitionPlan>,
    /// Limits on the testbed's ports.
    pub limits: Limits,
}

impl<P, M, R> OfFamily<P, M, R> {
    /// Its description.
    pub fn case(&self) -> &'static Case {
        match self {
            Self::Pfc(case, _) => &case.case,
            Self::Mad(case, _) => &case.case,
            Self::Rc(case, _) => &case.case,
        }
    }
}

impl Known {
    /// The case with the parameters of its table in a plan file.
    pub fn read(self, table: CaseTable, plan: &PlanTables) -> Result<PlannedCase, Misfit> {
        Ok(match self {
            Self::Pfc(case, ()) => {
                PlannedCase::Pfc(case, pfc::parameters::read(case, table, plan)?)
            }
            Self::Mad(case, ()) => {
                table.refuse_queue_pairs()?;
                table.refuse_pfc_keys()?;
                table.refuse_key_bits()?;
                PlannedCase::Mad(case, table.all_key_bits.unwrap_or_default())
            }
            Self::Rc(case, ()) => PlannedCase::Rc(case, rc::parameters::read(table)?),
        })
    }
}

fn known() -> impl Iterator<Item = Known> {
    let pfc = pfc::CASES.iter().map(|case| Known::Pfc(case, ()));
    let mad = mad::CASES.iter().map(|case| Known::Mad(case, ()));
    let rc = rc::CASES.iter().map(|case| Known::Rc(case, ()));
    pfc.chain(mad).chain(rc)
}

/// Every case, in the order of `validator list`.
pub fn all() -> Vec<&'static Case> {
    known().map(|known| known.case()).collect()
}

/// The case of that id.
pub fn find(id: &str) -> Option<Known> {
    known().find(|known| known.case().id == id)
}

/// The id among `ids` that `wrong` was probably meant to be: at most three letters differ.
pub fn nearest<'i>(wrong: &str, ids: impl IntoIterator<Item = &'i str>) -> Option<&'i str> {
    let distances = ids
        .into_iter()
        .map(|id| (strsim::levenshtein(wrong, id), id));
    let (distance, id) = distances.min()?;
    (distance <= 3).then_some(id)
}

impl Task {
    /// Its name, unique in its case.
    pub fn name(&self) -> &str {
        match self {
            Self::Pfc(_, PfcTask { plan, .. }) => &plan.name,
            Self::Mad(_, plan) => &plan.name,
            Self::Rc(_, plan) => &plan.name,
        }
    }

    /// Its least duration.
    pub fn shortest(&self) -> Nanos {
        match self {
            Self::Pfc(_, PfcTask { plan, limits }) => stimulate::least(plan, limits),
            Self::Mad(_, plan) => plan.shortest(),
            Self::Rc(_, plan) => plan.shortest(),
        }
    }

    /// Its plan as evidence has it.
    pub fn planned(&self) -> Planned {
        match self {
            Self::Pfc(_, PfcTask { plan, limits }) => Planned::Pfc {
                plan: plan.clone(),
                limits: limits.clone(),
            },
            Self::Mad(_, plan) => Planned::Mad { plan: plan.clone() },
            Self::Rc(_, plan) => Planned::Rc { plan: plan.clone() },
        }
    }
}

/// A case is one by its id.
macro_rules! is_its_id {
    ($($case:ty),*) => {$(
        impl PartialEq for $case {
            fn eq(&self, other: &Self) -> bool {
                self.case.id == other.case.id
            }
        }

        impl Eq for $case {}

        impl fmt::Debug for $case {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.case.id)
            }
        }
    )*};
}
is_its_id!(PfcCase, MadCase, RcCase);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_found() {
        let ids: Vec<&str> = all().iter().map(|case| case.id).collect();
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id), "{id} is registered twice");
            assert_eq!(find(id).unwrap().case().id, *id);
        }
        assert_eq!(find("pfc.nope"), None);
    }

    #[test]
    fn each_case_lists_the_checks_that_it_judges() {
        for known in known() {
            let listed: Vec<&str> = known.case().checks.iter().map(|check| check.id).collect();
            let judged = match known {
                Known::Pfc(case, ()) => case.judged(),
                Known::Mad(case, ()) => case.judged(),
                Known::Rc(case, ()) => case.judged(),
            };
            assert_eq!(listed, judged, "{}", known.case().id);
        }
    }

    #[test]
    fn a_slip_of_the_pen_has_a_nearest_id() {
        let nearest = |wrong| nearest(wrong, all().iter().map(|case| case.id));
        assert_eq!(nearest("pfc.pause-lossi"), Some("pfc.pause-lossy"));
        assert_eq!(nearest("mad.c14-16-get"), Some("mad.c14-016-get"));
        assert_eq!(nearest("rc.c09-142-1"), Some("rc.c09-142-01"));
        assert_eq!(nearest("pfc.nope"), None);
    }
}
