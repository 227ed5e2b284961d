//! Named steps with the time each took, stopping at the first that fails.

use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// A run of steps; ends in one line.
pub(crate) struct Steps {
    started: Instant,
    taken: Vec<(&'static str, Duration)>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), taken: Vec::new() }
    }

    /// Runs one step. An error names the step, so the last line of a red run says where to look.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n==> {name}");
        let begun = Instant::now();
        let outcome = work();
        let taken = begun.elapsed();
        match &outcome {
            Ok(()) => println!("    ok: {name} ({})", seconds(taken)),
            Err(_) => println!("    FAILED: {name} ({})", seconds(taken)),
        }
        self.taken.push((name, taken));
        outcome.with_context(|| format!("step `{name}` failed after {}", seconds(taken)))
    }

    /// The one line that a person reads when all went well.
    pub(crate) fn summary(&self) -> String {
        let parts: Vec<String> = self.taken.iter().map(|(name, taken)| format!("{name} {}", seconds(*taken))).collect();
        format!("all {} steps passed in {}: {}", parts.len(), seconds(self.started.elapsed()), parts.join(", "))
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_is_named_and_the_summary_lists_the_steps() {
        let mut steps = Steps::new();
        steps.step("fine", || Ok(())).unwrap();
        let error = steps.step("broken", || anyhow::bail!("why")).unwrap_err();
        assert!(format!("{error:#}").starts_with("step `broken` failed after"));
        assert!(steps.summary().contains("fine 0.0 s"));
    }
}
