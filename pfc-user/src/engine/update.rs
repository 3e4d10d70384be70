//! Changes of flows while they are sent: all of those that come together, or none.

use validator_core::engine::plan::{Flow, FlowIndex};
use validator_core::engine::{Change, Problem, Warning};

use super::sender::{Command, Died, PortSender};
use super::{LiveEngine, check, none};

/// Changes for a sender: its flows, by their places there, with their changes.
type Changes = Vec<(usize, Change)>;

/// A sender's changes, and what its flows were before.
struct Step<'a> {
    sender: &'a PortSender,
    to: Changes,
    back: Changes,
}

impl LiveEngine {
    /// Checks all changes before the first, and takes all back if one cannot be made.
    /// The warnings are those that were not given before.
    pub(super) fn change(
        &mut self,
        changes: &[(FlowIndex, Change)],
    ) -> Result<Vec<Warning>, Vec<Problem>> {
        let mut changed = self.plan.flows.clone();
        for (flow, change) in changes {
            change.clone().apply(&mut changed[flow.0]);
        }
        none(self.defects(changes, &changed).map(Problem::Order))?;
        let senders = self.senders().map(|sender| Step {
            sender,
            to: Vec::new(),
            back: Vec::new(),
        });
        let mut steps: Vec<Step> = senders.collect();
        for (flow, to) in changes {
            let live = &self.flows[flow.0];
            let step = &mut steps[live.sender];
            step.to.push((live.local, to.clone()));
            let before = to.before(&self.plan.flows[flow.0]);
            step.back.push((live.local, before));
        }
        steps.retain(|step| !step.to.is_empty());
        let carried_out = all_or_none(
            &steps,
            |step| step.sender.order(Command::Change(step.to.clone())),
            |step| {
                // A sender that is gone sends nothing, by the old rate or the new.
                let _ = step.sender.order(Command::Change(step.back.clone()));
            },
        );
        carried_out.map_err(|died: Died| vec![Problem::from(died)])?;
        self.plan.flows = changed;
        let of_changed = changes.iter().map(|(flow, _)| &self.plan.flows[flow.0]);
        let mut warnings = self.beyond_line(of_changed);
        warnings.extend(self.fasten());
        Ok(warnings)
    }

    /// Returns the defects of the flows that these changes make, each once.
    fn defects(
        &self,
        changes: &[(FlowIndex, Change)],
        changed: &[Flow],
    ) -> impl Iterator<Item = String> {
        let mut flows: Vec<usize> = changes.iter().map(|(flow, _)| flow.0).collect();
        flows.sort_unstable();
        flows.dedup();
        flows.into_iter().flat_map(move |flow| {
            let (flow, from) = (&changed[flow], changed[flow].from.0);
            let too_long = self.ports[from].too_long(flow, self.plan.ports[from].mtu);
            let no_speed = self.ports[from].lacks_speed(&flow.rate, &flow.name);
            let wrong = check::flow(flow).into_iter();
            wrong.chain(too_long).chain(no_speed)
        })
    }
}

/// Performs all steps; where one fails, those before it are undone, the last first.
fn all_or_none<S, E>(
    steps: &[S],
    mut perform: impl FnMut(&S) -> Result<(), E>,
    undo: impl FnMut(&S),
) -> Result<(), E> {
    for (done, step) in steps.iter().enumerate() {
        if let Err(error) = perform(step) {
            steps[..done].iter().rev().for_each(undo);
            return Err(error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn what_was_done_before_a_failure_is_undone() {
        let log = RefCell::new(Vec::new());
        let run = |fails: usize| {
            log.borrow_mut().clear();
            let perform = |step: &usize| {
                log.borrow_mut().push(format!("do {step}"));
                if *step == fails { Err(*step) } else { Ok(()) }
            };
            all_or_none(&[0, 1, 2], perform, |step| {
                log.borrow_mut().push(format!("undo {step}"));
            })
        };
        assert_eq!(run(2), Err(2));
        assert_eq!(*log.borrow(), ["do 0", "do 1", "do 2", "undo 1", "undo 0"]);
        assert_eq!(run(0), Err(0));
        assert_eq!(*log.borrow(), ["do 0"]);
        assert_eq!(run(9), Ok(()));
        assert_eq!(*log.borrow(), ["do 0", "do 1", "do 2"]);
    }
}
