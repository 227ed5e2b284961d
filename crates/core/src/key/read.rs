//! Reading API keys.

use serde::{Deserialize, Serialize};

use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::range::Range;
use crate::read::{Halt, Sight};
use crate::rows::{ApiKey, Key, Role, Row};
use crate::time::Timestamp;

/// API keys shown at once.
const API_KEYS_MAX: usize = 10_000;

/// Every API key, without secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKeysQuery;

questions!(Key: ApiKeys(ApiKeysQuery) -> ApiKeysAnswer; with ApiKeyItem);

impl Question for ApiKeysQuery {
    type Answer = ApiKeysAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ManageKeys));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<ApiKeysAnswer, Halt> {
        let page = sight.scan(|| Range::API_KEYS, API_KEYS_MAX)?;
        let shown = |(key, row): &(Key, Row)| {
            let (Key::ApiKey(id), Row::ApiKey(key)) = (key, row) else { return None };
            let ApiKey { name, role, created_at, revoked_at, hash: _ } = key.clone();
            Some(ApiKeyItem { id: id.clone(), name, role, created_at, revoked_at })
        };
        Ok(ApiKeysAnswer { items: page.items.iter().filter_map(shown).collect() })
    }
}

/// Every API key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeysAnswer {
    /// The keys, revoked ones too.
    pub items: Vec<ApiKeyItem>,
}

/// One API key, without its secret.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeyItem {
    /// Its public part.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// `read`, `service` or `admin`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Role,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it stopped working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub revoked_at: Option<Timestamp>,
}
