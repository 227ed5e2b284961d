//! Settings as a person meets them: a wrong file explained, a right one shown, precedence, defaults.

mod counting;
mod relations;
mod rooms;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tally_core::catalog::ReadPolicy;
use tally_core::id::Name;
use tally_settings::{
    ConfigErrors, Judge, ServeArgs, Settings, Sync, TlsRefusal, TlsSettings, check, load_from, render_defaults,
    render_show,
};

/// A file of one test's own, in the build folder.
pub(crate) fn file(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("config");
    std::fs::create_dir_all(&folder).expect("the build folder is ours");
    let path = folder.join(format!("{name}.toml"));
    std::fs::write(&path, text).expect("the build folder is ours");
    path
}

/// Knows a few stores, and whether a file is there.
struct Simple;

impl Judge for Simple {
    fn store(&self, url: &str) -> Result<String, String> {
        match url.split_once(':') {
            Some(("embedded" | "postgres" | "redis", _)) => Ok(url.replace("hush", "***")),
            Some((scheme, _)) => Err(format!("no store is called `{scheme}`")),
            None => Err("it is not the URL of a store".into()),
        }
    }

    fn admin_key(&self, key: &str) -> Result<(), String> {
        if key.contains(' ') { Err("a key has no spaces".into()) } else { Ok(()) }
    }

    fn key_set(&self, file: &Path) -> Result<(), String> {
        readable(file)
    }

    fn tls(&self, tls: &TlsSettings) -> Result<(), TlsRefusal> {
        let refusal = |is_about_key| move |what| TlsRefusal { is_about_key, what, hint: "name a file" };
        readable(&tls.cert).map_err(refusal(false))?;
        readable(&tls.key).map_err(refusal(true))
    }
}

fn readable(file: &Path) -> Result<(), String> {
    std::fs::read(file).map(|_| ()).map_err(|_| format!("cannot read {}", file.display()))
}

pub(crate) fn load(args: &ServeArgs, env: &[(&str, &str)]) -> Result<Settings, ConfigErrors> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    load_from(args, &env, &Simple)
}

pub(crate) fn with_file(path: &Path) -> ServeArgs {
    ServeArgs { config: Some(path.to_path_buf()), ..ServeArgs::default() }
}

/// The problems of a file, without its folder, one string each.
fn problems(name: &str, text: &str) -> Vec<String> {
    let path = file(name, text);
    let folder = format!("{}/", path.parent().expect("it is in a folder").display());
    check(&path, &Simple).iter().map(|problem| problem.to_string().replace(&folder, "")).collect()
}

/// Asserts that a file has exactly the problems that each of `expected` begins one of.
#[track_caller]
pub(crate) fn assert_problems(name: &str, text: &str, expected: &[&str]) {
    let got = problems(name, text);
    let fits = got.len() == expected.len() && got.iter().zip(expected).all(|(got, part)| got.starts_with(part));
    assert!(fits, "{name}:\n{}\nexpected:\n{}", got.join("\n"), expected.join("\n"));
}

#[test]
fn without_anything_the_defaults_hold() {
    let settings = load(&ServeArgs::default(), &[]).unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:7700");
    assert_eq!(settings.store, "embedded:./tally-data");
    assert_eq!(settings.sync, Sync::Always);
    assert_eq!((settings.dev, settings.admin_key.is_none(), settings.jwt.is_none()), (false, true, true));
    assert_eq!(settings.bounds.body_bytes_max, 1 << 20);
    assert_eq!(settings.bounds.batch_bytes_max, 8 << 20);
    assert_eq!(settings.idempotency_ttl, Duration::from_secs(24 * 60 * 60));
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
    let catalog = settings.catalog();
    let read = |name| catalog.relation(&Name::new(name).unwrap()).unwrap().read;
    assert_eq!(read("like"), ReadPolicy::Public);
    assert_eq!(read("bookmark"), ReadPolicy::Own);
    assert_eq!(read("favorite"), ReadPolicy::Own);
    assert_eq!(catalog.relations().count(), 3);
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let path = file("precedence", "listen = \"127.0.0.1:1\"\nstore = \"embedded:file\"\nsync = \"100ms\"\n");
    let path_text = path.to_str().unwrap();
    let env = [("TALLY_CONFIG", path_text), ("TALLY_LISTEN", "127.0.0.1:2"), ("TALLY_STORE", "embedded:env")];
    let args = ServeArgs { listen: Some("127.0.0.1:3".into()), ..ServeArgs::default() };
    let settings = load(&args, &env).unwrap();
    assert_eq!(settings.listen.port(), 3);
    assert_eq!(settings.store, "embedded:env");
    assert_eq!(settings.sync, Sync::Every(Duration::from_millis(100)));
    assert_eq!(settings.log.level, "info");
    let shown = render_show(&settings);
    let line = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("listen = ").ends_with("# flag --listen"), "{shown}");
    assert!(line("store = ").ends_with("# env TALLY_STORE"), "{shown}");
    assert!(line("sync = ").ends_with("precedence.toml:3:1"), "{shown}");
    assert!(line("level = ").ends_with("# default"), "{shown}");
}

#[test]
fn an_empty_variable_is_an_unset_one_and_numbers_come_as_words() {
    let env = [("TALLY_LISTEN", ""), ("TALLY_BOUNDS_CONNECTIONS_MAX", "7"), ("TALLY_CONFIG", "")];
    let settings = load(&ServeArgs::default(), &env).unwrap();
    assert_eq!(settings.listen.port(), 7700);
    assert_eq!(settings.bounds.connections_max, 7);
}

#[test]
fn a_named_file_must_be_there() {
    let missing = file("missing", "").with_extension("nowhere");
    let by_flag = load(&with_file(&missing), &[]).unwrap_err().to_string();
    assert!(by_flag.starts_with("flag --config: cannot read") && by_flag.contains("missing.nowhere"), "{by_flag}");
    let env = [("TALLY_CONFIG", missing.to_str().unwrap())];
    let by_env = load(&ServeArgs::default(), &env).unwrap_err().to_string();
    assert!(by_env.starts_with("env TALLY_CONFIG: cannot read"), "{by_env}");
    let binary = file("binary", "");
    std::fs::write(&binary, [0xff, 0xfe]).unwrap();
    assert!(load(&with_file(&binary), &[]).unwrap_err().to_string().contains("not UTF-8"));
}

#[test]
fn every_problem_is_reported_with_its_place_and_a_hint() {
    let text = r#"listen = "everywhere"
store = "mongodb://u:hush@h/db"
sync = 100
admin_key = "0123456789abcdef"
dev = true
lisen = "127.0.0.1:1"
body_bytes_max = 5

[bounds]
body_bytes_max = "1 MiB"
conections_max = 5
request_timeout_ms = 0
queue_depth_max = 99999999999999999999

[log]
format = "xml"

[idempotency]
ttl = "1 day"

[tls]
cert = "/nowhere/cert.pem"

[auth.jwt]
jwks = "/nowhere/jwks.json"
issuer = ["a", 7]

[storage]
x = 1
"#;
    assert_problems(
        "wrong",
        text,
        &[
            "wrong.toml:1:10: `listen`: `everywhere` is not an address to listen on\n  hint: write an IP and a port",
            "wrong.toml:2:9: `store`: no store is called `mongodb`\n  hint: write \"embedded:PATH\"",
            "wrong.toml:3:8: `sync`: a number where a string belongs\n  hint: write \"always\"",
            "wrong.toml:4:1: `admin_key` cannot be set in the file\n  hint: set TALLY_ADMIN_KEY in the environment",
            "wrong.toml:5:1: `dev` cannot be set in the file\n  hint: use the flag --dev",
            "wrong.toml:6:1: unknown key `lisen`\n  hint: did you mean `listen`?",
            "wrong.toml:7:1: unknown key `body_bytes_max`\n  hint: `body_bytes_max` belongs under [bounds]",
            "wrong.toml:10:18: `bounds.body_bytes_max`: a string where a whole number belongs",
            "wrong.toml:11:1: unknown key `conections_max`\n  hint: did you mean `connections_max`?",
            "wrong.toml:12:22: `bounds.request_timeout_ms`: 0 is out of range\n  hint: write a number from 10",
            "wrong.toml:13:19: `bounds.queue_depth_max`: the number is too large",
            "wrong.toml:16:10: `log.format`: `xml` is not a choice here\n  hint: write one of \"text\", \"json\"",
            "wrong.toml:19:7: `idempotency.ttl`: `1 day` is not a duration\n  hint: write a number with ms, s, m, h or d",
            "wrong.toml:22:1: `tls.key` is missing\n  hint: set both of cert and key",
            "wrong.toml:25:1: `auth.jwt.audience` is missing\n  hint: set all of jwks, issuer and audience",
            "wrong.toml:25:1: `auth.jwt.jwks`: cannot read /nowhere/jwks.json",
            "wrong.toml:26:10: `auth.jwt.issuer`: a mixed list where a string or a list of strings belongs",
            "wrong.toml:28:2: unknown key `storage`",
        ],
    );
    assert!(!problems("wrong", text).join("").contains("hush"));
}

#[test]
fn broken_syntax_is_reported_once_and_the_rest_is_still_read() {
    let got = problems("syntax", "listen = \nlog = 5\nstore = \"embedded:x\"\nstore = \"embedded:y\"\n");
    assert!(got.iter().any(|problem| problem.starts_with("syntax.toml:1:") && problem.contains("not TOML")), "{got:?}");
    assert_eq!(got.iter().filter(|problem| problem.starts_with("syntax.toml:1:")).count(), 1, "{got:?}");
    assert!(got.iter().any(|problem| problem.starts_with("syntax.toml:2:7: `log` is a table")), "{got:?}");
    assert!(got.iter().any(|problem| problem.starts_with("syntax.toml:4:")), "{got:?}");
}

#[test]
fn dev_is_for_loopback_only() {
    let dev = |listen: &str| load(&ServeArgs { dev: true, listen: Some(listen.into()), ..ServeArgs::default() }, &[]);
    for own in ["127.0.0.1:7700", "127.9.9.9:1", "[::1]:7700", "localhost:0"] {
        assert!(dev(own).unwrap().dev, "{own}");
    }
    for open in ["0.0.0.0:7700", "[::]:7700", "192.168.1.5:7700"] {
        let refused = dev(open).unwrap_err().to_string();
        assert!(refused.starts_with("flag --dev: authentication is never off on"), "{refused}");
    }
    let env = load(&ServeArgs::default(), &[("TALLY_DEV", "true")]).unwrap();
    assert!(!env.dev, "no variable turns authentication off");
}

#[test]
fn secrets_are_never_shown() {
    let env = [("TALLY_ADMIN_KEY", "correct-horse-battery-staple")];
    let settings = load(&ServeArgs::default(), &env).unwrap();
    assert_eq!(settings.admin_key.as_ref().unwrap().expose(), "correct-horse-battery-staple");
    for text in [render_show(&settings), format!("{settings:?}")] {
        assert!(!text.contains("battery"), "{text}");
    }
    assert!(render_show(&settings).contains("env TALLY_ADMIN_KEY"));
    let short = load(&ServeArgs::default(), &[("TALLY_ADMIN_KEY", "hush")]).unwrap();
    let warned = short.warnings.join("\n");
    assert!(warned.contains("TALLY_ADMIN_KEY has fewer than 16") && !warned.contains("hush"), "{warned}");
    let bad = load(&ServeArgs::default(), &[("TALLY_ADMIN_KEY", "hush hush")]).unwrap_err().to_string();
    assert!(bad.contains("`admin_key`: a key has no spaces") && !bad.contains("hush hush"), "{bad}");
}

#[test]
fn a_store_is_shown_without_its_password() {
    let args = ServeArgs { store: Some("postgres://u:hush@h/db".into()), ..ServeArgs::default() };
    let settings = load(&args, &[]).unwrap();
    assert_eq!(settings.store, "postgres://u:hush@h/db");
    assert!(render_show(&settings).contains("store = \"postgres://u:***@h/db\""), "{}", render_show(&settings));
}

#[test]
fn a_wrong_store_is_a_problem_also_where_a_stronger_one_overrides_it() {
    let args = ServeArgs { store: Some("embedded:right".into()), ..ServeArgs::default() };
    let refused = load(&args, &[("TALLY_STORE", "mongodb://u:hush@h")]).unwrap_err().to_string();
    assert!(refused.starts_with("env TALLY_STORE: `store`: no store is called `mongodb`"), "{refused}");
}

#[test]
fn wrong_words_of_flags_and_environment_are_problems_too() {
    let args = ServeArgs { listen: Some("nowhere".into()), log_level: Some("loud".into()), ..ServeArgs::default() };
    let ConfigErrors(problems) = load(&args, &[("TALLY_SYNC", "often")]).unwrap_err();
    let origins: Vec<String> = problems.iter().map(|problem| problem.origin.to_string()).collect();
    assert_eq!(origins, ["env TALLY_SYNC", "flag --listen", "flag --log-level"]);
}

#[test]
fn likely_mistakes_are_warned_about() {
    let env = [
        ("TALLY_LISTN", "x"),
        ("TALLY_SERVICE_HOST", "10.0.0.1"),
        ("TALLY_PORT", "tcp://10.0.0.1:7700"),
        ("TALLY_LISTEN", "0.0.0.0:1"),
        ("TALLY_SYNC", "100ms"),
    ];
    let warnings = load(&ServeArgs::default(), &env).unwrap().warnings;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("plain HTTP") && warnings[1].contains("100ms"), "{warnings:?}");
    assert!(warnings[2].contains("TALLY_LISTN") && warnings[2].contains("TALLY_LISTEN"), "{warnings:?}");
}

#[test]
fn the_default_file_is_right_with_and_without_its_comments() {
    let defaults = render_defaults();
    assert_eq!(check(&file("defaults", &defaults), &Simple), []);
    // Uncommented, every setting must be known and acceptable; only the example files do not exist.
    let uncommented: String = defaults
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(code) if code.starts_with('[') || code.split(" = ").next().is_some_and(is_key) => code,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n");
    assert!(uncommented.contains("\nlisten = ") && uncommented.contains("\n[relations.reaction]\n"), "{uncommented}");
    let problems = check(&file("uncommented", &uncommented), &Simple);
    assert!(problems.iter().all(|problem| problem.what.starts_with("`tls.cert`: cannot read")), "{problems:?}");
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'.')
}

#[test]
fn the_committed_default_file_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tally.toml");
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(committed == render_defaults(), "docs/tally.toml is stale: write `tally config defaults` to it");
}

#[test]
fn what_is_shown_can_be_read_back() {
    let args = ServeArgs { listen: Some("127.0.0.1:9".into()), ..ServeArgs::default() };
    let settings = load(&args, &[]).unwrap();
    let shown = file("shown", &render_show(&settings));
    let again = load(&with_file(&shown), &BTreeMap::new().into_iter().collect::<Vec<_>>()).unwrap();
    assert_eq!((again.listen, again.bounds, again.store), (settings.listen, settings.bounds, settings.store));
}
