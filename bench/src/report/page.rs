//! `README.md` of the figures: one page over every kept JSON.

use super::{Report, latency, megabytes, rate, value};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::Path;

/// In the order a reader wants them.
const BENCHES: &[&str] = &["likes", "postgres", "redis", "feed", "lists", "counting", "scale", "restart"];

/// Rewrites the page from the JSON files in the folder.
pub(super) fn write(folder: &Path) -> Result<()> {
    let mut page = String::from(
        "# Benchmarks\n\nWritten by `cargo xtask bench <name>`: edit nothing here. Every figure stands next to a peer that does the same work\n\
         in the same run on the same machine, because machines are noisy and ratios are less so.\n",
    );
    for bench in BENCHES {
        let file = folder.join(format!("{bench}.json"));
        if let Ok(json) = std::fs::read_to_string(&file) {
            let report: Report =
                serde_json::from_str(&json).with_context(|| format!("{} is not a report", file.display()))?;
            section(&mut page, &report);
        }
    }
    std::fs::write(folder.join("README.md"), page)?;
    Ok(())
}

fn section(page: &mut String, report: &Report) {
    let mut line = |text: &str| {
        // Writing into memory cannot fail.
        let _ = writeln!(page, "{text}");
    };
    line(&format!("\n## {}\n\n{}.\n\n{}.\n", report.bench, report.data, report.machine.sentence()));
    if !report.rows.is_empty() {
        line(&format!("![{0}]({0}.svg)\n", report.bench));
        if report.bench == "counting" {
            line("![error of unique counts](uniques.svg)\n");
        }
    }
    for group in report.groups() {
        let base = report.base_of(group);
        let against = base.map_or("", |row| row.system.as_str());
        line(&format!(
            "### {group}\n\n| system | how | {}/s | × {against} | p50 | p99 | p99.9 | memory |\n|---|---|--:|--:|--:|--:|--:|--:|",
            report.operation
        ));
        for row in report.rows_of(group) {
            line(&format!(
                "| {} | {} | {} | {:.2} | {} | {} | {} | {} |",
                row.system,
                row.how,
                rate(row.per_s),
                base.map_or(1.0, |base| row.per_s / base.per_s),
                latency(row.p50_us),
                latency(row.p99_us),
                latency(row.p999_us),
                megabytes(row.memory_bytes)
            ));
        }
        line("");
    }
    if !report.figures.is_empty() {
        line("| figure | value |\n|---|--:|");
        for figure in &report.figures {
            line(&format!("| {} | {} |", figure.what, value(figure.value, &figure.unit)));
        }
        line("");
    }
    if !report.targets.is_empty() {
        line("| what we hold ourselves to | measured | at least now | where we are going | |\n|---|---|---|---|---|");
        for target in &report.targets {
            let verdict = if target.ok { "ok" } else { "miss" };
            line(&format!(
                "| {} | {} | {} | {} | {verdict} |",
                target.what, target.measured, target.now, target.going_to
            ));
        }
        line("");
    }
    for setup in &report.setups {
        line(&format!("- {setup}."));
    }
}
