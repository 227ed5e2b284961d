//! Dependencies point one way: cli → server → tally → engines → engine → core.
//!
//! The table below is the architecture. A crate that is not in it is refused, so a new one gets its
//! place on purpose.

use super::Finding;
use super::source::Tree;
use anyhow::Result;

/// What a crate may depend on inside the workspace.
struct Layer {
    name: &'static str,
    may_use: &'static [&'static str],
    /// In tests only.
    may_test_with: &'static [&'static str],
}

const ENGINE_PARTS: &[&str] = &["tally-core", "tally-engine"];
const SUITE: &[&str] = &["tally-conformance", "tally-core", "tally-engine", "tally-testing"];
const EVERY_ENGINE: &[&str] = &[
    "tally-core",
    "tally-engine",
    "tally-embedded",
    "tally-postgres",
    "tally-redis",
    "tally-hybrid",
    "tally-firestore",
    "tally-notify",
];

const LAYERS: &[Layer] = &[
    Layer { name: "tally-core", may_use: &[], may_test_with: &[] },
    Layer { name: "tally-engine", may_use: &["tally-core"], may_test_with: SUITE },
    // With a network that fails, and no store in particular.
    Layer { name: "tally-conformance", may_use: &["tally-core", "tally-engine", "tally-testing"], may_test_with: &[] },
    Layer { name: "tally-embedded", may_use: ENGINE_PARTS, may_test_with: SUITE },
    Layer { name: "tally-postgres", may_use: ENGINE_PARTS, may_test_with: SUITE },
    Layer { name: "tally-redis", may_use: ENGINE_PARTS, may_test_with: SUITE },
    Layer { name: "tally-firestore", may_use: ENGINE_PARTS, may_test_with: SUITE },
    // The one engine made of two others.
    Layer {
        name: "tally-hybrid",
        may_use: &["tally-core", "tally-engine", "tally-postgres", "tally-redis"],
        may_test_with: SUITE,
    },
    Layer { name: "tally-notify", may_use: &["tally-core"], may_test_with: &[] },
    Layer { name: "tally", may_use: EVERY_ENGINE, may_test_with: SUITE },
    // What can be set, without the stores and the cryptography that it names.
    Layer { name: "tally-settings", may_use: &["tally-core"], may_test_with: &[] },
    // The contract from the other side: below the server, which it never needs.
    Layer { name: "tally-client", may_use: &["tally-core"], may_test_with: &[] },
    Layer { name: "tally-server", may_use: &["tally", "tally-settings"], may_test_with: &[] },
    Layer {
        name: "tally-cli",
        may_use: &["tally", "tally-client", "tally-server", "tally-settings"],
        may_test_with: SUITE,
    },
    Layer { name: "tally-bench", may_use: &["tally", "tally-testing"], may_test_with: &[] },
    // Whole servers on a store that is made up.
    Layer { name: "tally-simulator", may_use: &["tally", "tally-conformance"], may_test_with: &[] },
    // Servers and networks for tests and benchmarks; knows nothing of ours.
    Layer { name: "tally-testing", may_use: &[], may_test_with: &[] },
    // Starts everything, knows nothing.
    Layer { name: "xtask", may_use: &[], may_test_with: &[] },
];

/// Crates that bring a clock, randomness, I/O or async, and so have no place under the rules.
const NOT_IN_CORE: &[&str] = &[
    "async-trait",
    "fastrand",
    "fjall",
    "futures-util",
    "getrandom",
    "rand",
    "redis",
    "rustix",
    "tempfile",
    "tokio",
    "tokio-postgres",
    "tracing",
];

/// The domain never sees HTTP: these belong to the server and to clients of other services. (`utoipa` is
/// not among them: it lets a type describe itself, and brings no HTTP.)
const HTTP: &[&str] = &["axum", "http", "hyper", "reqwest", "tower", "tower-http"];
const WITHOUT_HTTP: &[&str] = &[
    "tally-core",
    "tally-engine",
    "tally-conformance",
    "tally-embedded",
    "tally-postgres",
    "tally-redis",
    "tally-hybrid",
    "tally",
    "tally-settings",
];

/// Looks at every `Cargo.toml`.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        // Fuzz targets are a workspace of their own and may reach for anything.
        if !file.path.starts_with("fuzz/") {
            findings.extend(check_manifest(&file.path, &file.text));
        }
    }
    Ok(findings)
}

fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let manifest = Manifest::parse(text);
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == manifest.name) else {
        return vec![Finding::new(
            path,
            format!(
                "crate `{}` has no place in the layers: add it to LAYERS in xtask/src/tidy/layers.rs",
                manifest.name
            ),
        )];
    };
    let mut findings = Vec::new();
    for (section, dependency) in &manifest.dependencies {
        let in_tests = section.contains("dev-dependencies");
        let ours = LAYERS.iter().any(|other| other.name == dependency);
        let allowed = layer.may_use.contains(&dependency.as_str())
            || (in_tests && layer.may_test_with.contains(&dependency.as_str()));
        if ours && !allowed {
            findings.push(Finding::new(
                path,
                format!(
                    "`{}` may not depend on `{dependency}`: dependencies go cli → server → tally → engines → engine → core. Move the code to the layer that owns it",
                    layer.name
                ),
            ));
        }
        if layer.name == "tally-core" && !in_tests && NOT_IN_CORE.contains(&dependency.as_str()) {
            findings.push(Finding::new(
                path,
                format!("core may not use `{dependency}`: no clock, randomness, I/O or async. Pass the value in with the command"),
            ));
        }
        if !in_tests && WITHOUT_HTTP.contains(&layer.name) && HTTP.contains(&dependency.as_str()) {
            findings.push(Finding::new(
                path,
                format!(
                    "`{}` may not know HTTP (`{dependency}`): speak Command and Query here, HTTP in the server",
                    layer.name
                ),
            ));
        }
    }
    findings
}

/// As much of a `Cargo.toml` as the rule needs.
struct Manifest {
    name: String,
    /// (section, crate)
    dependencies: Vec<(String, String)>,
}

impl Manifest {
    fn parse(text: &str) -> Self {
        let mut section = String::new();
        let mut name = String::new();
        let mut dependencies = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']').to_owned();
                // `[dependencies.tokio]` is a section for one crate.
                if let Some((kind, krate)) = section.rsplit_once('.')
                    && kind.ends_with("dependencies")
                {
                    dependencies.push((kind.to_owned(), krate.to_owned()));
                }
            } else if let Some((key, value)) = line.split_once('=') {
                let key = key.trim();
                if section == "package" && key == "name" {
                    name = value.trim().trim_matches('"').to_owned();
                } else if section.ends_with("dependencies") {
                    let krate = key.split('.').next().unwrap_or(key);
                    dependencies.push((section.clone(), krate.to_owned()));
                }
            }
        }
        Self { name, dependencies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Vec<String> {
        check_manifest("Cargo.toml", text).into_iter().map(|finding| finding.advice).collect()
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let found = check_text("[package]\nname = \"tally-engine\"\n[dependencies]\ntally.workspace = true\n");
        assert!(found[0].contains("`tally-engine` may not depend on `tally`"), "{found:?}");
    }

    #[test]
    fn the_suite_and_servers_are_for_tests_only() {
        for krate in ["tally-conformance", "tally-testing"] {
            let allowed =
                format!("[package]\nname = \"tally-embedded\"\n[dev-dependencies]\n{krate}.workspace = true\n");
            assert!(check_text(&allowed).is_empty(), "{krate}");
            assert_eq!(check_text(&allowed.replace("dev-", "")).len(), 1, "{krate}");
        }
    }

    #[test]
    fn core_stays_pure_and_the_domain_knows_no_http() {
        let found = check_text("[package]\nname = \"tally-core\"\n[dependencies.tokio]\nversion = \"1\"\n");
        assert!(found[0].contains("core may not use `tokio`"), "{found:?}");
        let found = check_text("[package]\nname = \"tally\"\n[dependencies]\naxum = { workspace = true }\n");
        assert!(found[0].contains("may not know HTTP"), "{found:?}");
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        assert!(check_text("[package]\nname = \"tally-extra\"\n")[0].contains("no place in the layers"));
    }
}
