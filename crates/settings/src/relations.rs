//! `[relations.NAME]`: what the file says about each relation, checked.

use std::collections::BTreeMap;

use tally_core::catalog::{Catalog, Per, ReadPolicy, RelationDef};
use tally_core::id::Name;
use tally_core::limits::KINDS_MAX;
use tally_core::meta::{MetaShape, MetaType};
use toml::Spanned;
use toml::de::DeValue;

use super::declared::{Limits, Reader, Whose, Written};
use super::file::{raw, value_text};
use super::problem::{Problem, Source, did_you_mean};

/// The keys of a relation, with what each is for; `config defaults` prints them.
pub(crate) const KEYS: &[(&str, &str, &str)] = &[
    (
        "read",
        "\"public\"",
        "\"public\": every signed-in user reads edges and lists; \"own\": users read their own, and\ncounts; \"none\": only API keys read. Default: \"own\", and \"public\" for the built-in `like`.",
    ),
    ("requires_object", "true", "Only objects that were registered with PUT /v1/objects/… can be related to."),
    ("limit_per_subject", "100", "At most this many edges per subject, exactly, however many requests race."),
    (
        "one_of",
        "[\"like\", \"love\", \"wow\"]",
        "Kinds of which an edge has one at a time; choosing another replaces it.",
    ),
    (
        "meta",
        "{ memo = \"string(500)\", notify = \"bool!\" }",
        "The fields of `meta`: string(N) in characters, string, int, float, bool, timestamp (RFC 3339). Each\nmay be left out unless its type ends in `!`. Without a shape, any small object is taken.",
    ),
    ("mutable_meta", "true", "Whether PUT may replace the meta of an edge that exists."),
    ("allow_self", "false", "Whether a subject may relate to an object that it owns. Default: true."),
    (
        "rate_limit",
        "\"30/min per subject\"",
        "A limit that every change passes first, decided with it: a rate, or a declared limit's name, and\n\"per subject\" (the default), \"per object\" or \"in all\".",
    ),
    (
        "when.relate",
        "\"object.status == 'published'\"",
        "Conditions (CEL) over auth, object, subject, meta and now. A condition that fails or errors denies.",
    ),
    ("when.unrelate", "\"true\"", ""),
    ("when.read", "\"auth.claims.email_verified == true\"", ""),
];

/// One relation of the file.
#[derive(Debug, Clone)]
pub struct Relation {
    /// What it means; what the file leaves out is as in the built-in relation of that name, if any.
    pub definition: RelationDef,
    /// Its keys as written, with their places; for `config show`.
    pub written: Written,
}

const WHOSE: Whose = &[("subject", Per::Subject), ("object", Per::Object)];

/// Reads the table `relations`.
pub(crate) fn read(
    source: &Source<'_>,
    limits: &Limits,
    value: &Spanned<DeValue<'_>>,
) -> (Vec<Relation>, Vec<Problem>) {
    let mut reader = Reader { source, limits, problems: Vec::new() };
    let mut relations = Vec::new();
    if let Some(table) = reader.table(value, "relations", "write [relations.NAME] with its keys below") {
        let built_in = Catalog::default();
        for (key, value) in table {
            relations.extend(reader.relation(&built_in, key.span().start, key.get_ref(), value));
        }
    }
    (relations, reader.problems)
}

impl Reader<'_> {
    fn relation(
        &mut self,
        built_in: &Catalog,
        at: usize,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Relation> {
        let table = self.table(value, name, "write [relations.NAME] with its keys below");
        let checked = self.name(at, name, "a relation")?;
        let mut definition = match built_in.relation(&checked) {
            Ok(known) => RelationDef::clone(known),
            Err(_) => RelationDef::new(checked, ReadPolicy::Own),
        };
        let mut written = Vec::new();
        for (key, value) in table? {
            let key_name: &str = key.get_ref();
            let origin = self.source.origin(key.span().start);
            if key_name == "when" {
                self.conditions(&mut definition, value, &mut written);
                continue;
            }
            written.push((key_name.to_owned(), value_text(value.get_ref()), origin));
            self.key(&mut definition, key_name, key.span().start, value);
        }
        Some(Relation { definition, written })
    }

    fn key(&mut self, def: &mut RelationDef, key: &str, at: usize, value: &Spanned<DeValue<'_>>) {
        match key {
            "read" => def.read = self.read_policy(value).unwrap_or(def.read),
            "requires_object" => {
                def.requires_object = self.switch(key, value).unwrap_or(def.requires_object);
            }
            "mutable_meta" => def.mutable_meta = self.switch(key, value).unwrap_or(def.mutable_meta),
            "allow_self" => def.allow_self = self.switch(key, value).unwrap_or(def.allow_self),
            "limit_per_subject" => def.limit_per_subject = self.limit_per_subject(value),
            "one_of" => def.one_of = self.kinds(value),
            "meta" => def.meta = self.meta(value),
            "rate_limit" => def.rate_limit = self.rate_limit(&format!("relations.{}", def.name), WHOSE, value),
            _ => {
                let names = KEYS.iter().map(|(name, ..)| name.split('.').next().unwrap_or(name));
                let problem = Problem::new(self.source.origin(at), format!("unknown key `{key}`"));
                let hint = did_you_mean(key, names).unwrap_or_else(|| {
                    "a relation has read, requires_object, limit_per_subject, one_of, meta, mutable_meta, allow_self, rate_limit and when".into()
                });
                self.problems.push(problem.hint(hint));
            }
        }
    }

    fn read_policy(&mut self, value: &Spanned<DeValue<'_>>) -> Option<ReadPolicy> {
        const POLICIES: &[(&str, ReadPolicy)] =
            &[("public", ReadPolicy::Public), ("own", ReadPolicy::Own), ("none", ReadPolicy::None)];
        self.choice("read", value, "policy", POLICIES)
    }

    fn limit_per_subject(&mut self, value: &Spanned<DeValue<'_>>) -> Option<u32> {
        let number =
            value.get_ref().as_integer().and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok());
        match number.map(u32::try_from) {
            Some(Ok(limit)) if limit > 0 => return Some(limit),
            Some(Ok(_)) => self.problem(
                value.span().start,
                "`limit_per_subject`: 0 would refuse every edge",
                "leave it out for no limit",
            ),
            _ => self.problem(
                value.span().start,
                "`limit_per_subject` is not a number that a limit can be",
                format!("write a whole number from 1 to {}", u32::MAX),
            ),
        }
        None
    }

    fn kinds(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<Name> {
        let mut kinds = Vec::new();
        let items = value.get_ref().as_array();
        let count = items.map_or(0, |items| items.len());
        if !(1..=KINDS_MAX).contains(&count) {
            self.problem(
                value.span().start,
                format!("`one_of` needs a list of 1 to {KINDS_MAX} kinds"),
                "write [\"like\", \"love\"]",
            );
        }
        for item in items.into_iter().flat_map(|items| items.iter()) {
            let text = item.get_ref().as_str().unwrap_or_default();
            match Name::new(text) {
                Err(_) => self.problem(
                    item.span().start,
                    format!("`one_of`: `{}` cannot be the name of a kind", value_text(item.get_ref())),
                    "use 1 to 64 of a-z, 0-9, - and _, beginning with a letter, in quotes",
                ),
                Ok(kind) if kinds.contains(&kind) => {
                    self.problem(item.span().start, format!("`one_of` names `{kind}` twice"), "remove one of them")
                }
                Ok(kind) => kinds.push(kind),
            }
        }
        kinds
    }

    fn meta(&mut self, value: &Spanned<DeValue<'_>>) -> Option<MetaShape> {
        let table = self.table(value, "meta", "write { memo = \"string(500)\" }")?;
        let mut fields = BTreeMap::new();
        for (name, value) in table {
            match value.get_ref().as_str().map(MetaType::parse) {
                Some(Ok(kind)) => {
                    fields.insert(name.get_ref().to_string(), kind);
                }
                Some(Err(error)) => self.problem(
                    value.span().start,
                    format!("`meta.{}`: {error}", name.get_ref()),
                    "the types are string(N), string, int, float, bool and timestamp",
                ),
                None => self.problem(
                    value.span().start,
                    format!("`meta.{}`: {} where a type belongs", name.get_ref(), raw(value.get_ref()).type_name()),
                    "write the type in quotes, such as \"string(500)\" or \"bool\"",
                ),
            }
        }
        Some(MetaShape(fields))
    }

    fn conditions(&mut self, def: &mut RelationDef, value: &Spanned<DeValue<'_>>, written: &mut Written) {
        let Some(table) = self.table(value, "when", "write when.relate = \"…\"") else { return };
        for (key, value) in table {
            let name: &str = key.get_ref();
            let slot = match name {
                "relate" => &mut def.when.relate,
                "unrelate" => &mut def.when.unrelate,
                "read" => &mut def.when.read,
                _ => {
                    let hint = did_you_mean(name, ["relate", "unrelate", "read"])
                        .unwrap_or_else(|| "a condition is for relate, unrelate or read".into());
                    self.problem(key.span().start, format!("unknown key `when.{name}`"), hint);
                    continue;
                }
            };
            let origin = self.source.origin(key.span().start);
            written.push((format!("when.{name}"), value_text(value.get_ref()), origin));
            *slot = self.condition(&format!("when.{name}"), value);
        }
    }
}
