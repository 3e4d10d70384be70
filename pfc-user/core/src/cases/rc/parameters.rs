//! Parameters of an RC case: the queue pairs of its repetitions.

use crate::cases::parameters::{CaseTable, Misfit, QueuePairTable};
use crate::plan::rc::RcParameters;

/// The queue pairs of a case's table; without any, that of its document.
pub(in crate::cases) fn read(table: CaseTable) -> Result<Vec<RcParameters>, Misfit> {
    table.refuse_pfc_keys()?;
    table.refuse_key_bits()?;
    let Some(tables) = table.queue_pairs else {
        return Ok(vec![RcParameters::default()]);
    };
    if tables.is_empty() {
        return Err(Misfit::of_case(
            "queue_pairs",
            "expected at least one, such as { retry_count = 2 }; found none",
        ));
    }
    let mut all: Vec<RcParameters> = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        let at = format!("queue_pairs[{index}]");
        let parameters = queue_pair(&at, table)?;
        if all.contains(&parameters) {
            return Err(Misfit::of_case(at, "the same queue pair is listed twice"));
        }
        all.push(parameters);
    }
    Ok(all)
}

fn queue_pair(at: &str, table: QueuePairTable) -> Result<RcParameters, Misfit> {
    let wrong = |key: &str, expected: &str, found: i64| {
        Misfit::of_case(
            format!("{at}.{key}"),
            format!("expected {expected}, found {found}"),
        )
    };
    let mut parameters = RcParameters::default();
    if let Some(count) = table.retry_count {
        parameters.retry_count = u8::try_from(count)
            .ok()
            .filter(|count| *count <= 7)
            .ok_or_else(|| wrong("retry_count", "0 to 7", count))?;
    }
    if let Some(timeout) = table.timeout {
        let expected = "1 to 31: 4.096 us * 2^n (0 would never end)";
        parameters.timeout = u8::try_from(timeout)
            .ok()
            .filter(|timeout| (1..=31).contains(timeout))
            .ok_or_else(|| wrong("timeout", expected, timeout))?;
    }
    if let Some(mtu) = table.path_mtu {
        parameters.path_mtu = u16::try_from(mtu)
            .ok()
            .filter(|mtu| [256, 512, 1024, 2048, 4096].contains(mtu))
            .ok_or_else(|| wrong("path_mtu", "256, 512, 1024, 2048 or 4096", mtu))?;
    }
    Ok(parameters)
}
