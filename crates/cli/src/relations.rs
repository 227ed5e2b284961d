//! `like`, `unlike`, `relate`, `count`, `list`, `read`.
//!
//! The order of the words is the path's: relation, object, subject. It reads as "like post:42, as alice".

use clap::Args;
use tally::core::command::{Relate, Unrelate};
use tally::core::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};
use tally::core::meta::Meta;
use tally::core::query::{CountQuery, FeedQuery, ListAnswer, ListItem, ListQuery};
use tally::core::reply::EdgeReply;
use tally::core::rows::Side;
use tally::core::{Name, ObjectId, SubjectId};

use super::failure::Failure;
use super::output::{Json, cell, table, wide_table, yes};
use super::parse;
use super::target::{self, TargetArgs};

pub(super) const RELATE_HELP: &str = "\
Examples:
  tally relate bookmark post:42 alice --meta '{\"memo\":\"read later\"}'
  tally relate reaction post:42 alice --kind love
  tally relate bookmark post:42 alice --undo";

pub(super) const LIST_HELP: &str = "\
Examples:
  tally list like --object post:42               who likes post:42
  tally list bookmark --subject alice --all      everything that alice has bookmarked
  tally list like --object post:42 --json --limit 100";

pub(super) const READ_HELP: &str = "\
Example:
  tally read --objects post:1,post:2 --relations like,bookmark --counters views --viewer alice";

#[derive(Debug, Args)]
pub(super) struct LikeArgs {
    /// What, such as post:42
    #[arg(value_parser = ObjectId::new)]
    object: ObjectId,
    /// Who, such as alice
    #[arg(value_parser = SubjectId::new)]
    subject: SubjectId,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
pub(super) struct RelateArgs {
    /// A declared relation, such as bookmark
    #[arg(value_parser = Name::new)]
    relation: Name,
    /// What, such as post:42
    #[arg(value_parser = ObjectId::new)]
    object: ObjectId,
    /// Who, such as alice
    #[arg(value_parser = SubjectId::new)]
    subject: SubjectId,
    /// Which kind, where the relation has one_of
    #[arg(long, value_parser = Name::new, conflicts_with = "undo")]
    kind: Option<Name>,
    /// What to attach, a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse::meta, conflicts_with = "undo")]
    meta: Option<Meta>,
    /// Make sure that the edge is not there
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
pub(super) struct CountArgs {
    /// A declared relation, such as like
    #[arg(value_parser = Name::new)]
    relation: Name,
    /// What, such as post:42
    #[arg(value_parser = ObjectId::new)]
    object: ObjectId,
    /// Say also whether this subject is among them
    #[arg(long, value_name = "SUBJECT", value_parser = SubjectId::new)]
    viewer: Option<SubjectId>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// A declared relation, such as like
    #[arg(value_parser = Name::new)]
    relation: Name,
    /// Who is related to this object
    #[arg(long, value_parser = ObjectId::new, required_unless_present = "subject", conflicts_with = "subject")]
    object: Option<ObjectId>,
    /// What this subject is related to
    #[arg(long, value_parser = SubjectId::new)]
    subject: Option<SubjectId>,
    /// Items on a page
    #[arg(long, value_name = "N", default_value_t = PAGE_ITEMS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=i64::from(PAGE_ITEMS_MAX)))]
    limit: u32,
    /// Every page, one after the other
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Go on where a page ended
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
pub(super) struct ReadArgs {
    /// Objects, separated by commas or each with its own --objects; an id with a comma needs the API
    #[arg(long, value_delimiter = ',', required = true, value_parser = ObjectId::new)]
    objects: Vec<ObjectId>,
    /// Relations, likewise
    #[arg(long, value_delimiter = ',', required_unless_present = "counters", value_parser = Name::new)]
    relations: Vec<Name>,
    /// Counters, likewise; an object's id is the key
    #[arg(long, value_delimiter = ',', value_parser = Name::new)]
    counters: Vec<Name>,
    /// Say also where this subject is among them
    #[arg(long, value_name = "SUBJECT", value_parser = SubjectId::new)]
    viewer: Option<SubjectId>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn like(args: LikeArgs, on: bool) -> Result<(), Failure> {
    let LikeArgs { object, subject, target } = args;
    let relation = Name::new("like")?;
    edge(RelateArgs { relation, object, subject, kind: None, meta: None, undo: !on, target }).await
}

pub(super) async fn relate(args: RelateArgs) -> Result<(), Failure> {
    edge(args).await
}

async fn edge(args: RelateArgs) -> Result<(), Failure> {
    let RelateArgs { relation, object, subject, kind, meta, undo, target } = args;
    let answer = target::with(&target, async |target| match undo {
        true => target.write(&Unrelate { relation, object, subject }).await,
        false => target.write(&Relate { relation, object, subject, kind, meta }).await,
    });
    let answer = answer.await?;
    answer.show(target.json, |edge: EdgeReply| {
        let meta = edge.meta.flatten().and_then(|meta| serde_json::to_string(&*meta).ok());
        let row = [
            edge.relation.to_string(),
            edge.object.to_string(),
            edge.subject.to_string(),
            yes(edge.active),
            yes(edge.changed),
            edge.count.to_string(),
            cell(edge.kind),
            cell(meta),
            cell(edge.created_at),
        ];
        table(["relation", "object", "subject", "active", "changed", "count", "kind", "meta", "since"], vec![row])
    })
}

pub(super) async fn count(args: CountArgs) -> Result<(), Failure> {
    let CountArgs { relation, object, viewer, target } = args;
    let ask = CountQuery { relation: relation.clone(), object: object.clone(), viewer: viewer.clone() };
    target.read(&ask).await?.show(|count| {
        let kinds: Vec<String> = count.kinds.iter().flatten().map(|(kind, count)| format!("{kind} {count}")).collect();
        let viewer = count.active.map(|active| match &count.kind {
            Some(kind) => kind.to_string(),
            None => yes(active),
        });
        let row = [relation.to_string(), object.to_string(), count.count.to_string(), kinds.join(", "), cell(viewer)];
        table(["relation", "object", "count", "kinds", "viewer"], vec![row])
    })
}

pub(super) async fn list(args: ListArgs) -> Result<(), Failure> {
    let ListArgs { relation, object, subject, limit, all, cursor, target } = args;
    let (side, id, other) = match (object, subject) {
        (Some(object), _) => (Side::Object, object.to_string(), "subject"),
        (None, Some(subject)) => (Side::Subject, subject.to_string(), "object"),
        (None, None) => return Err(Failure::usage("name an --object or a --subject")),
    };
    let limit = if all { PAGE_ITEMS_MAX } else { limit };
    let mut ask = ListQuery { side, relation, id, limit, cursor };
    let answer = target::with(&target, async |target| {
        let first = target.read(&ask).await?;
        if !all {
            return Ok(first);
        }
        let mut whole: ListAnswer = first.read()?;
        while let Some(next) = whole.next_cursor.take() {
            ask.cursor = Some(next);
            let page: ListAnswer = target.read(&ask).await?.read()?;
            whole.items.extend(page.items);
            whole.next_cursor = page.next_cursor;
        }
        Json::of(&whole)
    });
    answer.await?.show(target.json, |page: ListAnswer| {
        let next = page.next_cursor.map(|cursor| format!("\nThere is more: --cursor {cursor}"));
        let rows = page.items.into_iter().map(row_of_list).collect();
        format!("{}{}", table([other, "since", "kind", "meta"], rows), next.unwrap_or_default())
    })
}

fn row_of_list(item: ListItem) -> [String; 4] {
    let meta = item.meta.and_then(|meta| serde_json::to_string(&*meta).ok());
    [cell(item.subject.or(item.object)), item.created_at.to_string(), cell(item.kind), cell(meta)]
}

pub(super) async fn read(args: ReadArgs) -> Result<(), Failure> {
    let ReadArgs { objects, relations, counters, viewer, target } = args;
    let ask = FeedQuery { viewer: viewer.clone(), objects, relations: relations.clone(), counters: counters.clone() };
    target.read(&ask).await?.show(|feed| {
        let mut header = vec!["object".to_owned()];
        for relation in &relations {
            header.push(relation.to_string());
            header.extend(viewer.as_ref().map(|viewer| format!("{viewer}'s {relation}")));
        }
        header.extend(counters.iter().map(ToString::to_string));
        let rows = feed.items.into_iter().map(|item| {
            let mut row = vec![item.object.to_string()];
            for relation in &relations {
                let count = item.relations.get(relation);
                row.push(count.map_or_else(|| "-".into(), |count| count.count.to_string()));
                if viewer.is_some() {
                    row.push(cell(count.and_then(|count| count.active).map(yes)));
                }
            }
            row.extend(counters.iter().map(|counter| cell(item.counters.get(counter))));
            row
        });
        wide_table(header, rows.collect())
    })
}
