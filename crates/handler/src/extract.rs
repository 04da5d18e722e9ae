//! What a handler's arguments are made of.

use std::any::{TypeId, type_name};

use poolwright_core::{BoxError, Class, TaskError};

use crate::{Context, Payload, Raw};

/// Something that must be there before the start: asked of all handlers, so that a missing one is not found out at
/// the first task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The type of the state.
    pub id: TypeId,
    /// Its name, for the message.
    pub name: &'static str,
}

impl Need {
    /// A state of this type.
    #[must_use]
    pub fn state<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }
}

/// Something a handler can take as an argument: one payload, and [`Context`], [`State`] or `Client` as wanted.
#[diagnostic::on_unimplemented(
    message = "a handler cannot take `{Self}`",
    label = "neither a payload nor something the runtime knows",
    note = "a handler takes one payload (`TaskType` or `Tasks`), and `Context`, `State<T>` or `Client` in any order",
    note = "is `{Self}` the payload? derive `Serialize, Deserialize, TaskType`; is it shared state? take `State<{Self}>`"
)]
pub trait FromCall: Sized + Send {
    /// The task types, if it is the payload. `Some(&[])` takes any, and is registered by name.
    const PAYLOAD: Option<&'static [&'static str]> = None;

    /// What must be set before the start.
    #[must_use]
    fn need() -> Option<Need> {
        None
    }

    /// Makes it for one attempt.
    ///
    /// # Errors
    /// Ends the attempt with that error, as if the handler had returned it.
    fn from_call(cx: &Context) -> Result<Self, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<T: Payload> FromCall for T {
    const PAYLOAD: Option<&'static [&'static str]> = Some(T::NAMES);

    fn from_call(cx: &Context) -> Result<Self, BoxError> {
        T::from_bytes(cx.task_type().as_str(), cx.payload()).map_err(|error| {
            // An empty payload was read as `null`, and the decoder's message speaks of that.
            let what = if cx.payload().is_empty() { "the empty payload" } else { "the payload" };
            let text = format!("{what} is no `{}`: {error}", type_name::<T>());
            TaskError::new(Class::Undecodable, text).into()
        })
    }
}

impl FromCall for Raw {
    const PAYLOAD: Option<&'static [&'static str]> = Some(&[]);

    fn from_call(cx: &Context) -> Result<Self, BoxError> {
        Ok(Self { task_type: cx.task_type().clone(), bytes: cx.payload().clone() })
    }
}

impl FromCall for Context {
    fn from_call(cx: &Context) -> Result<Self, BoxError> {
        Ok(cx.clone())
    }
}

/// A value of the application, set with `.state(value)` before the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromCall for State<T> {
    fn need() -> Option<Need> {
        Some(Need::state::<T>())
    }

    fn from_call(cx: &Context) -> Result<Self, BoxError> {
        let name = type_name::<T>();
        cx.states().get().map(Self).ok_or_else(|| format!("no state of type `{name}` was set").into())
    }
}
