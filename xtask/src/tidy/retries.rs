//! A test that passes at the second try has found something. nextest is not allowed to hide it.

use super::Finding;
use super::source::Tree;
use anyhow::Result;

const CONFIG: &str = ".config/nextest.toml";

/// Looks at nextest's configuration.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let config = tree.files.iter().find(|file| file.path == CONFIG);
    Ok(config.map_or_else(Vec::new, |file| check_text(&file.text)))
}

fn check_text(text: &str) -> Vec<Finding> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| {
            let setting = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            setting.is_some_and(|(key, value)| key.starts_with("retries") && value != "0")
        })
        .map(|(index, _)| {
            Finding::new(format!("{CONFIG}:{}", index + 1), "no retries: find out why the test flakes, and mend that")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_found() {
        assert_eq!(check_text("[profile.ci]\nretries = 2\n")[0].place, ".config/nextest.toml:2");
        assert_eq!(check_text("retries = { backoff = \"fixed\", count = 2 }").len(), 1);
        assert!(check_text("retries = 0\n# retries = 3\n").is_empty());
    }
}
