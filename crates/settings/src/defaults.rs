//! `config defaults`: the commented file that `docs/tally.toml` is a copy of.

use super::relations::KEYS;
use super::schema::{Preset, Reach, SECTIONS, SETTINGS};
use super::tables::TABLES;

const HEAD: &str = "\
# Tally's settings, with their defaults. Uncomment what you change.
#
# Flags win over the environment, which wins over this file, which wins over the defaults. A setting's
# environment variable is TALLY_ and its path: TALLY_LISTEN, TALLY_BOUNDS_BODY_BYTES_MAX. Relative paths
# start at the folder that the server was started in. Durations are a number with ms, s, m, h or d.
# `tally config check` explains mistakes, `tally config show` says what is in force and why.
";

const RELATIONS_HEAD: &str = "\
# Relations. Without any here, `like` (read = \"public\"), `bookmark` and `favorite` (read = \"own\") exist;
# those three stay, and what stands here adds to them or changes them. A name is 1 to 64 of a-z, 0-9, -
# and _, beginning with a letter.
#
# [relations.reaction]
";

/// The default settings file: everything that can be set, commented out, with what it is for.
pub fn render_defaults() -> String {
    let mut out = HEAD.to_owned();
    for (section, doc) in SECTIONS {
        out.push('\n');
        if !section.is_empty() {
            comment(&mut out, doc);
            out.push_str(&format!("[{section}]\n"));
        }
        let mut first = true;
        for setting in SETTINGS.iter().filter(|setting| setting.section() == *section) {
            if !first {
                out.push('\n');
            }
            first = false;
            comment(&mut out, setting.doc);
            if setting.in_file() {
                let sample = setting.sample().map(|value| value.to_string()).unwrap_or_default();
                let example = match setting.default {
                    Preset::Is(_) => "",
                    Preset::Absent(_) => "  # an example; not set by default",
                };
                out.push_str(&format!("# {} = {sample}{example}\n", setting.key()));
            } else if setting.reach == Reach::EnvOnly {
                out.push_str(&format!("#   {}=…\n", setting.env().unwrap_or_default()));
            }
        }
    }
    out.push('\n');
    out.push_str(RELATIONS_HEAD);
    keys(&mut out, KEYS);
    for table in TABLES {
        out.push('\n');
        comment(&mut out, table.doc);
        out.push_str(&format!("#\n# [{}.{}]\n", table.name, table.example));
        keys(&mut out, table.keys);
    }
    out
}

fn keys(out: &mut String, keys: &[(&str, &str, &str)]) {
    for (key, sample, doc) in keys {
        comment(out, doc);
        out.push_str(&format!("# {key} = {sample}\n"));
    }
}

fn comment(out: &mut String, doc: &str) {
    for line in doc.lines() {
        out.push_str("# ");
        out.push_str(line);
        out.push('\n');
    }
}
