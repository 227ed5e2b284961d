//! What the figures were taken on. They mean little without it, and ratios more than either.

use serde::{Deserialize, Serialize};

/// The machine, as a reader of the figures needs it.
#[derive(Serialize, Deserialize, Clone)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: u64,
    pub(crate) kernel: String,
    /// Work that other programs did when the run began; above 0.5 the figures are disturbed.
    pub(crate) load_before: f64,
}

impl Machine {
    pub(crate) fn read() -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let meminfo = read("/proc/meminfo");
        let cpu = field(&cpuinfo, "model name").unwrap_or("unknown").to_owned();
        let kib = field(&meminfo, "MemTotal").and_then(|text| text.split(' ').next()).and_then(|kib| kib.parse().ok());
        Self {
            cpu,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: (kib.unwrap_or(0_u64) + (1 << 19)) >> 20,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: read("/proc/loadavg").split(' ').next().and_then(|one| one.parse().ok()).unwrap_or(0.0),
        }
    }

    pub(crate) fn sentence(&self) -> String {
        format!(
            "{} cores of {}, {} GiB, Linux {}; load of other work before the run: {:.1}",
            self.cores, self.cpu, self.memory_gib, self.kernel, self.load_before
        )
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}
