//! The error of unique counts, measured.

use crate::progress::Progress;
use crate::report::Report;
use tally::core::rows::Sketch;

/// How far off estimates were, as a part of the truth.
pub(super) struct Point {
    pub(super) members: u64,
    /// The root of the mean square.
    pub(super) rms: f64,
    pub(super) worst: f64,
}

/// Days in a week, each with its own members and some that came before.
const DAYS: usize = 7;

/// Measures the error at several sizes, and that of a week's union.
pub(super) fn measure(report: &mut Report, quick: bool) -> Vec<Point> {
    let sizes: &[(u64, u64)] = if quick {
        &[(1_000, 200), (100_000, 20)]
    } else {
        &[(100, 400), (1_000, 1_000), (10_000, 400), (100_000, 400), (1_000_000, 100), (10_000_000, 40)]
    };
    let progress = Progress::counted("unique counts", sizes.iter().map(|(members, trials)| members * trials).sum());
    let (mut points, mut largest) = (Vec::new(), 0);
    for (members, trials) in sizes {
        let errors = (0..*trials).map(|trial| {
            let mut sketch = Sketch::default();
            (0..*members).for_each(|member| sketch.add(&name(trial, member)));
            largest = largest.max(sketch.to_bytes().len());
            progress.add(*members);
            sketch.estimate() as f64 / *members as f64 - 1.0
        });
        let point = point(*members, errors.collect());
        let what = format!("error of a unique count at {members} members, root of the mean square of {trials}");
        report.figure(&format!("unique.rms.{members}"), &what, point.rms * 100.0, "%");
        points.push(point);
    }
    let worst = points.iter().map(|point| point.rms).fold(0.0, f64::max);
    report.figure("unique.rms", "the largest of these", worst * 100.0, "%");
    report.figure("unique.bytes", "bytes of the largest sketch", largest as f64, "bytes");
    drop(progress);
    let (per_day, trials) = if quick { (20_000, 5) } else { (200_000, 60) };
    let progress = Progress::counted("a week's union", per_day * DAYS as u64 * trials);
    let errors = (0..trials).map(|trial| {
        let days: Vec<Sketch> = (0..DAYS as u64)
            .map(|day| {
                let mut sketch = Sketch::default();
                // Half of a day's members were there the day before.
                let first = day * per_day / 2;
                (first..first + per_day).for_each(|member| sketch.add(&name(1_000_000 + trial, member)));
                progress.add(per_day);
                sketch
            })
            .collect();
        let exact = per_day / 2 * (DAYS as u64 + 1);
        Sketch::union_estimate(days.iter()) as f64 / exact as f64 - 1.0
    });
    let union = point(0, errors.collect());
    report.figure("unique.union", "error of a week's union, root of the mean square", union.rms * 100.0, "%");
    points
}

fn name(trial: u64, member: u64) -> String {
    format!("{trial}/user-{member}")
}

fn point(members: u64, errors: Vec<f64>) -> Point {
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    let worst = errors.iter().map(|error| error.abs()).fold(0.0, f64::max);
    Point { members, rms: (squares / errors.len() as f64).sqrt(), worst }
}
