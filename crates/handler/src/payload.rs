//! From the application's types to bytes and back.

use bytes::Bytes;
use poolwright_core::{BoxError, TypeName};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A payload with one task type: what most tasks are. JSON; other encodings override both methods.
///
/// `#[derive(TaskType)] #[task("image:resize")]` writes the impl.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no task type",
    label = "needs `TaskType`",
    note = "derive it: `#[derive(Serialize, Deserialize, TaskType)] #[task(\"some:name\")]`",
    note = "or write `impl TaskType for {Self} {{ const NAME: &'static str = \"some:name\"; }}`"
)]
pub trait TaskType: Serialize + DeserializeOwned + Send + 'static {
    /// The name in `queues.toml`, such as `document:process`.
    const NAME: &'static str;

    /// To bytes.
    ///
    /// # Errors
    /// Whatever the encoding refuses.
    fn encode(&self) -> Result<Bytes, BoxError> {
        Ok(serde_json::to_vec(self)?.into())
    }

    /// From bytes. An empty payload reads as JSON `null`, so that a unit struct takes it.
    ///
    /// # Errors
    /// Whatever the encoding refuses.
    fn decode(bytes: &[u8]) -> Result<Self, BoxError> {
        let text = if bytes.is_empty() { b"null" } else { bytes };
        Ok(serde_json::from_slice(text)?)
    }
}

/// A payload of one or several task types: a [`TaskType`], or an enum with a type for each variant
/// (`#[derive(Tasks)]`). Implement it by hand for payloads that serde does not know.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no task payload",
    label = "needs `TaskType` (a struct) or `Tasks` (an enum)",
    note = "derive it: `#[derive(Serialize, Deserialize, TaskType)] #[task(\"some:name\")]`"
)]
pub trait Payload: Send + Sized + 'static {
    /// All its type names.
    const NAMES: &'static [&'static str];

    /// The type name of this value: one of [`Payload::NAMES`].
    fn name(&self) -> &'static str;

    /// To bytes.
    ///
    /// # Errors
    /// Whatever the encoding refuses.
    fn to_bytes(&self) -> Result<Bytes, BoxError>;

    /// From bytes of a task of the type `name`.
    ///
    /// # Errors
    /// Whatever the encoding refuses.
    fn from_bytes(name: &str, bytes: &Bytes) -> Result<Self, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<T: TaskType> Payload for T {
    const NAMES: &'static [&'static str] = &[T::NAME];

    fn name(&self) -> &'static str {
        T::NAME
    }

    fn to_bytes(&self) -> Result<Bytes, BoxError> {
        self.encode()
    }

    fn from_bytes(_name: &str, bytes: &Bytes) -> Result<Self, BoxError> {
        T::decode(bytes)
    }
}

/// Any payload, as bytes. A handler that takes it is registered by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The task type.
    pub task_type: TypeName,
    /// The bytes.
    pub bytes: Bytes,
}
