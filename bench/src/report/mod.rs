//! What was measured, as a table, JSON, a chart and a page.

mod chart;
mod page;
mod table;

use crate::load::Measured;
use crate::machine::Machine;
use crate::targets::Judged;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One measured row.
#[derive(Serialize, Deserialize, Clone)]
pub(crate) struct Row {
    /// A stable name that targets refer to, such as `redis.always.single`.
    pub(crate) id: String,
    /// Rows of one group do the same work in the same way, and are compared with each other.
    pub(crate) group: String,
    pub(crate) system: String,
    pub(crate) how: String,
    pub(crate) per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) memory_bytes: u64,
    /// Cores that the load generator used, of those the system could have had.
    pub(crate) client_cores: f64,
}

impl Row {
    pub(crate) fn new(id: &str, group: &str, system: &str, how: &str, measured: &Measured, memory_bytes: u64) -> Self {
        Self {
            id: id.into(),
            group: group.into(),
            system: system.into(),
            how: how.into(),
            per_s: measured.per_s,
            p50_us: measured.latency.quantile_us(0.5),
            p99_us: measured.latency.quantile_us(0.99),
            p999_us: measured.latency.quantile_us(0.999),
            memory_bytes,
            client_cores: measured.client_cores,
        }
    }
}

/// A figure that is not a rate: bytes per like, seconds to start.
#[derive(Serialize, Deserialize, Clone)]
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
}

/// Everything about one run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) bench: String,
    /// What one operation is, for headings.
    pub(crate) operation: String,
    pub(crate) machine: Machine,
    /// Data and duration, in a sentence.
    pub(crate) data: String,
    /// How each system was configured.
    pub(crate) setups: Vec<String>,
    pub(crate) rows: Vec<Row>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) targets: Vec<Judged>,
    /// The row that ratios are taken against, by group; the first row where the group lacks it.
    pub(crate) base_system: String,
    /// Parts of names; when there are any, other rows are not measured.
    #[serde(skip)]
    pub(crate) row_filter: Vec<String>,
}

impl Report {
    pub(crate) fn new(bench: &str, operation: &str, data: String, row_filter: &[String]) -> Self {
        Self {
            bench: bench.into(),
            operation: operation.into(),
            machine: Machine::read(),
            data,
            setups: Vec::new(),
            rows: Vec::new(),
            figures: Vec::new(),
            targets: Vec::new(),
            base_system: "Redis, AOF always".into(),
            row_filter: row_filter.to_vec(),
        }
    }

    /// Whether this row was asked for.
    pub(crate) fn wants(&self, id: &str) -> bool {
        self.row_filter.is_empty() || self.row_filter.iter().any(|part| id.contains(part.as_str()))
    }

    pub(crate) fn figure(&mut self, id: &str, what: &str, value: f64, unit: &str) {
        self.figures.push(Figure { id: id.into(), what: what.into(), value, unit: unit.into() });
    }

    /// The groups in the order they were measured.
    fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !groups.contains(&row.group.as_str()) {
                groups.push(&row.group);
            }
        }
        groups
    }

    fn rows_of<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.group == group)
    }

    /// The row of a group that its ratios are taken against.
    fn base_of<'a>(&'a self, group: &'a str) -> Option<&'a Row> {
        self.rows_of(group).find(|row| row.system == self.base_system).or_else(|| self.rows_of(group).next())
    }

    /// Prints the tables, and writes JSON, chart and page into `folder`.
    pub(crate) fn finish(mut self, folder: &Path) -> Result<()> {
        self.targets = crate::targets::judge(&self);
        table::print(&self);
        std::fs::create_dir_all(folder)?;
        let json = folder.join(format!("{}.json", self.bench));
        std::fs::write(&json, format!("{}\n", serde_json::to_string_pretty(&self)?))?;
        if !self.rows.is_empty() {
            std::fs::write(folder.join(format!("{}.svg", self.bench)), chart::draw(&self))?;
        }
        page::write(folder)?;
        println!("written: {}", json.display());
        Ok(())
    }
}

/// `12.3k`, as people say it.
fn rate(per_s: f64) -> String {
    match per_s {
        rate if rate >= 99_950.0 => format!("{:.0}k", rate / 1000.0),
        rate if rate >= 1000.0 => format!("{:.1}k", rate / 1000.0),
        rate => format!("{rate:.0}"),
    }
}

fn latency(us: f64) -> String {
    match us {
        us if us >= 100_000.0 => format!("{:.0} ms", us / 1000.0),
        us if us >= 1000.0 => format!("{:.1} ms", us / 1000.0),
        us => format!("{us:.0} µs"),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

fn value(value: f64, unit: &str) -> String {
    let number = if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
    format!("{number} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_say_them() {
        assert_eq!([rate(123_456.0), rate(12_345.0), rate(999.0)], ["123k", "12.3k", "999"]);
        assert_eq!([latency(12.3), latency(1234.0), latency(250_000.0)], ["12 µs", "1.2 ms", "250 ms"]);
    }
}
