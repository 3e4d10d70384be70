//! Flows of clients that died: flows without an end are stopped after a time without requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::session::Session;
use crate::shared::Shared;

/// Time after which flows that could not be stopped are stopped again.
const AGAIN: Duration = Duration::from_secs(10);

/// Watches the requests as long as the server is; returns only if the server is gone.
pub async fn keep(shared: Arc<Shared>, mut requests: watch::Receiver<Instant>, lease: Duration) {
    let mut over = None;
    loop {
        let last = *requests.borrow_and_update();
        let over_at = over.take().unwrap_or(last + lease);
        tokio::select! {
            changed = requests.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
            () = sleep_until(over_at) => {}
        }
        // A request that took longer than the lease has only just ended.
        let silent = Arc::clone(&shared);
        let stop = move |session: &mut Session| match silent.silence() < lease {
            true => Ok(None),
            false => session.stop_endless(lease).map(Some),
        };
        match shared.look(stop).await {
            Ok(None) => continue,
            Ok(Some(0)) => {}
            Ok(Some(stopped)) => (shared.warn)(&format!(
                "no request for {} s: flows without an end are stopped (--lease), {stopped} of them",
                lease.as_secs_f64()
            )),
            Err(refusal) => {
                (shared.warn)(&format!(
                    "cannot stop flows, and will try again in {} s: {}",
                    AGAIN.as_secs(),
                    refusal.errors.join("; ")
                ));
                over = Some(Instant::now() + AGAIN);
                continue;
            }
        }
        // Once is enough until the next request.
        if requests.changed().await.is_err() {
            return;
        }
    }
}
