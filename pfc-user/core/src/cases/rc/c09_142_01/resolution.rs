//! Resolution of a pass: the smallest violation that a check would have found in this repetition.

use super::requests::bounds;
use crate::cases::rc::judge::decoded::{PhaseView, View};
use crate::cases::resolution::one_of;
use crate::cases::value::{Value, count, number, time};
use crate::plan::Nanos;

/// The resolution of `check`; `None` for a check that has none.
pub(super) fn of(check: &str, view: &View<'_>) -> Option<Value> {
    let test = view.test.as_ref()?;
    let transmissions = test.transmissions.len();
    match check {
        "requests" => {
            let after = time(test.phase.until.saturating_sub(test.last()?));
            let found = Value::from("1 transmission more or fewer than ");
            let found = found + count(transmissions as u64, "");
            Some(found + ", up to " + after + " after the last")
        }
        "single-packet" | "same-request" => one_of("wrong packet", test.packets().count() as u64),
        "interval" => {
            let retries = transmissions - 1;
            let found = "1 retry of " + count(retries as u64, "");
            Some(found + ", " + outside(test, 0)?)
        }
        "retry-count" => one_of("wrong count", u64::from(view.e.plan.retry_count)),
        "one-completion" => {
            let completion = view.completions().first().copied()?;
            let uncertain = completion.time.saturating_sub(completion.since);
            let outside = outside(test, uncertain)?;
            Some(Value::from("1 completion more or fewer, or one ") + outside)
        }
        "status" => one_of("wrong status", view.completions().len() as u64),
        "flush" => Some("1 completion more or fewer, or another status".into()),
        _ => None,
    }
}

/// The least by which a time that is known but for `uncertain` is found to be outside its bounds.
fn outside(test: &PhaseView<'_>, uncertain: Nanos) -> Option<Value> {
    let t_tr = test.t_tr()?;
    let (shortest, longest) = bounds(t_tr);
    let early = t_tr - shortest + uncertain;
    let late = match uncertain {
        0 => "any time".into(),
        _ => time(uncertain),
    };
    let early = time(early) + " (" + number(early as f64 / t_tr as f64, 2, "T_tr") + ")";
    let late = late + " later than " + count(longest / t_tr, "T_tr");
    Some(early + " earlier than T_tr, or " + late)
}
