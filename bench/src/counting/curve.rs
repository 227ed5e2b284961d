//! The error of unique counts as a curve.

use super::sketch::Point;
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 310.0;
/// The stated error, in percent.
const STATED: f64 = 0.81;

/// Members on a logarithmic axis, error in percent.
pub(super) fn draw(points: &[Point]) -> String {
    let most = points.iter().map(|point| point.worst * 100.0).fold(3.0 * STATED, f64::max);
    let decades = |members: u64| (members.max(1) as f64).log10();
    let (low, high) = match points {
        [first, .., last] => (decades(first.members), decades(last.members)),
        _ => (0.0, 1.0),
    };
    let x = |members: u64| LEFT + (decades(members) - low) / (high - low) * (WIDTH - LEFT - 40.0);
    let y = |percent: f64| BOTTOM - percent / most * (BOTTOM - TOP);
    let mut body = String::new();
    let mut line = |text: String| {
        // Writing into memory cannot fail.
        let _ = writeln!(body, "{text}");
    };
    for (percent, class) in [(0.0, "a"), (STATED, "s"), (2.0 * STATED, "a"), (3.0 * STATED, "a")] {
        let at = y(percent);
        line(format!("<line class=\"{class}\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\"/>", WIDTH - 40.0));
        line(format!("<text class=\"l\" x=\"{}\" y=\"{:.1}\">{percent:.2} %</text>", LEFT - 8.0, at + 4.0));
    }
    for (class, value) in [("w", (|point| point.worst) as fn(&Point) -> f64), ("r", |point| point.rms)] {
        let path: Vec<String> =
            points.iter().map(|point| format!("{:.1},{:.1}", x(point.members), y(value(point) * 100.0))).collect();
        line(format!("<polyline class=\"{class}\" points=\"{}\"/>", path.join(" ")));
    }
    for point in points {
        let at = x(point.members);
        line(format!("<circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"4\"/>", y(point.rms * 100.0)));
        line(format!("<text class=\"m\" x=\"{at:.1}\" y=\"{}\">{}</text>", BOTTOM + 22.0, point.members));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"Error of unique counts\">\n\
         <style>text{{font:12px system-ui,sans-serif;fill:#333}}.t{{font-size:16px;font-weight:600}}.l{{text-anchor:end}}.m{{text-anchor:middle}}\
         line{{stroke:#ccc}}.s{{stroke:#d97757;stroke-dasharray:5 4}}polyline{{fill:none;stroke-width:2}}.r{{stroke:#0f766e}}.w{{stroke:#9aa4b2}}circle{{fill:#0f766e}}\
         @media(prefers-color-scheme:dark){{text{{fill:#ddd}}}}</style>\n\
         <text class=\"t\" x=\"16\" y=\"28\">Error of unique counts by members: root of the mean square (green), worst (grey), stated (dashed)</text>\n{body}</svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_where_they_belong() {
        let points = [(10, 0.0), (1_000, 0.0081)].map(|(members, rms)| Point { members, rms, worst: rms });
        let svg = draw(&points);
        assert!(svg.contains("cx=\"70.0\" cy=\"310.0\""), "{svg}");
        assert!(svg.contains(&format!("cx=\"860.0\" cy=\"{:.1}\"", 310.0 - 250.0 / 3.0)), "{svg}");
    }
}
