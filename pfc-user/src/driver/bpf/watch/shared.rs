//! Programs that the ports of one loaded object share, and maps in which each port has its part.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::{Ebpf, EbpfLoader};
use pfc_ebpf::abi::account::SEEN_WINDOW;
use pfc_ebpf::abi::watch::{
    ABI_VERSION, Config, Control, Counters, FlowState, PAUSED, PORTS, PauseClock, Sketch, name,
};
use pfc_ebpf::units::{LineRate, Priority};

use super::programs::Programs;
use super::{ControlFrame, Flow, Settings, Watch, record};
use crate::driver::bpf::mmap::Words;
use crate::driver::bpf::object::{open, over_cpus, take, words};
use crate::driver::bpf::pod::Plain;
use crate::driver::bpf::{XdpError, verifier_log};

const WORDS_OF_CLOCK: usize = size_of::<PauseClock>() / size_of::<u64>();
/// Octets of the ring of MAC control frames for each port that keeps them.
const RING: usize = 1 << 20;

/// Programs and maps of up to [`PORTS`] ports.
pub struct Shared {
    // Locked to load or attach; counts are read beside it.
    programs: Mutex<Programs>,
    counters: PerCpuArray<MapData, Plain<Counters>>,
    clocks: Words,
    controls: Mutex<Controls>,
    flows: HashMap<MapData, u64, u32>,
    states: Array<MapData, Plain<FlowState>>,
    sketches: PerCpuArray<MapData, Plain<Sketch>>,
    /// Settings of each port.
    configs: Vec<Config>,
}

/// The ring of all ports, and what was taken out of it for each.
struct Controls {
    ring: RingBuf<MapData>,
    taken: Vec<Vec<ControlFrame>>,
}

impl Shared {
    /// Loads the maps of an object for at most [`PORTS`] ports with these settings, and none of its
    /// programs yet.
    pub fn load(object: &[u8], settings: &[Settings]) -> Result<Self, XdpError> {
        let configs = configs(settings);
        let mut loader = verifier_log::loader();
        size(&mut loader, &configs);
        let mut object = open(object, ABI_VERSION, &mut loader)?;
        let numbered: Vec<_> = (0..).zip(configs.iter().copied()).collect();
        configure(&mut object, &numbered)?;
        let length = configs.len() * PAUSED * WORDS_OF_CLOCK;
        Ok(Self {
            counters: take(&mut object, name::COUNTERS)?,
            clocks: words(&object, name::PAUSE, length)?,
            controls: Mutex::new(Controls {
                ring: take(&mut object, name::CONTROLS)?,
                taken: vec![Vec::new(); configs.len()],
            }),
            flows: take(&mut object, name::FLOWS)?,
            states: take(&mut object, name::STATES)?,
            sketches: take(&mut object, name::SKETCH)?,
            programs: Mutex::new(Programs::new(object)?),
            configs,
        })
    }

    /// The programs, for one thread at a time.
    pub fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Turns quanta into time by that speed from now on.
    pub fn set_line_rate(&self, line_rate: Option<LineRate>) -> Result<(), XdpError> {
        let config = Config {
            line_rate: bits(line_rate),
            ..self.shared.configs[self.port as usize]
        };
        configure(&mut self.shared.programs().object, &[(self.port, config)])
    }

    /// Returns its counts, over all CPUs.
    pub(super) fn counters(&self) -> Result<Counters, XdpError> {
        over_cpus(
            &self.shared.counters,
            self.port,
            Counters::ZERO,
            Counters::merge,
        )
    }

    /// The clock of a class.
    pub(super) fn clock(&self, class: usize) -> PauseClock {
        let place = self.port as usize * PAUSED + class;
        self.shared.clocks.stable(place * WORDS_OF_CLOCK)
    }

    /// Takes the MAC control frames that were kept, in the order of their arrival; later calls give
    /// later ones.
    pub fn controls(&mut self) -> Result<Vec<ControlFrame>, XdpError> {
        let controls = self.shared.controls.lock();
        let mut controls = controls.unwrap_or_else(PoisonError::into_inner);
        let Controls { ring, taken } = &mut *controls;
        while let Some(found) = ring.next() {
            let error = XdpError::Record {
                expected: size_of::<Control>(),
                found: found.len(),
            };
            let control: Control = Plain::read(&found).ok_or(error)?;
            if let Some(taken) = taken.get_mut(control.port as usize) {
                taken.push(record::control(&control));
            }
        }
        let mut frames = std::mem::take(&mut taken[self.port as usize]);
        // Several CPUs take their time before they take their place in the ring.
        frames.sort_by_key(|frame| frame.time);
        Ok(frames)
    }

    /// The flows of test frames that have passed.
    pub fn flows(&self) -> Result<Vec<Flow>, XdpError> {
        let mut flows = Vec::new();
        for entry in self.shared.flows.iter() {
            let (key, place) = entry?;
            if key >> 32 != u64::from(self.port) {
                continue;
            }
            let state = self.shared.states.get(&place, 0)?.0;
            // A flow whose first frame is being counted.
            if state.distinct > 0 {
                flows.push(record::flow(key, &state));
            }
        }
        flows.sort_by_key(|flow| (flow.run, flow.flow));
        Ok(flows)
    }

    /// All frames that have passed, sorted by what no device changes; none unless flows are told
    /// apart.
    pub fn sketch(&self) -> Result<Sketch, XdpError> {
        let config = &self.shared.configs[self.port as usize];
        if config.flows == 0 {
            return Ok(Sketch::ZERO);
        }
        let place = config.sketch.into();
        over_cpus(&self.shared.sketches, place, Sketch::ZERO, Sketch::merge)
    }
}

/// Writes the configurations. Their map stays with the object: programs that are loaded later need
/// the descriptor of each map.
fn configure(object: &mut Ebpf, configs: &[(u32, Config)]) -> Result<(), XdpError> {
    let map = object.map_mut(name::CONFIG);
    let mut map: Array<_, _> = map.ok_or(XdpError::Missing(name::CONFIG))?.try_into()?;
    for (port, config) in configs {
        map.set(*port, Plain(*config), 0)?;
    }
    Ok(())
}

/// A speed as programs have it.
fn bits(line_rate: Option<LineRate>) -> u64 {
    line_rate.map_or(0, LineRate::bits_per_second)
}

/// The ports' configurations, each with places of its own in the maps.
fn configs(settings: &[Settings]) -> Vec<Config> {
    assert!(settings.len() <= PORTS, "an object has {PORTS} entries");
    let (mut first_flow, mut sketch) = (0, 0);
    let mut config = |settings: &Settings| {
        let config = Config {
            abi: ABI_VERSION,
            trust: settings.trust as u8,
            capture: settings.capture.into(),
            sketch,
            flows: settings.flows,
            first_flow,
            line_rate: bits(settings.line_rate),
            dscp_to_priority: settings.dscp_map.map(Priority::get),
        };
        first_flow += settings.flows;
        sketch += u16::from(settings.flows > 0);
        config
    };
    settings.iter().map(&mut config).collect()
}

/// Sets the number of entries of the maps.
fn size(loader: &mut EbpfLoader<'_>, configs: &[Config]) {
    let ports = configs.len() as u32;
    let places = configs
        .iter()
        .map(|config| config.flows)
        .sum::<u32>()
        .max(1);
    let telling = configs.iter().filter(|config| config.flows > 0).count();
    let capturing = configs.iter().filter(|config| config.capture != 0).count();
    // The kernel takes a power of two for a ring.
    let ring = RING * capturing.max(1).next_power_of_two();
    loader
        .map_max_entries(name::CONFIG, ports)
        .map_max_entries(name::COUNTERS, ports)
        .map_max_entries(name::PAUSE, ports * PAUSED as u32)
        .map_max_entries(name::CONTROLS, ring as u32)
        .map_max_entries(name::TAKEN, ports)
        .map_max_entries(name::FLOWS, places)
        .map_max_entries(name::STATES, places)
        .map_max_entries(name::SEEN, places * SEEN_WINDOW as u32)
        .map_max_entries(name::SKETCH, telling.max(1) as u32);
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::abi::Trust;

    use super::*;

    #[test]
    fn each_port_that_tells_flows_apart_has_places_of_its_own() {
        let port = |flows| Settings {
            trust: Trust::Dscp,
            dscp_map: std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
            line_rate: None,
            capture: false,
            flows,
        };
        let places: Vec<_> = configs(&[port(0), port(10), port(0), port(20)])
            .iter()
            .map(|config| (config.flows, config.first_flow, config.sketch))
            .collect();
        assert_eq!(places[1], (10, 0, 0));
        assert_eq!(places[3], (20, 10, 1));
        assert_eq!((places[0].0, places[2].0), (0, 0));
    }
}
