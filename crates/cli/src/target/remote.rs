//! A running server, through its HTTP client: what each question is there.

use tally::VerifyReport;
use tally::core::room::{Join, TicketReply};
use tally::core::rows::Role;
use tally_client::{BackupMade, Call, Client, DEFAULT_URL, Request};

use super::TargetArgs;
use crate::failure::Failure;
use crate::output::Json;

const CREATED: u16 = 201;

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
    pub(crate) async fn ask<R: Request>(&self, request: &R) -> Result<Json, Failure> {
        text(self.client.ask(request)).await
    }

    /// Takes a ticket of a room, and says whether it is a new one.
    pub(crate) async fn join(&self, join: &Join) -> Result<(TicketReply, bool), Failure> {
        let answer = self.client.ask(join).answer().await?;
        Ok((answer.read()?, answer.status() == CREATED))
    }

    /// Makes an API key.
    pub(crate) async fn create_key(&self, role: Role, name: &str) -> Result<Json, Failure> {
        text(self.client.create_key(role, name)).await
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
