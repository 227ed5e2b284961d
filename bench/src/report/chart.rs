//! A bar chart as SVG, written by hand: no library draws a dozen bars better than a dozen lines do.

use super::{Report, rate};
use std::fmt::Write;

const WIDTH: u32 = 900;
const LABEL_WIDTH: u32 = 370;
const BAR_HEIGHT: u32 = 18;
const ROW_HEIGHT: u32 = 26;
const HEAD_HEIGHT: u32 = 40;
const GROUP_HEAD_HEIGHT: u32 = 34;

/// Bars by group; within a group they share a scale.
pub(super) fn draw(report: &Report) -> String {
    let mut body = String::new();
    let mut y = HEAD_HEIGHT;
    for group in report.groups() {
        let highest = report.rows_of(group).map(|row| row.per_s).fold(1.0, f64::max);
        y += GROUP_HEAD_HEIGHT;
        line(&mut body, &format!("<text class=\"g\" x=\"16\" y=\"{}\">{}</text>", y - 10, escaped(group)));
        for row in report.rows_of(group) {
            let room = f64::from(WIDTH - LABEL_WIDTH - 90);
            let width = (row.per_s / highest * room).max(1.0);
            let class = row.system.split([' ', ',']).next().unwrap_or("").to_lowercase();
            let label = escaped(&format!("{} · {}", row.system, row.how));
            let text_y = y + BAR_HEIGHT - 5;
            line(&mut body, &format!("<text class=\"l\" x=\"{}\" y=\"{text_y}\">{label}</text>", LABEL_WIDTH - 8));
            line(
                &mut body,
                &format!(
                    "<rect class=\"{class}\" x=\"{LABEL_WIDTH}\" y=\"{y}\" width=\"{width:.0}\" height=\"{BAR_HEIGHT}\" rx=\"2\"/>"
                ),
            );
            let value_x = f64::from(LABEL_WIDTH) + width + 6.0;
            line(&mut body, &format!("<text x=\"{value_x:.0}\" y=\"{text_y}\">{}/s</text>", rate(row.per_s)));
            y += ROW_HEIGHT;
        }
    }
    let height = y + 16;
    let title = escaped(&format!("{} per second", report.operation));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">\n\
         <style>text{{font:12px system-ui,sans-serif;fill:#333}}.t{{font-size:16px;font-weight:600}}.g{{font-weight:600}}.l{{text-anchor:end}}\
         rect{{fill:#9aa4b2}}.tally{{fill:#0f766e}}.redis{{fill:#d97757}}.postgresql{{fill:#6b8fb8}}\
         @media(prefers-color-scheme:dark){{text{{fill:#ddd}}}}</style>\n\
         <text class=\"t\" x=\"16\" y=\"28\">{title}</text>\n{body}</svg>\n"
    )
}

fn line(out: &mut String, text: &str) {
    // Writing into memory cannot fail.
    let _ = writeln!(out, "{text}");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::load::Measured;
    use crate::report::Row;

    #[test]
    fn the_longest_bar_fills_the_room_and_text_is_escaped() {
        let mut report = Report::new("likes", "likes", String::new(), &[]);
        for (system, per_s) in [("Tally", 200.0), ("Redis <7>", 100.0)] {
            let measured = Measured { per_s, latency: Histogram::new(), client_cores: 0.0 };
            report.rows.push(Row::new("id", "one", system, "64", &measured, 0));
        }
        let svg = draw(&report);
        assert!(svg.contains("class=\"tally\" x=\"370\" y=\"74\" width=\"440\""), "{svg}");
        assert!(svg.contains("class=\"redis\" x=\"370\" y=\"100\" width=\"220\""), "{svg}");
        assert!(svg.contains("Redis &lt;7&gt;"));
    }
}
