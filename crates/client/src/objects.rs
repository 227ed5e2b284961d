//! Objects: what can be related to.

use serde_json::json;
use tally_core::ObjectId;
use tally_core::command::{DeleteObject, PutObject};
use tally_core::meta::Meta;
use tally_core::query::ObjectQuery;
use tally_core::reply::{JobReply, ObjectReply};

use crate::request::requests;
use crate::{Call, Client};

impl Client {
    /// Registers an object, or changes what it is registered with.
    pub fn put_object(&self, object: &ObjectId, status: Option<&str>, attributes: &Meta) -> Call<ObjectReply> {
        let body = json!({"status": status, "attributes": attributes});
        self.put(&["v1", "objects", object.as_str()]).json(&body)
    }

    /// What an object is registered with.
    pub fn object(&self, object: &ObjectId) -> Call<ObjectReply> {
        self.get(&["v1", "objects", object.as_str()])
    }

    /// Deletes an object; a job removes its edges.
    pub fn delete_object(&self, object: &ObjectId) -> Call<JobReply> {
        self.delete(&["v1", "objects", object.as_str()])
    }
}

requests! {
    PutObject => ObjectReply: |ask, client| client.put_object(&ask.object, ask.status.as_deref(), &ask.attributes);
    DeleteObject => JobReply: |ask, client| client.delete_object(&ask.object);
    ObjectQuery => ObjectReply: |ask, client| client.object(&ask.object);
}
