//! From resolved values to [`Settings`]: what must be right together is checked here.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::judge::Judge;
use super::problem::{ConfigErrors, Origin, Problem};
use super::show::Effective;
use super::value::Value;
use super::{
    AdmissionSettings, Bounds, Cors, Counted, EmbeddedSettings, JwtSettings, LogSettings, Network, Relation,
    Remembered, Settings, Sync, TlsSettings,
};

/// A shorter admin key works, with a warning: it can be guessed.
const ADMIN_KEY_CHARS_ADVISED: usize = 16;

/// Every setting with its value, and the problems so far.
pub(crate) struct Build<'a> {
    pub(crate) effective: Vec<Effective>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) counting: Vec<Counted>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) judge: &'a dyn Judge,
}

impl Build<'_> {
    /// The settings, or all of their problems in the order of the file.
    pub(crate) fn settings(mut self) -> Result<Settings, ConfigErrors> {
        let jwt = self.jwt();
        let tls = self.tls();
        let cors = self.cors();
        let trusted_proxies = self.trusted_proxies();
        self.dev();
        self.admin_key();
        if !self.problems.is_empty() {
            self.problems.sort_by(|a, b| a.origin.cmp(&b.origin));
            return Err(ConfigErrors(self.problems));
        }
        Ok(Settings {
            listen: self.listen(),
            store: match self.get("store") {
                Some(Value::Store { url, .. }) => url.clone(),
                _ => String::new(),
            },
            sync: match self.get("sync") {
                Some(Value::Sync(sync)) => *sync,
                _ => Sync::Always,
            },
            admin_key: match self.get("admin_key") {
                Some(Value::Secret(secret)) => Some(secret.clone()),
                _ => None,
            },
            dev: self.get("dev") == Some(&Value::Switch(true)),
            warnings: self.warnings(tls.is_some(), jwt.as_ref()),
            jwt,
            cors,
            trusted_proxies,
            admission: AdmissionSettings {
                signing_key_file: self.file_named("admission.signing_key_file"),
                seal_key_file: self.file_named("admission.seal_key_file"),
            },
            tls,
            bounds: self.bounds(),
            log: LogSettings { json: self.text("log.format") == "json", level: self.text("log.level") },
            idempotency_ttl: match self.get("idempotency.ttl") {
                Some(Value::Duration(ttl)) => *ttl,
                _ => Duration::ZERO,
            },
            remembered: Remembered {
                user_bytes_max: self.number("idempotency.user_bytes_max"),
                key_bytes_max: self.number("idempotency.key_bytes_max"),
            },
            jobs_keep: match self.get("jobs.keep") {
                Some(Value::Duration(keep)) => *keep,
                _ => Duration::ZERO,
            },
            backup_folder: self.text("backup.folder").into(),
            embedded: EmbeddedSettings {
                cache_bytes: self.number("embedded.cache_bytes"),
                overlay_bytes_max: usize::try_from(self.number("embedded.overlay_bytes_max")).unwrap_or(usize::MAX),
            },
            relations: self.relations,
            counting: self.counting,
            file: self.file,
            effective: self.effective,
        })
    }

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

    fn file_named(&self, path: &str) -> Option<PathBuf> {
        self.get(path).map(|_| self.text(path).into())
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

    fn bounds(&self) -> Bounds {
        let size = |name| usize::try_from(self.number(name)).unwrap_or(usize::MAX);
        let time = |name| Duration::from_millis(self.number(name));
        Bounds {
            body_bytes_max: size("bounds.body_bytes_max"),
            batch_bytes_max: size("bounds.batch_bytes_max"),
            batch_commands_max: size("bounds.batch_commands_max"),
            header_bytes_max: size("bounds.header_bytes_max"),
            unfinished_bytes_max: size("bounds.unfinished_bytes_max"),
            connections_max: size("bounds.connections_max"),
            request_timeout: time("bounds.request_timeout_ms"),
            header_read_timeout: time("bounds.header_read_timeout_ms"),
            idle_timeout: time("bounds.idle_timeout_ms"),
            shutdown_grace: time("bounds.shutdown_grace_ms"),
            queue_depth_max: size("bounds.queue_depth_max"),
            subscriptions_max: size("bounds.subscriptions_max"),
        }
    }

    /// Issuers share key sets (every Firebase project has the same one), so a token is only ours if
    /// issuer and audience say so: neither can be left out.
    fn jwt(&mut self) -> Option<JwtSettings> {
        const NEEDED: [&str; 3] = ["auth.jwt.jwks", "auth.jwt.issuer", "auth.jwt.audience"];
        let given = NEEDED.iter().find(|path| self.get(path).is_some())?;
        let missing: Vec<_> = NEEDED.iter().filter(|path| self.get(path).is_none()).collect();
        for path in missing.iter().filter(|path| !self.is_reported(path)).collect::<Vec<_>>() {
            let hint = "set all of jwks, issuer and audience under [auth.jwt], or none";
            self.problem(given, format!("`{path}` is missing"), hint);
        }
        let jwks = self.text("auth.jwt.jwks");
        if !jwks.is_empty()
            && !is_url(&jwks)
            && let Err(error) = self.judge.key_set(Path::new(&jwks))
        {
            let hint = "name a file with the issuer's JSON Web Key Set, or its https:// URL";
            self.problem("auth.jwt.jwks", format!("`auth.jwt.jwks`: {error}"), hint);
        }
        missing.is_empty().then(|| JwtSettings {
            jwks,
            issuers: self.texts("auth.jwt.issuer"),
            audiences: self.texts("auth.jwt.audience"),
            subject_claim: self.text("auth.jwt.subject_claim"),
        })
    }

    fn tls(&mut self) -> Option<TlsSettings> {
        let (given, missing) = match (self.get("tls.cert"), self.get("tls.key")) {
            (None, None) => return None,
            (Some(_), None) => ("tls.cert", "tls.key"),
            (None, Some(_)) => ("tls.key", "tls.cert"),
            (Some(_), Some(_)) => {
                let tls = TlsSettings { cert: self.text("tls.cert").into(), key: self.text("tls.key").into() };
                if let Err(refusal) = self.judge.tls(&tls) {
                    let path = if refusal.is_about_key { "tls.key" } else { "tls.cert" };
                    self.problem(path, format!("`{path}`: {}", refusal.what), refusal.hint);
                }
                return Some(tls);
            }
        };
        if !self.is_reported(missing) {
            self.problem(given, format!("`{missing}` is missing"), "set both of cert and key under [tls], or none");
        }
        None
    }

    fn cors(&mut self) -> Option<Cors> {
        const PATH: &str = "http.cors.origins";
        let credentials = self.get("http.cors.credentials") == Some(&Value::Switch(true));
        let origins = self.texts(PATH);
        for origin in origins.iter().filter(|origin| *origin != "*" && !is_origin(origin)) {
            let hint = "write it as browsers do: a scheme, a host, perhaps a port, such as \"https://app.example.com\"";
            self.problem(PATH, format!("`{PATH}`: `{origin}` is not an origin"), hint);
        }
        if credentials && origins.iter().any(|origin| origin == "*") {
            let what = "`http.cors.credentials`: cookies of every page are nobody's to take".to_owned();
            self.problem("http.cors.credentials", what, "name the origins, or leave credentials out");
        }
        (!origins.is_empty()).then_some(Cors { origins, credentials })
    }

    fn trusted_proxies(&mut self) -> Vec<Network> {
        const PATH: &str = "http.trusted_proxies";
        let mut networks = Vec::new();
        for text in self.texts(PATH) {
            match text.parse() {
                Ok(network) => networks.push(network),
                Err(()) => {
                    let hint = "write an address, or a network such as \"10.0.0.0/8\"";
                    self.problem(PATH, format!("`{PATH}`: `{text}` is not a network"), hint);
                }
            }
        }
        networks
    }

    fn dev(&mut self) {
        let listen = self.listen();
        if self.get("dev") == Some(&Value::Switch(true)) && !listen.ip().is_loopback() {
            let what = format!("authentication is never off on {listen}, which others can reach");
            self.problem("dev", what, "leave --dev out, or listen on 127.0.0.1");
        }
    }

    fn admin_key(&mut self) {
        let unusable = match self.get("admin_key") {
            Some(Value::Secret(secret)) => self.judge.admin_key(secret.expose()).err(),
            _ => None,
        };
        if let Some(error) = unusable {
            self.problem("admin_key", format!("`admin_key`: {error}"), "make one with: openssl rand -hex 32");
        }
    }

    /// Adds a problem where a setting was set.
    fn problem(&mut self, path: &str, what: String, hint: &str) {
        let problem = Problem::new(self.origin(path), what).hint(hint);
        self.problems.push(problem);
    }

    /// Whether a setting has no value because it was wrong, and that was said already.
    fn is_reported(&self, path: &str) -> bool {
        let about = format!("`{path}`:");
        self.problems.iter().any(|problem| problem.what.starts_with(&about))
    }

    /// What is allowed but probably not meant.
    fn warnings(&self, tls: bool, jwt: Option<&JwtSettings>) -> Vec<String> {
        let mut warnings = Vec::new();
        let listen = self.listen();
        if !tls && !listen.ip().is_loopback() {
            warnings.push(format!(
                "{listen} speaks plain HTTP, so keys and tokens can be read on the way; set [tls], or put a TLS proxy in front"
            ));
        }
        let (unfinished, batch) = ("bounds.unfinished_bytes_max", "bounds.batch_bytes_max");
        if self.number(unfinished) < self.number(batch).max(self.number("bounds.body_bytes_max")) {
            warnings.push(format!("{unfinished} is less than one body may have, so large ones are always refused"));
        }
        if jwt.is_some_and(|jwt| jwt.jwks.starts_with("http://") && !is_loopback_url(&jwt.jwks)) {
            warnings.push("auth.jwt.jwks is plain http, so the keys can be replaced on the way; use https".into());
        }
        if let Some(Value::Secret(key)) = self.get("admin_key")
            && key.expose().len() < ADMIN_KEY_CHARS_ADVISED
        {
            warnings.push(format!(
                "TALLY_ADMIN_KEY has fewer than {ADMIN_KEY_CHARS_ADVISED} characters, so it can be guessed; make one with: openssl rand -hex 32"
            ));
        }
        if let Some(Value::Sync(Sync::Every(window))) = self.get("sync") {
            let window = super::duration_text(*window);
            warnings.push(format!(
                "sync = \"{window}\": a crash of the machine may lose the last {window} of answered writes"
            ));
        }
        warnings
    }
}

/// A scheme, a host in lower case, perhaps a port, and nothing more: as browsers write it.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let is_scheme = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    let is_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:[]".contains(&byte);
    !scheme.is_empty() && scheme.bytes().all(is_scheme) && !host.is_empty() && host.bytes().all(is_host)
}

/// Whether a `jwks` setting is a URL rather than a file.
pub fn is_url(jwks: &str) -> bool {
    jwks.starts_with("https://") || jwks.starts_with("http://")
}

fn is_loopback_url(url: &str) -> bool {
    ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|own| url.starts_with(own))
}
