//! The report in a terminal.

use super::{Report, latency, megabytes, rate, value};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

/// Prints everything that a person at the terminal wants to know.
pub(super) fn print(report: &Report) {
    for group in report.groups() {
        println!("\n{} — {group}", report.bench);
        println!("{}", rows_table(report, group));
    }
    if !report.figures.is_empty() {
        println!("\n{}", figures_table(report));
    }
    if !report.targets.is_empty() {
        println!("\nWhat we hold ourselves to:\n{}", targets_table(report));
    }
    println!("\nmachine: {}\ndata: {}", report.machine.sentence(), report.data);
    for setup in &report.setups {
        println!("setup: {setup}");
    }
    if report.machine.load_before > 0.5 {
        println!("note: the machine was not idle before the run; trust the ratios, not the rates");
    }
}

fn rows_table(report: &Report, group: &str) -> Table {
    let base = report.base_of(group);
    let against = base.map_or_else(String::new, |row| format!("× {}", row.system));
    let per_s = format!("{}/s", report.operation);
    let mut table = new_table(&["system", "how", &per_s, &against, "p50", "p99", "p99.9", "memory", "client"]);
    for row in report.rows_of(group) {
        let ratio = base.map_or(1.0, |base| row.per_s / base.per_s);
        table.add_row([
            row.system.clone(),
            row.how.clone(),
            rate(row.per_s),
            format!("{ratio:.2}"),
            latency(row.p50_us),
            latency(row.p99_us),
            latency(row.p999_us),
            megabytes(row.memory_bytes),
            format!("{:.0} %", row.client_cores * 100.0),
        ]);
    }
    right_align(&mut table, 2);
    table
}

fn figures_table(report: &Report) -> Table {
    let mut table = new_table(&["figure", "value"]);
    for figure in &report.figures {
        table.add_row([figure.what.clone(), value(figure.value, &figure.unit)]);
    }
    right_align(&mut table, 1);
    table
}

fn targets_table(report: &Report) -> Table {
    let mut table = new_table(&["target", "measured", "now", "going to", ""]);
    for target in &report.targets {
        let verdict = if target.ok { "ok" } else { "miss" };
        table.add_row([&target.what, &target.measured, &target.now, &target.going_to, verdict]);
    }
    table
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(header.to_vec());
    table
}

fn right_align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
