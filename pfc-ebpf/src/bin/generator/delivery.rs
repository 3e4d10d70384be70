//! Fate of the frames that `generate` let go, by the kernel's tracepoints of redirects: the frames
//! leave like redirected ones, up to 16 at a time.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use super::{Sending, worker};
use crate::sending::Own;

/// Frames were handed to a device: `(from_dev, to_dev, sent, drops, err)`.
#[raw_tracepoint(tracepoint = "xdp_devmap_xmit")]
pub fn generate_delivered(ctx: RawTracePointContext) -> i32 {
    let (from, to, sent, drops, error) = (
        ctx.arg::<u64>(0),
        ctx.arg::<u64>(1),
        ctx.arg::<i32>(2),
        ctx.arg::<i32>(3),
        ctx.arg::<i32>(4),
    );
    let (sent, drops) = (sent as u32 as u64, drops as u32 as u64);
    let Some(worker) = worker() else { return 0 };
    // Ours go out of where they are said to have come in. Nothing is pending when others run on
    // this CPU.
    if from != to || sent + drops > worker.pending {
        return 0;
    }
    Own::settled(worker, sent, drops);
    worker.pending -= sent + drops;
    worker.delivered += sent;
    worker.dropped += drops;
    if error < 0 {
        worker.error = -error as u32 as u64;
    }
    0
}

/// A frame could not be handed to a device: `(dev, program, target, err, ...)`.
#[raw_tracepoint(tracepoint = "xdp_redirect_err")]
pub fn generate_refused(ctx: RawTracePointContext) -> i32 {
    let error = ctx.arg::<i32>(3);
    let Some(worker) = worker() else { return 0 };
    if worker.pending > 0 {
        Own::refused(worker);
        worker.pending -= 1;
        worker.refused += 1;
        worker.error = -error as u32 as u64;
    }
    0
}
