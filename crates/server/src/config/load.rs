//! Putting the settings together from flags, environment, file and defaults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::ServeArgs;
use super::file::{self, Parsed};
use super::problem::{ConfigErrors, Origin, Problem, did_you_mean};
use super::schema::{Reach, SETTINGS, Setting};
use super::show::Effective;
use super::value::{Raw, Value};
use super::{JwtSettings, Limits, LogSettings, Settings, TlsSettings};
use crate::auth::jwks::{KeySet, is_url};
use crate::auth::keys::AdminKey;
use crate::tls;

/// The file that is read when nobody names one.
const DEFAULT_FILE: &str = "tally.toml";

/// Reads flags, environment and file.
pub fn load(args: &ServeArgs) -> Result<Settings, ConfigErrors> {
    // Only our own variables, so that a neighbour's that is not UTF-8 is not our problem.
    let env = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("TALLY_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        })
        .collect();
    load_from(args, &env)
}

/// Reads flags and file, with this environment instead of the process's own.
pub fn load_from(args: &ServeArgs, env: &BTreeMap<String, String>) -> Result<Settings, ConfigErrors> {
    let (file, parsed) = read_file(args, env);
    assemble(args, env, file, parsed)
}

/// Every problem of one file, on its own: without flags and environment.
pub fn check(path: &Path) -> Vec<Problem> {
    let args = ServeArgs { config: Some(path.to_path_buf()), ..ServeArgs::default() };
    load_from(&args, &BTreeMap::new()).err().map_or_else(Vec::new, |errors| errors.0)
}

fn read_file(args: &ServeArgs, env: &BTreeMap<String, String>) -> (Option<PathBuf>, Parsed) {
    let from_env = env.get("TALLY_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let named = args
        .config
        .clone()
        .map(|path| (path, Origin::Flag("--config")))
        .or_else(|| from_env.map(|path| (path, Origin::Env("TALLY_CONFIG".into()))));
    let path = named.as_ref().map_or_else(|| PathBuf::from(DEFAULT_FILE), |(path, _)| path.clone());
    let what = match std::fs::read(&path).map(String::from_utf8) {
        Ok(Ok(text)) => {
            let parsed = file::parse(&path, &text);
            return (Some(path), parsed);
        }
        Ok(Err(_)) => "it is not UTF-8 text".to_owned(),
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return (None, Parsed::default());
        }
        Err(error) => error.to_string(),
    };
    let (origin, hint) = match named {
        Some((_, origin)) => (origin, "name a file that can be read, or none"),
        None => {
            (Origin::File { path: path.clone(), line: 1, column: 1 }, "make it readable, or name another with --config")
        }
    };
    let problem = Problem::new(origin, format!("cannot read the settings file {}: {what}", path.display()));
    (Some(path), Parsed { problems: vec![problem.hint(hint)], ..Parsed::default() })
}

fn assemble(
    args: &ServeArgs,
    env: &BTreeMap<String, String>,
    file: Option<PathBuf>,
    parsed: Parsed,
) -> Result<Settings, ConfigErrors> {
    let Parsed { values, relations, mut problems } = parsed;
    let effective: Vec<Effective> =
        SETTINGS.iter().map(|setting| resolve(setting, args, env, &values, &mut problems)).collect();
    let lookup = Lookup { effective: &effective };
    let jwt = lookup.jwt(&mut problems);
    let tls = lookup.tls(&mut problems);
    lookup.dev(&mut problems);
    lookup.admin_key(&mut problems);
    if !problems.is_empty() {
        problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        return Err(ConfigErrors(problems));
    }
    Ok(Settings {
        listen: lookup.listen(),
        store: lookup.text("store"),
        sync: match lookup.get("sync") {
            Some(Value::Sync(sync)) => *sync,
            _ => super::Sync::Always,
        },
        admin_key: match lookup.get("admin_key") {
            Some(Value::Secret(secret)) => Some(secret.clone()),
            _ => None,
        },
        dev: lookup.get("dev") == Some(&Value::Switch(true)),
        warnings: warnings(env, &lookup, tls.is_some(), jwt.as_ref()),
        jwt,
        tls,
        limits: lookup.limits(),
        log: LogSettings { json: lookup.text("log.format") == "json", level: lookup.text("log.level") },
        idempotency_ttl: match lookup.get("idempotency.ttl") {
            Some(Value::Duration(ttl)) => *ttl,
            _ => Duration::ZERO,
        },
        backup_folder: lookup.text("backup.folder").into(),
        relations,
        file,
        effective: effective.clone(),
    })
}

/// The value of one setting: the first of flag, environment, file and default that has one. A wrong
/// value is a problem even where a stronger source overrides it.
fn resolve(
    setting: &'static Setting,
    args: &ServeArgs,
    env: &BTreeMap<String, String>,
    file: &BTreeMap<&'static str, (Value, Origin)>,
    problems: &mut Vec<Problem>,
) -> Effective {
    let flag = match setting.reach {
        Reach::Flag(flag) | Reach::FlagOnly(flag) => args.value(flag).map(|word| (word, Origin::Flag(flag))),
        _ => None,
    };
    // An empty variable is an unset one: that is what `${NAME:-}` in a compose file leaves.
    let from_env = setting.env().and_then(|name| {
        let word = env.get(&name).filter(|word| !word.is_empty())?;
        Some((word.clone(), Origin::Env(name)))
    });
    let mut found = None;
    for (word, origin) in [flag, from_env].into_iter().flatten() {
        match setting.kind.accept(Raw::Word(word)) {
            Ok(value) => found = found.or(Some((value, origin))),
            Err(refused) => {
                problems.push(Problem::new(origin, format!("`{}`: {}", setting.path, refused.what)).hint(refused.hint))
            }
        }
    }
    let found = found.or_else(|| file.get(setting.path).cloned());
    let (value, origin) = match found {
        Some((value, origin)) => (Some(value), origin),
        None => (setting.default_value(), Origin::Default),
    };
    Effective { setting, value, origin }
}

/// The effective settings by path.
struct Lookup<'a> {
    effective: &'a [Effective],
}

impl Lookup<'_> {
    fn entry(&self, path: &str) -> Option<&Effective> {
        self.effective.iter().find(|effective| effective.setting.path == path)
    }

    fn get(&self, path: &str) -> Option<&Value> {
        self.entry(path)?.value.as_ref()
    }

    fn origin(&self, path: &str) -> Origin {
        self.entry(path).map_or(Origin::Default, |effective| effective.origin.clone())
    }

    fn text(&self, path: &str) -> String {
        match self.get(path) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }

    fn texts(&self, path: &str) -> Vec<String> {
        match self.get(path) {
            Some(Value::Texts(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    fn number(&self, path: &str) -> u64 {
        match self.get(path) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    fn listen(&self) -> SocketAddr {
        match self.get("listen") {
            Some(Value::Address(address)) => *address,
            _ => SocketAddr::from(([127, 0, 0, 1], 0)),
        }
    }

    fn limits(&self) -> Limits {
        let size = |name| usize::try_from(self.number(name)).unwrap_or(usize::MAX);
        let time = |name| Duration::from_millis(self.number(name));
        Limits {
            body_bytes_max: size("limits.body_bytes_max"),
            batch_bytes_max: size("limits.batch_bytes_max"),
            batch_commands_max: size("limits.batch_commands_max"),
            header_bytes_max: size("limits.header_bytes_max"),
            connections_max: size("limits.connections_max"),
            request_timeout: time("limits.request_timeout_ms"),
            header_read_timeout: time("limits.header_read_timeout_ms"),
            idle_timeout: time("limits.idle_timeout_ms"),
            shutdown_grace: time("limits.shutdown_grace_ms"),
            queue_depth_max: size("limits.queue_depth_max"),
            subscriptions_max: size("limits.subscriptions_max"),
        }
    }

    /// Issuers share key sets (every Firebase project has the same one), so a token is only ours if
    /// issuer and audience say so: neither can be left out.
    fn jwt(&self, problems: &mut Vec<Problem>) -> Option<JwtSettings> {
        const NEEDED: [&str; 3] = ["auth.jwt.jwks", "auth.jwt.issuer", "auth.jwt.audience"];
        let given = NEEDED.iter().find(|path| self.get(path).is_some())?;
        let missing: Vec<_> = NEEDED.iter().filter(|path| self.get(path).is_none()).collect();
        // One that is there but wrong has been reported already.
        let reported = |path: &str| problems.iter().any(|problem| problem.what.starts_with(&format!("`{path}`:")));
        let silent: Vec<_> = missing.iter().filter(|path| !reported(path)).collect();
        for path in silent {
            problems.push(
                Problem::new(self.origin(given), format!("`{path}` is missing"))
                    .hint("set all of jwks, issuer and audience under [auth.jwt], or none"),
            );
        }
        let jwks = self.text("auth.jwt.jwks");
        if !jwks.is_empty() && !is_url(&jwks) {
            if let Err(error) = KeySet::read(Path::new(&jwks)) {
                problems.push(
                    Problem::new(self.origin("auth.jwt.jwks"), format!("`auth.jwt.jwks`: {error}"))
                        .hint("name a file with the issuer's JSON Web Key Set, or its https:// URL"),
                );
            }
        }
        missing.is_empty().then(|| JwtSettings {
            jwks,
            issuers: self.texts("auth.jwt.issuer"),
            audiences: self.texts("auth.jwt.audience"),
            subject_claim: self.text("auth.jwt.subject_claim"),
        })
    }

    fn tls(&self, problems: &mut Vec<Problem>) -> Option<TlsSettings> {
        let (cert, key) = (self.get("tls.cert"), self.get("tls.key"));
        let (given, missing) = match (cert, key) {
            (None, None) => return None,
            (Some(_), None) => ("tls.cert", "tls.key"),
            (None, Some(_)) => ("tls.key", "tls.cert"),
            (Some(_), Some(_)) => {
                let tls = TlsSettings { cert: self.text("tls.cert").into(), key: self.text("tls.key").into() };
                if let Err(error) = tls::server_config(&tls) {
                    let path = if error.is_about_key() { "tls.key" } else { "tls.cert" };
                    problems.push(Problem::new(self.origin(path), format!("`{path}`: {error}")).hint(error.hint()));
                }
                return Some(tls);
            }
        };
        problems.push(
            Problem::new(self.origin(given), format!("`{missing}` is missing"))
                .hint("set both of cert and key under [tls], or none"),
        );
        None
    }

    fn dev(&self, problems: &mut Vec<Problem>) {
        let listen = self.listen();
        if self.get("dev") == Some(&Value::Switch(true)) && !listen.ip().is_loopback() {
            problems.push(
                Problem::new(
                    Origin::Flag("--dev"),
                    format!("authentication is never off on {listen}, which others can reach"),
                )
                .hint("leave --dev out, or listen on 127.0.0.1"),
            );
        }
    }

    fn admin_key(&self, problems: &mut Vec<Problem>) {
        if let Some(Value::Secret(secret)) = self.get("admin_key")
            && let Err(error) = AdminKey::new(secret.expose())
        {
            problems.push(
                Problem::new(self.origin("admin_key"), format!("`admin_key`: {error}"))
                    .hint("make one with: openssl rand -hex 32"),
            );
        }
    }
}

fn warnings(env: &BTreeMap<String, String>, lookup: &Lookup<'_>, tls: bool, jwt: Option<&JwtSettings>) -> Vec<String> {
    let mut warnings = Vec::new();
    let known: Vec<String> = SETTINGS.iter().filter_map(Setting::env).chain(["TALLY_CONFIG".to_owned()]).collect();
    // A stranger is not an error: Kubernetes, for one, sets TALLY_SERVICE_HOST for a service `tally`.
    for name in env.keys().filter(|name| !known.contains(name)) {
        if let Some(hint) = did_you_mean(name, known.iter().map(String::as_str)) {
            warnings.push(format!("the environment variable {name} is not a setting; {hint}"));
        }
    }
    let listen = lookup.listen();
    if !tls && !listen.ip().is_loopback() {
        warnings.push(format!(
            "{listen} speaks plain HTTP, so keys and tokens can be read on the way; set [tls], or put a TLS proxy in front"
        ));
    }
    if jwt.is_some_and(|jwt| jwt.jwks.starts_with("http://") && !is_loopback_url(&jwt.jwks)) {
        warnings.push("auth.jwt.jwks is plain http, so the keys can be replaced on the way; use https".into());
    }
    if let Some(Value::Sync(super::Sync::Every(window))) = lookup.get("sync") {
        let window = super::duration_text(*window);
        warnings
            .push(format!("sync = \"{window}\": a crash of the machine may lose the last {window} of answered writes"));
    }
    warnings
}

fn is_loopback_url(url: &str) -> bool {
    ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|own| url.starts_with(own))
}
