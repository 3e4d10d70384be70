//! Rows of metrics.

use serde_json::{Value, json};

use crate::client::send;
use crate::http::{START, two_ports};
use crate::served::Served;

/// Metrics of a flow that a client may choose.
const METRICS: [&str; 17] = [
    "transmit",
    "frames_tx",
    "frames_rx",
    "bytes_tx",
    "bytes_rx",
    "frames_tx_rate",
    "frames_rx_rate",
    "tx_l1_rate_bps",
    "rx_l1_rate_bps",
    "tx_rate_bytes",
    "rx_rate_bytes",
    "tx_rate_bps",
    "rx_rate_bps",
    "tx_rate_kbps",
    "rx_rate_kbps",
    "tx_rate_mbps",
    "rx_rate_mbps",
];

/// Rows of a request for metrics of flows.
async fn rows(served: &Served, asked: Value) -> Vec<Value> {
    let body = json!({"choice": "flow", "flow": asked}).to_string();
    let reply = send(served.http, "POST /monitor/metrics", &body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let rows = reply.json()["flow_metrics"].as_array().cloned();
    rows.unwrap_or_default()
}

#[tokio::test]
async fn a_row_has_what_names_the_flow_its_loss_and_the_metrics_that_are_asked_for() {
    let served = two_ports().await;
    send(served.http, "POST /control/state", START).await;
    let whole = rows(&served, json!({})).await.remove(0);
    let with = |metrics: &[&str]| {
        let mut row = json!({});
        for name in ["name", "port_tx", "port_rx", "loss"].iter().chain(metrics) {
            row[*name] = whole[*name].clone();
            assert!(!row[*name].is_null(), "{name}: {whole}");
        }
        row
    };
    assert_eq!(whole, with(&METRICS));
    for metric in METRICS {
        let asked = json!({"flow_names": ["f"], "metric_names": [metric]});
        assert_eq!(rows(&served, asked).await, [with(&[metric])], "{metric}");
    }
    let asked = json!({"metric_names": ["bytes_rx", "transmit"]});
    assert_eq!(
        rows(&served, asked).await,
        [with(&["bytes_rx", "transmit"])]
    );
    // The other flow has no metrics.
    let asked = json!({"flow_names": ["g"]});
    assert!(rows(&served, asked).await.is_empty());
    for (asked, field) in [
        (json!({"metric_names": ["losses"]}), "flow.metric_names[0]"),
        (json!({"flow_names": ["h"]}), "flow.flow_names"),
    ] {
        let body = json!({"choice": "flow", "flow": asked}).to_string();
        let reply = send(served.http, "POST /monitor/metrics", &body).await;
        let errors = reply.errors();
        assert_eq!((reply.status, errors.len()), (400, 1), "{errors:?}");
        assert!(errors[0].starts_with(field), "{errors:?}");
    }
    served.stop().await;
}
