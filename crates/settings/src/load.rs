//! Putting the settings together from flags, environment, file and defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tally_core::catalog::nearest;

use super::Settings;
use super::args::ServeArgs;
use super::build::Build;
use super::file::{self, Parsed};
use super::judge::Judge;
use super::problem::{ConfigErrors, Origin, Problem};
use super::schema::{Reach, SETTINGS, Setting};
use super::show::Effective;
use super::value::{Raw, Value};

/// The file that is read when nobody names one.
const DEFAULT_FILE: &str = "tally.toml";

/// Reads flags, environment and file.
pub fn load(args: &ServeArgs, judge: &dyn Judge) -> Result<Settings, ConfigErrors> {
    // Only our own variables, so that a neighbour's that is not UTF-8 is not our problem.
    let env = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("TALLY_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        })
        .collect();
    load_from(args, &env, judge)
}

/// Reads flags and file, with this environment instead of the process's own.
pub fn load_from(
    args: &ServeArgs,
    env: &BTreeMap<String, String>,
    judge: &dyn Judge,
) -> Result<Settings, ConfigErrors> {
    let (file, parsed) = read_file(args, env, judge);
    assemble(args, env, file, parsed, judge)
}

/// Every problem of one file, on its own: without flags and environment.
pub fn check(path: &Path, judge: &dyn Judge) -> Vec<Problem> {
    let args = ServeArgs { config: Some(path.to_path_buf()), ..ServeArgs::default() };
    load_from(&args, &BTreeMap::new(), judge).err().map_or_else(Vec::new, |errors| errors.0)
}

fn read_file(args: &ServeArgs, env: &BTreeMap<String, String>, judge: &dyn Judge) -> (Option<PathBuf>, Parsed) {
    let from_env = env.get("TALLY_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let named = args
        .config
        .clone()
        .map(|path| (path, Origin::Flag("--config")))
        .or_else(|| from_env.map(|path| (path, Origin::Env("TALLY_CONFIG".into()))));
    let path = named.as_ref().map_or_else(|| PathBuf::from(DEFAULT_FILE), |(path, _)| path.clone());
    let what = match std::fs::read(&path).map(String::from_utf8) {
        Ok(Ok(text)) => {
            let parsed = file::parse(&path, &text, judge);
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
    judge: &dyn Judge,
) -> Result<Settings, ConfigErrors> {
    let Parsed { values, relations, counting, mut problems } = parsed;
    let resolve = |setting| resolve(setting, args, env, &values, judge, &mut problems);
    let effective: Vec<Effective> = SETTINGS.iter().map(resolve).collect();
    let build = Build { effective, file, relations, counting, problems, judge };
    let mut settings = build.settings()?;
    settings.warnings.extend(strangers(env));
    Ok(settings)
}

/// The value of one setting: the first of flag, environment, file and default that has one. A wrong
/// value is a problem even where a stronger source overrides it.
fn resolve(
    setting: &'static Setting,
    args: &ServeArgs,
    env: &BTreeMap<String, String>,
    file: &BTreeMap<&'static str, (Value, Origin)>,
    judge: &dyn Judge,
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
        match setting.kind.accept(Raw::Word(word), judge) {
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

/// Variables that look like a mistyped one of ours. A stranger is not an error: Kubernetes, for one, sets
/// TALLY_PORT and TALLY_SERVICE_HOST for a service `tally`.
fn strangers(env: &BTreeMap<String, String>) -> Vec<String> {
    let known: Vec<String> = SETTINGS.iter().filter_map(Setting::env).chain(["TALLY_CONFIG".to_owned()]).collect();
    // Without the prefix that all share, which would make everything look alike.
    let short = |name: &'_ str| name.trim_start_matches("TALLY_").to_owned();
    let names: Vec<String> = known.iter().map(|name| short(name)).collect();
    env.keys()
        .filter(|name| !known.contains(name))
        .filter_map(|name| {
            let near = nearest(&short(name), names.iter().map(String::as_str))?;
            Some(format!("the environment variable {name} is not a setting; did you mean `TALLY_{near}`?"))
        })
        .collect()
}
