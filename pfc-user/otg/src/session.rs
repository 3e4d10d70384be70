//! The server's state: the configuration in force, and the engine that carries it out.

mod capture;
mod control;
mod counters;
mod metrics;
mod states;

use std::mem;
use std::time::Duration;

use prost_reflect::{DynamicMessage, Value};
use validator_core::engine::plan::{FlowIndex, PortIndex};
use validator_core::engine::{Engine, Order};

pub use capture::File;
pub use counters::Counters;

use crate::error::Refusal;
use crate::model;
use crate::places::Places;
use crate::reader::{self, Reader};
use crate::translate::{self, FlowChange, Translated};

/// Texts of warnings for the client.
pub type Warnings = Vec<String>;

/// State that a client's requests act on. Requests are served one after the other.
pub struct Session {
    engine: Box<dyn Engine>,
    places: Places,
    warn: fn(&str),
    /// The configuration in force, as it was sent.
    config: DynamicMessage,
    /// The names of that configuration; the engine has its plan.
    force: Translated,
    /// Warnings that the next reply takes along.
    pending: Warnings,
}

impl Session {
    /// Makes a session without a configuration. `warn` gets messages that no client asks for.
    pub fn new(engine: Box<dyn Engine>, places: Places, warn: fn(&str)) -> Self {
        Self {
            engine,
            places,
            warn,
            config: model::message("Config"),
            force: Translated::default(),
            pending: Warnings::new(),
        }
    }

    /// Puts a configuration into force.
    ///
    /// # Errors
    ///
    /// All that is wrong in it; the one before stays in force.
    pub fn set_config(&mut self, config: DynamicMessage) -> Result<Warnings, Refusal> {
        let mut translated = translate::translate(&config, &self.places)?;
        let before = self.engine.notices().into_iter();
        self.pending
            .extend(before.map(|notice| format!("of the configuration before: {}", notice.0)));
        let of_engine = self.engine.configure(mem::take(&mut translated.plan))?;
        let mut warnings = mem::take(&mut translated.warnings);
        warnings.append(&mut self.pending);
        warnings.extend(of_engine.into_iter().map(|warning| warning.0));
        self.config = config;
        self.force = translated;
        Ok(warnings)
    }

    /// The configuration in force, as it was sent.
    pub fn config(&self) -> &DynamicMessage {
        &self.config
    }

    /// Changes rates and lengths of flows. Returns warnings.
    ///
    /// # Errors
    ///
    /// All that is wrong in it; nothing is changed then.
    pub fn update_config(&mut self, update: &DynamicMessage) -> Result<Warnings, Refusal> {
        let (changes, mut warnings) = translate::changes(update, &self.force.flows)?;
        let of_engine = |change: &FlowChange| (change.flow, change.change.clone());
        let of_engine: Vec<_> = changes.iter().map(of_engine).collect();
        let warned = self.engine.update(&of_engine)?;
        warnings.extend(self.happened());
        warnings.extend(warned.into_iter().map(|warning| warning.0));
        for change in changes {
            let (field, value) = change.field;
            replace(&mut self.config, change.flow, field, value);
        }
        Ok(warnings)
    }

    /// Returns events since the last reply that the client should know.
    fn happened(&mut self) -> Warnings {
        let mut happened = mem::take(&mut self.pending);
        let notices = self.engine.notices().into_iter();
        happened.extend(notices.map(|notice| notice.0));
        happened
    }

    /// Notes counts, from which rates are computed later.
    pub fn sample(&mut self) {
        self.engine.sample();
    }

    /// Stops the flows that nothing but an order ends, after `silence` without a request; returns
    /// their number. The next reply names them.
    ///
    /// # Errors
    ///
    /// Errors of the engine.
    pub fn stop_endless(&mut self, silence: Duration) -> Result<usize, Refusal> {
        use validator_core::engine::snapshot::Transmit;
        let snapshot = self.engine.snapshot()?;
        let flows = self.force.flows.iter().zip(&snapshot.flows).enumerate();
        let going: Vec<FlowIndex> = flows
            .filter(|(_, (names, counts))| names.endless && counts.transmit != Transmit::Stopped)
            .map(|(place, _)| FlowIndex(place))
            .collect();
        if !going.is_empty() {
            self.engine.transmit(&going, Order::Stop)?;
            let names = going.iter().map(|flow| &*self.force.flows[flow.0].name);
            self.pending.push(format!(
                "no request came for {} s, so that flows without an end were stopped (--lease): {}",
                silence.as_secs_f64(),
                names.collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(going.len())
    }

    /// The ports of these names; all if there are none.
    fn ports_of(&self, reader: &Reader<'_>, field: &str) -> Vec<PortIndex> {
        let names = self.force.ports.iter().map(|port| &*port.name);
        let found = places(reader, field, names, "port");
        found.into_iter().map(PortIndex).collect()
    }

    /// The flows of these names; all if there are none.
    fn flows_of(&self, reader: &Reader<'_>, field: &str) -> Vec<FlowIndex> {
        let names = self.force.flows.iter().map(|flow| &*flow.name);
        let found = places(reader, field, names, "flow");
        found.into_iter().map(FlowIndex).collect()
    }
}

/// The places of the names of a field among those that are known; all if the field is empty.
fn places<'a>(
    reader: &Reader<'_>,
    field: &str,
    known: impl Iterator<Item = &'a str>,
    what: &str,
) -> Vec<usize> {
    let known: std::collections::HashMap<&str, usize> = known
        .enumerate()
        .map(|(place, name)| (name, place))
        .collect();
    let names = reader.texts(field);
    if names.is_empty() {
        let mut all: Vec<usize> = known.into_values().collect();
        all.sort_unstable();
        return all;
    }
    let mut found = Vec::new();
    for name in names {
        match known.get(name) {
            Some(place) if found.contains(place) => {}
            Some(place) => found.push(*place),
            None => reader.error(
                field,
                format!("names \"{name}\", which is no {what} of the configuration in force"),
            ),
        }
    }
    found
}

/// Reads a request that asks for something.
///
/// # Errors
///
/// All that is wrong in it.
fn read<T>(
    request: &DynamicMessage,
    reads: impl FnOnce(&Reader<'_>) -> Option<T>,
) -> Result<T, Refusal> {
    let (asked, _) = reader::read(request, reads)?;
    asked.ok_or_else(|| Refusal::internal("a request that asks for nothing was taken"))
}

/// Writes a changed field of a flow into the configuration.
fn replace(
    config: &mut DynamicMessage,
    flow: FlowIndex,
    field: &str,
    value: Option<DynamicMessage>,
) {
    let Some(Value::List(flows)) = config.get_field_by_name_mut("flows") else {
        return;
    };
    let Some(Value::Message(flow)) = flows.get_mut(flow.0) else {
        return;
    };
    match value {
        Some(value) => flow.set_field_by_name(field, Value::Message(value)),
        None => flow.clear_field_by_name(field),
    }
}
