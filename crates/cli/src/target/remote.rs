//! A running server, through its HTTP client: what each question is there.

use tally::VerifyReport;
use tally::core::command::Command;
use tally::core::query::CountingQuery;
use tally::core::rows::Side;
use tally::core::{ObjectId, SubjectId};
use tally_client::{BackupMade, BoardPage, Call, Client, DEFAULT_URL, Page};

use super::{Ask, TargetArgs};
use crate::failure::Failure;
use crate::output::Json;

/// A server and who asks it.
pub(crate) struct Remote {
    client: Client,
}

impl Remote {
    /// Finds out which server, and with which key. Nothing is sent yet.
    pub(crate) fn new(args: &TargetArgs) -> Result<Self, Failure> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = args.url.clone().or_else(|| set("TALLY_URL")).unwrap_or_else(|| DEFAULT_URL.into());
        let mut builder = Client::builder(url);
        if let Some(key) = args.key.clone().or_else(|| set("TALLY_KEY")).or_else(|| set("TALLY_ADMIN_KEY")) {
            builder = builder.key(key);
        }
        if let Some(ca) = args.ca.clone().or_else(|| set("TALLY_CA").map(Into::into)) {
            builder = builder.ca(ca);
        }
        Ok(Self { client: builder.build()? })
    }

    /// The client underneath.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Asks for one thing.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Json, Failure> {
        let client = &self.client;
        match ask {
            Ask::Relate { relation, object, subject, kind, meta } => {
                text(client.relate(relation, object, subject, kind.as_ref(), meta.as_ref())).await
            }
            Ask::Unrelate { relation, object, subject } => text(client.unrelate(relation, object, subject)).await,
            Ask::Count { relation, object, viewer } => text(client.count(relation, object, viewer.as_ref())).await,
            Ask::List { side, relation, id, limit, cursor } => {
                let page = Page { limit: Some(*limit), cursor: cursor.clone() };
                text(match side {
                    Side::Object => client.subjects(relation, &ObjectId::new(id.as_str())?, &page),
                    Side::Subject => client.objects(relation, &SubjectId::new(id.as_str())?, &page),
                })
                .await
            }
            Ask::Feed { viewer, objects, relations, counters } => {
                text(client.read(objects, relations, counters, viewer.as_ref())).await
            }
            Ask::Change(command) => self.change(command).await,
            Ask::Counting(query) => self.counting(query).await,
            Ask::CreateKey { role, name } => text(client.create_key(*role, name)).await,
            Ask::Keys => text(client.keys()).await,
            Ask::RevokeKey { id } => text(client.revoke_key(id)).await,
        }
    }

    /// A change of what is counted.
    async fn change(&self, command: &Command) -> Result<Json, Failure> {
        let client = &self.client;
        match command {
            Command::Count { counter, key, by } => text(client.add(counter, key, *by)).await,
            Command::Observe { unique, key, members } => text(client.observe(unique, key, members)).await,
            Command::Attend { sheet, day, subject, present } => {
                text(client.attend(sheet, *day, subject, *present)).await
            }
            Command::Score { board, member, change } => text(client.score(board, member, *change)).await,
            Command::Take { limit, key, cost } => text(client.take(limit, key, *cost)).await,
            other => Err(Failure::new(format!("there is no call for {other:?}"))),
        }
    }

    /// A question about what is counted.
    async fn counting(&self, query: &CountingQuery) -> Result<Json, Failure> {
        let client = &self.client;
        match query {
            CountingQuery::Counter { counter, key } => text(client.counter(counter, key)).await,
            CountingQuery::Unique { unique, keys } => text(client.unique(unique, keys)).await,
            CountingQuery::Day { sheet, day } => text(client.day(sheet, *day)).await,
            CountingQuery::Days { sheet, days, matching } => text(client.days(sheet, days, *matching)).await,
            CountingQuery::Presence { sheet, day, subject } => text(client.presence(sheet, *day, subject)).await,
            CountingQuery::SubjectDays { sheet, subject, from, to } => {
                text(client.subject_days(sheet, subject, *from, *to)).await
            }
            CountingQuery::Board { board, season, rank, limit, cursor } => {
                let page = BoardPage { limit: Some(*limit), rank: *rank, season: *season, cursor: cursor.clone() };
                text(client.board(board, &page)).await
            }
            CountingQuery::Standing { board, season, member, around } => {
                text(client.standing(board, member, *around, *season)).await
            }
            CountingQuery::Seasons { board } => text(client.seasons(board)).await,
            CountingQuery::Limit { limit, key } => text(client.limit(limit, key)).await,
        }
    }

    /// Recounts everything, with progress.
    pub(crate) async fn verify(&self, repair: bool, progress: impl FnMut(u64)) -> Result<VerifyReport, Failure> {
        Ok(self.client.verify(repair, progress).await?)
    }

    /// Has the server write a copy below its backup folder.
    pub(crate) async fn backup(&self, name: Option<&str>) -> Result<BackupMade, Failure> {
        if name.is_some_and(|name| name.contains('/')) {
            return Err(Failure::usage(
                "a server writes below its own backup folder, so DEST is a name without `/`; a path needs --store",
            ));
        }
        Ok(self.client.backup(name).await?)
    }
}

/// The answer as the API writes it.
async fn text<T>(call: Call<T>) -> Result<Json, Failure> {
    Ok(Json::new(call.answer().await?.into_text()))
}
