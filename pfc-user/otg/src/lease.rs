//! What clients that died leave: flows without an end are stopped after a time without requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::server::Shared;

/// Watches the requests as long as the server is; returns only if the server is gone.
pub async fn keep(shared: Arc<Shared>, mut requests: watch::Receiver<Instant>, lease: Duration) {
    loop {
        let last = *requests.borrow_and_update();
        tokio::select! {
            changed = requests.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
            () = sleep_until(last + lease) => {}
        }
        match shared.look(|session| session.stop_endless()).await {
            Ok(0) => {}
            Ok(stopped) => (shared.tell)(&format!(
                "no request for {} s: {stopped} flows without an end are stopped (--lease)",
                lease.as_secs()
            )),
            Err(refusal) => {
                (shared.tell)(&format!("cannot stop flows: {}", refusal.errors.join("; ")));
            }
        }
        // Once is enough until the next request.
        if requests.changed().await.is_err() {
            return;
        }
    }
}
